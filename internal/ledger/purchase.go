package ledger

import (
	"cmp"
	"context"
	"errors"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Purchase is a payment of a merchant's resource. Each purchase gets a separate invoice.
type Purchase struct {
	// Draft is the draft of the invoice: direct, with a reference that need not be unique.
	Draft         invoice.Draft
	Authorization invoice.Authorization
	Settlement    X402Settlement // without the invoice's id
}

// Purchase creates the invoice of a purchase, stores its settlement and accepts its authorization in one transaction.
// So a refused purchase does not leave an invoice.
//
// It returns the errors of Create and of Authorize, and db.ErrConflict if the authorization has a settlement already.
func (s *Service) Purchase(ctx context.Context, p Purchase) (Authorization, error) {
	a := p.Authorization.Normal()
	inv, err := s.buildInvoice(ctx, p.Draft, s.ids.New(invoice.PrefixInvoice))
	if err != nil {
		return Authorization{}, err
	}
	if err := s.quotas.admit(inv.MerchantID); err != nil {
		return Authorization{}, err
	}
	checked, err := s.CheckAuthorization(ctx, inv, a)
	if err != nil {
		return Authorization{}, err
	}
	p.Settlement.InvoiceID = inv.ID
	accepted := s.newAuthorization(inv, a, checked)
	call := &createCall{Value: &create{inv: inv, byMerchant: true, origin: access.OriginFrom(ctx)}}
	if err := s.insertPurchase(ctx, call, p.Settlement, accepted, checked); err != nil {
		s.countAuthorization(inv.ChainKey, err)
		return Authorization{}, err
	}
	s.conf.Signals.OnAuthorization(inv.ChainKey, "")
	s.conf.Signals.WakeTxManager(inv.ChainKey)
	return accepted, nil
}

// insertPurchase judges a purchase under the cursor of its chain and stores it. Its invoice gets no transfer amount,
// which its payer is not shown: purchases would use up the amounts of other invoices.
func (s *Service) insertPurchase(
	ctx context.Context, call *createCall, settled X402Settlement, accepted Authorization, checked AuthorizationCheck,
) error {
	calls, inv := []*createCall{call}, call.Value.inv
	return s.update(ctx, func(tx *db.Tx, out *outbox) (err error) {
		if err := lockForAuthorization(ctx, tx, inv.ChainKey); err != nil {
			return err
		}
		switch _, err := NewReader(tx).X402Settlement(ctx, settled.AuthorizationKey); {
		case err == nil:
			return db.ErrConflict
		case !errors.Is(err, db.ErrNotFound):
			return err
		}
		if _, err := boundTo(ctx, tx, inv, accepted.Authorization); err != nil {
			return err
		}
		if err := s.checkAgain(ctx, tx, inv, accepted.Authorization, checked); err != nil {
			return err
		}
		refused, err := s.createIn(ctx, tx, out, calls, maxTries)
		if err := cmp.Or(err, refused[call]); err != nil {
			return err
		}
		if err := InsertX402Settlement(ctx, tx, settled); err != nil {
			return err
		}
		return InsertAuthorization(ctx, tx, accepted)
	})
}
