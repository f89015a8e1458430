package settle

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Notice is a transfer that an external provider announced, as its request
// says it and as the provider's configuration translates it.
type Notice struct {
	Provider         string
	Type             string
	TransferID       string         // the provider's
	AmountText       string         // as sent, in major units
	ProviderCurrency string         // as sent
	ProviderChain    string         // as sent
	Address          string         // as sent
	Amount           invoice.Amount // minor units; zero when the currency is unknown
	Currency         string         // ours; empty when unknown
	ChainKey         string         // ours; empty when unknown
}

// ReceiveNotice keeps a notice and makes the chain's indexer look at once. The
// notice is linked to the payment that it announces, whichever comes first; it
// never settles anything. One that was received before changes nothing.
func (s *Service) ReceiveNotice(ctx context.Context, n Notice) error {
	row := store.Notice{
		ID: s.ids.New(invoice.PrefixNotice), Provider: n.Provider, Type: n.Type, TransferID: n.TransferID,
		AmountText: n.AmountText, ProviderCurrency: n.ProviderCurrency, ProviderChain: n.ProviderChain,
		Destination: n.Address, Amount: n.Amount, Currency: n.Currency, ChainKey: n.ChainKey,
		ReceivedAt: s.Now().Unix(),
	}
	_, known := s.chains[n.ChainKey]
	if address, err := chain.ParseAddress(n.Address); err == nil && known {
		row.Address = address
	}
	err := s.Store.Update(ctx, func(tx *store.Tx) error {
		row.PaymentID = ""
		if known && !row.Amount.IsZero() && !row.Address.IsZero() {
			// Were the payment stored at the same time, neither would see the
			// other. A chain that was never read has no payments.
			if _, err := tx.LockCursor(ctx, n.ChainKey); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			p, err := tx.UnlinkedPayment(ctx, row)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			row.PaymentID = p.ID
		}
		_, err := tx.InsertNotice(ctx, row)
		return err
	})
	if err == nil && known {
		s.Signals.WakeIndexer(n.ChainKey)
	}
	return err
}
