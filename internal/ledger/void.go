package ledger

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// ErrUnread is the error of Void if blocks that could hold a payment of the invoice have
// not been read yet, or the chain is halted.
var ErrUnread = errors.New("blocks that could hold a payment are not read yet")

// ErrOutcomeUnknown is the error of Void while an accepted authorization of the invoice has no outcome
// yet. Its transfer may be on its way.
var ErrOutcomeUnknown = errors.New("a payment of the invoice is being made")

// errVoidAlready: another request has made the invoice void.
var errVoidAlready = errors.New("the invoice is void already")

// Void makes a draft or an open invoice void, and enqueues the intent to close its commitment. It takes place between
// the newest block that was read and the next one: an invoice that payments in the blocks up to there cover is not
// voided, and a transfer above is late. A void invoice is returned as it is. Errors are db.ErrNotFound,
// invoice.ErrFinal, invoice.ErrCovered, ErrUnread and ErrOutcomeUnknown.
func (s *Service) Void(ctx context.Context, by access.Principal, id string) (voided invoice.Invoice, err error) {
	ctx, end := tracing.Begin(ctx, "void invoice")
	defer end(&err)
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		was, err := NewReader(tx).Invoice(ctx, id)
		if err != nil {
			return err
		}
		if !by.Sees(was.MerchantID) {
			return db.ErrNotFound
		}
		// A draft may be finalized until it is locked. An open invoice changes under the cursor of its chain.
		if was.Status == invoice.Drafted {
			if was, err = lockInvoice(ctx, tx, id); err != nil {
				return err
			}
		}
		if was.Status != invoice.Drafted && was.Status != invoice.Open {
			voided, err = was.Cancel(0)
			return err
		}
		changed, err := s.cancel(ctx, tx, out, was)
		if err != nil {
			return err
		}
		if voided, err = NewReader(tx).Invoice(ctx, id); err != nil || !changed {
			return err
		}
		return s.recordVoid(ctx, tx, out, was, voided)
	})
	return voided, err
}

// recordVoid records in the audit log and the history that an invoice became void.
func (s *Service) recordVoid(ctx context.Context, tx *db.Tx, out *outbox, was, voided invoice.Invoice) error {
	out.audit = append(out.audit, s.invoiceEntry(ctx, access.ActionInvoiceVoid, was, &voided))
	return InsertInvoiceTransition(ctx, tx, was.ID, InvoiceTransition{Status: invoice.Void, At: s.conf.Now(), By: access.FromContext(ctx).Label()})
}

// cancel makes a draft or an open invoice void. changed is false if another request has done so since.
func (s *Service) cancel(ctx context.Context, tx *db.Tx, out *outbox, was invoice.Invoice) (changed bool, err error) {
	if was.Status == invoice.Open {
		err := s.voidOpen(ctx, tx, out, was)
		if errors.Is(err, errVoidAlready) {
			return false, nil
		}
		return true, err
	}
	voided, err := was.Cancel(0)
	if err != nil {
		return false, err
	}
	return true, UpdateInvoices(ctx, tx, []invoice.Invoice{voided})
}

// voidOpen makes an open invoice void under the cursor of its chain.
func (s *Service) voidOpen(ctx context.Context, tx *db.Tx, out *outbox, inv invoice.Invoice) error {
	cur, err := lockRunning(ctx, tx, inv.ChainKey)
	switch {
	case errors.Is(err, db.ErrNotFound): // no block was read
	case errors.Is(err, ErrHalted):
		return ErrUnread
	case err != nil:
		return err
	default:
		uncounted, err := newestUncounted(ctx, tx, inv.ChainKey, cur)
		if err != nil {
			return err
		}
		if inv.FromBlock < uncounted {
			return ErrUnread
		}
	}
	ch, err := s.load(ctx, tx, inv.ChainKey, inv.ID)
	if err != nil {
		return err
	}
	if ch.invoice(inv.ID).Status == invoice.Void {
		return errVoidAlready
	}
	voided, err := ch.invoice(inv.ID).Cancel(cur.Indexed.Number)
	if err != nil {
		return err
	}
	switch _, err := NewReader(tx).PendingAuthorization(ctx, inv.ID); {
	case err == nil:
		return ErrOutcomeUnknown
	case !errors.Is(err, db.ErrNotFound):
		return err
	}
	ch.putInvoice(voided)
	s.enqueueIntent(out, invoice.IntentClose, voided)
	return UpdateInvoices(ctx, tx, ch.changedInvoices())
}
