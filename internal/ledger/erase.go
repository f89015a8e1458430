package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// EraseBatch is how many invoices one transaction erases. While it runs, their chains cannot be read.
	EraseBatch = 50
	// EraseAnswers is how many excerpts of answers it erases. A webhook that was down has many for an invoice.
	EraseAnswers = 1000
)

// EraseCustomer erases the personal data of a merchant's customer, by the customer's key: everything that the merchant
// wrote about the customer's invoices except the references, in all tables and in events. Amounts, addresses and
// transactions stay. If there are more than EraseBatch invoices, EraseMore erases the rest. Invoices that are created
// later are not erased. While an erasure is in progress, EraseCustomer returns it. Without a key, no row is stored for
// a customer without invoices. With a key, it returns the erasure of the first request, and never erases invoices
// created since. Other errors are ErrIdempotencyMismatch and ErrIdempotencyInProgress.
func (s *Service) EraseCustomer(ctx context.Context, merchantID, customer string, once Once) (e Erasure, err error) {
	key, err := erasureKey(merchantID, customer, once)
	if err != nil {
		return e, err
	}
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		var known bool
		if e, known, err = erasureOf(ctx, tx, key, once); known || err != nil {
			return err
		}
		e, err = s.beginErasure(ctx, tx, merchantID, customer, once.Key != "")
		if err != nil {
			return err
		}
		if once.Key != "" {
			if ok, err := insertErasureKey(ctx, tx, key, e.ID); err != nil {
				return err
			} else if !ok {
				return ErrIdempotencyInProgress
			}
		}
		out.audit = append(out.audit, access.NewEntry(ctx, s.seconds(), access.Change{MerchantID: merchantID, Action: access.ActionCustomerErase, Object: e.ID}))
		return nil
	})
	if err != nil || !e.FinishedAt.IsZero() {
		return e, err
	}
	worked, err := s.EraseMore(ctx, e.ID)
	if worked.ID == e.ID {
		e = worked
	}
	return e, err
}

// erasureOf returns the erasure that a request with the same key began, if there is one.
func erasureOf(ctx context.Context, tx *db.Tx, key ErasureKey, once Once) (e Erasure, known bool, err error) {
	if once.Key == "" {
		return e, false, nil
	}
	e, requested, err := erasureByKey(ctx, tx, key.KeyHash)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return e, false, nil
	case err == nil && requested != key.RequestHash:
		return e, true, ErrIdempotencyMismatch
	}
	once.Mark(err == nil)
	return e, err == nil, err
}

// erasureKey returns the stored form of a request's key. The hashes include the key: if it is random,
// the customer cannot be found by guessing.
func erasureKey(merchantID, customer string, once Once) (key ErasureKey, err error) {
	if key.KeyHash, err = hashFields(once.Scope, once.Key); err != nil {
		return key, err
	}
	key.RequestHash, err = hashFields(once.Scope, once.Key, merchantID, customer)
	return key, err
}

// beginErasure returns the erasure that a request begins, or a running one of the same customer. For a
// customer without invoices it is stored only if it has a key, so that a repeated request finds it.
func (s *Service) beginErasure(ctx context.Context, tx *db.Tx, merchantID, customer string, withKey bool) (e Erasure, err error) {
	e = Erasure{ID: s.ids.New(invoice.PrefixErasure), MerchantID: merchantID, Customer: customer, CreatedAt: s.seconds()}
	named, err := FindCustomer(ctx, tx, merchantID, customer)
	switch {
	case err == nil:
		e.Through = named.NewestInvoice
		return insertErasure(ctx, tx, e)
	case !errors.Is(err, db.ErrNotFound):
		return e, err
	}
	e.Customer, e.FinishedAt = "", e.CreatedAt // erased already, or no invoice has the customer
	if withKey {
		if e, err = insertErasure(ctx, tx, e); err != nil {
			return e, err
		}
	}
	return e, eraseCustomer(ctx, tx, merchantID, customer)
}

// auditedErasure is a finished erasure in the audit log.
type auditedErasure struct {
	Invoices int64 `json:"invoices"`
}

// EraseMore continues the oldest unfinished erasure, with the given id or a greater one, that no other
// process works on. It returns that erasure, also with an error, or an empty one.
func (s *Service) EraseMore(ctx context.Context, from string) (e Erasure, err error) {
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		if e, err = lockErasure(ctx, tx, from); errors.Is(err, db.ErrNotFound) {
			e = Erasure{}
			return nil
		} else if err != nil {
			return err
		}
		more, err := eraseInvoices(ctx, tx, &e)
		if err != nil {
			return fmt.Errorf("erasure %s: %w", e.ID, err)
		}
		if !more {
			if err := eraseCustomer(ctx, tx, e.MerchantID, e.Customer); err != nil {
				return err
			}
			e.FinishedAt = s.seconds()
			out.audit = append(out.audit, access.NewEntry(ctx, e.FinishedAt, access.Change{
				MerchantID: e.MerchantID, Action: access.ActionCustomerErased, Object: e.ID, After: auditedErasure{e.Invoices},
			}))
		}
		return updateErasure(ctx, tx, e)
	})
	return e, err
}

// eraseInvoices erases some invoices of an erasure, and reports whether there may be more.
func eraseInvoices(ctx context.Context, tx *db.Tx, e *Erasure) (more bool, err error) {
	invoices, more, err := lockInvoicesToErase(ctx, tx, *e, EraseBatch)
	if err != nil || len(invoices) == 0 {
		return more, err
	}
	ids, erased := make([]string, len(invoices)), make(map[string]invoice.Invoice, len(invoices))
	for i, inv := range invoices {
		invoices[i], ids[i] = inv.Erase(), inv.ID
		erased[inv.ID] = invoices[i]
	}
	if n, err := eraseAnswers(ctx, tx, ids, EraseAnswers); err != nil || n == EraseAnswers {
		return true, err
	}
	err = rewriteEvents(ctx, tx, ids, func(invoiceID string, body []byte) ([]byte, error) {
		return apiconv.EraseEvent(body, erased[invoiceID])
	})
	if err != nil {
		return false, err
	}
	e.Invoices += int64(len(ids))
	return more, EraseInvoices(ctx, tx, invoices)
}
