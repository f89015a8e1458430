package ledger

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// ReceiveNotice stores a notice and wakes the chain's indexer. The notice is linked to the payment
// that it announces, whichever comes first; it never pays an invoice. A notice that was received
// before has no effect. ReceiveNotice sets the fields ID, Address, PaymentID and ReceivedAt.
func (s *Service) ReceiveNotice(ctx context.Context, n invoice.Notice) (err error) {
	ctx, end := tracing.Begin(ctx, "receive notice", tracing.Chain(n.ChainKey))
	defer end(&err)
	n.ID, n.ReceivedAt = s.ids.New(invoice.PrefixNotice), s.conf.Now()
	n.Address = invoice.Address{}
	_, known := s.byKey[n.ChainKey]
	if address, err := chain.ParseAddress(n.Destination); err == nil && known {
		n.Address = address
	}
	err = s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		n.PaymentID = ""
		if known && !n.Amount.IsZero() && !n.Address.IsZero() {
			// The lock keeps the payment from being stored at the same time, when
			// neither would be linked. A chain that was never read has no payments.
			if _, err := LockCursor(ctx, tx, n.ChainKey); err != nil && !errors.Is(err, db.ErrNotFound) {
				return err
			}
			p, err := UnlinkedPayment(ctx, tx, n)
			if err != nil && !errors.Is(err, db.ErrNotFound) {
				return err
			}
			n.PaymentID = p.ID
		}
		_, err := InsertNotice(ctx, tx, n)
		return err
	})
	if err == nil && known {
		s.conf.Signals.WakeIndexer(n.ChainKey)
	}
	return err
}
