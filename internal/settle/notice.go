package settle

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Notice is a transfer that an external provider announced: the fields of its
// request, and their values by the provider's configuration.
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

// ReceiveNotice stores a notice and wakes the chain's indexer. The notice is
// linked to the payment that it announces, whichever comes first; it never pays
// an invoice. A notice that was received before changes nothing.
func (s *Service) ReceiveNotice(ctx context.Context, n Notice) error {
	row := store.Notice{
		ID: s.ids.New(invoice.PrefixNotice), Provider: n.Provider, Type: n.Type, TransferID: n.TransferID,
		AmountText: n.AmountText, ProviderCurrency: n.ProviderCurrency, ProviderChain: n.ProviderChain,
		Destination: n.Address, Amount: n.Amount, Currency: n.Currency, ChainKey: n.ChainKey,
		ReceivedAt: s.now().Unix(),
	}
	_, known := s.byKey[n.ChainKey]
	if address, err := chain.ParseAddress(n.Address); err == nil && known {
		row.Address = address
	}
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		row.PaymentID = ""
		if known && !row.Amount.IsZero() && !row.Address.IsZero() {
			// The lock keeps the payment from being stored at the same time, when
			// neither would be linked. A chain that was never read has no payments.
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
		s.signals.WakeIndexer(n.ChainKey)
	}
	return err
}
