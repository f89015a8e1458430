package report

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// UsualLifetime is the longest time to pay of invoices that are found only by the time in their ids.
	// Invoices with a longer time are in the index invoices_long_lived.
	UsualLifetime = 24 * time.Hour
	// UsualDelay is how long after its block a payment is confirmed at the latest, unless it
	// is in the index payments_confirmed_late.
	UsualDelay = 24 * time.Hour
)

// StatedInvoice is an issued invoice, with the fields that a statement of a period needs.
type StatedInvoice struct {
	invoice.Invoice
	// Contained is set if the whole life of the invoice lies in the period. Then OpenedAt is some time in
	// it, and VoidedAt and ConfirmedAt are zero.
	Contained   bool
	OpenedAt    time.Time // when it was created, or a draft became open
	VoidedAt    time.Time // when it was made void; expiresAt if that is not known
	ConfirmedAt time.Time // when the last of its payments was confirmed; zero without one

	item string // kind of its inbox item; empty without one
}

// statedInvoices selects invoices that were issued, from the rows that the parameter ends selects. A
// voided draft was not issued: it never had an amount to transfer or an address, or blocks in which it
// was open. Adding 0 keeps PostgreSQL from reading all payments in the order of their confirmation.
func statedInvoices(contained, index, end string) string {
	const columns = "id, chain_key, currency, amount, tolerance, status, exception, item, expires_at, closed_block, sums_stale, payment_count, due, due_returned, "
	return "SELECT " + columns + `contained,
			CASE WHEN contained = 1 THEN created_at ELSE coalesce((SELECT at FROM invoice_transitions WHERE invoice_id = stated.id AND status = 'open'), created_at) END,
			CASE WHEN status = 'void' AND contained = 0 THEN coalesce((SELECT at FROM invoice_transitions WHERE invoice_id = stated.id AND status = 'void'), expires_at) END,
			CASE WHEN payment_count > 0 AND contained = 0 THEN (SELECT max(confirmed_at + 0) FROM payments WHERE invoice_id = stated.id AND status = 'confirmed') END
		FROM (SELECT ` + columns + `created_at, CASE WHEN ` + contained + ` THEN 1 ELSE 0 END AS contained FROM invoices ` + index + `WHERE status <> 'draft'
			AND (status <> 'void' OR transfer_amount IS NOT NULL OR deposit_address IS NOT NULL OR closed_block > from_block) AND ` + end + ") AS stated"
}

func scanStatedInvoice(row db.Scanner) (s StatedInvoice, err error) {
	inv := &s.Invoice
	err = row.Scan(&inv.ID, &inv.ChainKey, &inv.Currency, db.Amount(&inv.Amount), db.Amount(&inv.Tolerance), &inv.Status, &inv.Exception, &s.item, db.Seconds(&inv.ExpiresAt), db.Int(&inv.ClosedBlock),
		&inv.Sums.Stale, &inv.Sums.Payments, db.Amount(&inv.Sums.Tally.Due), db.Amount(&inv.Sums.Tally.Returned), &s.Contained, db.Seconds(&s.OpenedAt), db.Seconds(&s.VoidedAt), db.Seconds(&s.ConfirmedAt))
	return s, err
}

// StatedFilter selects a page of the invoices of a merchant for a statement from From on and before
// To.
type StatedFilter struct {
	MerchantID string
	From, To   time.Time
	After, End string // behind the invoice with the id After, and below the id End
	Limit      int
}

// StatedInvoices returns invoices that were issued, by id. One is contained if it was created in the
// period, expired UsualDelay before its end, and has no late payment that was confirmed afterwards.
func (q Reader) StatedInvoices(ctx context.Context, f StatedFilter) ([]StatedInvoice, error) {
	contained := `created_at >= $5 AND expires_at < $6 AND id NOT IN (SELECT invoice_id FROM payments ` + q.IndexedBy("payments_confirmed_late") + `
		WHERE invoice_id IS NOT NULL AND confirmed_at - block_time > 86400 AND merchant_id = $1 AND confirmed_at >= $7)`
	return db.QueryAll(ctx, q, scanStatedInvoice, statedInvoices(contained, q.IndexedBy("invoices_by_merchant"),
		"merchant_id = $1 AND (merchant_id, id) > ($1, $2) AND id > $2 AND id < $3 ORDER BY merchant_id, id LIMIT $4"),
		f.MerchantID, f.After, f.End, f.Limit, f.From.Unix(), f.To.Add(-UsualDelay).Unix(), f.To.Unix())
}

// EarlierFilter selects the invoices of a merchant with ids below End that may have demanded
// something at From or later and before To.
type EarlierFilter struct {
	MerchantID string
	From, To   time.Time
	End        string // of an invoice that was created UsualLifetime and UsualDelay before From, or lower
	Limit      int    // of a page
}

// settled returns a time: payments mined before it were confirmed before From, except late payments.
func (f EarlierFilter) settled() time.Time { return f.From.Add(-UsualDelay) }

// EarlierInvoices calls do with pages of the filter's issued invoices, each invoice once: those that
// live longer than UsualLifetime and expire later than UsualDelay before From, those that are open
// although they should have expired, and those with a late payment. All others had ended by From, and
// all their payments were confirmed.
func (q Reader) EarlierInvoices(ctx context.Context, f EarlierFilter, do func([]StatedInvoice) error) error {
	if err := eachPage(f.Limit, do, func(after StatedInvoice) ([]StatedInvoice, error) { return longLivedInvoices(ctx, q, f, after) }); err != nil {
		return err
	}
	read := make(map[string]bool)
	if err := eachOverdue(ctx, q, f, read, do); err != nil {
		return err
	}
	return eachPage(f.Limit, func(page []latePayment) error {
		var ids []string
		for _, p := range page {
			if !read[p.invoiceID] {
				read[p.invoiceID] = true
				ids = append(ids, p.invoiceID)
			}
		}
		closed, err := closedInvoices(ctx, q, f, ids)
		if err != nil {
			return err
		}
		return do(closed)
	}, func(after latePayment) ([]latePayment, error) { return latePayments(ctx, q, f, after) })
}

// eachOverdue calls do with the overdue invoices that are not in read, and adds them to it. The pages have the order of
// states, which change: an invoice that moves to an earlier state between two pages is in neither. So several pages are
// read again, until all of them are known. An invoice that was read here may close before the next list is read.
func eachOverdue(ctx context.Context, q db.Querier, f EarlierFilter, read map[string]bool, do func([]StatedInvoice) error) error {
	for again := true; again; {
		pages, known := 0, len(read)
		if err := eachPage(f.Limit, func(page []StatedInvoice) error {
			pages++
			var unread []StatedInvoice
			for _, inv := range page {
				if !read[inv.ID] {
					read[inv.ID] = true
					unread = append(unread, inv)
				}
			}
			return do(unread)
		}, func(after StatedInvoice) ([]StatedInvoice, error) { return overdueInvoices(ctx, q, f, after) }); err != nil {
			return err
		}
		again = pages > 1 && len(read) > known
	}
	return nil
}

// eachPage calls do with each page. read returns the page after the last element of the page before.
func eachPage[T any](limit int, do func([]T) error, read func(after T) ([]T, error)) error {
	for after := *new(T); ; {
		page, err := read(after)
		if err != nil {
			return err
		}
		if err := do(page); err != nil {
			return err
		}
		if len(page) < limit {
			return nil
		}
		after = page[len(page)-1]
	}
}

// longLivedInvoices returns invoices that live longer than UsualLifetime, ordered by their expiry.
func longLivedInvoices(ctx context.Context, q db.Querier, f EarlierFilter, after StatedInvoice) ([]StatedInvoice, error) {
	if after.ID == "" {
		after.ExpiresAt = f.settled()
	}
	return db.QueryAll(ctx, q, scanStatedInvoice, statedInvoices("1 = 0", q.IndexedBy("invoices_long_lived"),
		`expires_at - created_at > 86400 AND merchant_id = $1 AND (expires_at, id) > ($2, $3) AND expires_at < $4 AND id < $5
		ORDER BY merchant_id, expires_at, id LIMIT $6`), f.MerchantID, after.ExpiresAt.Unix(), after.ID, f.To.Add(invoice.MaxLifetime).Unix(), f.End, f.Limit)
}

// overdueInvoices returns open invoices that should have expired, in the order of the index.
func overdueInvoices(ctx context.Context, q db.Querier, f EarlierFilter, after StatedInvoice) ([]StatedInvoice, error) {
	return db.QueryAll(ctx, q, scanStatedInvoice, statedInvoices("1 = 0", q.IndexedBy("invoices_by_merchant_state"),
		`merchant_id = $1 AND status = 'open' AND (merchant_id, status, exception, item, id) > ($1, 'open', $2, $3, $4) AND id < $5 AND expires_at < $6
		ORDER BY merchant_id, status, exception, item, id LIMIT $7`), f.MerchantID, string(after.Exception), after.item, after.ID, f.End, f.settled().Unix(), f.Limit)
}

// closedInvoices returns the invoices with the ids that are not open and have expired.
func closedInvoices(ctx context.Context, q db.Querier, f EarlierFilter, ids []string) ([]StatedInvoice, error) {
	return db.QueryIn(ids, func(chunk []any) ([]StatedInvoice, error) {
		return db.QueryAll(ctx, q, scanStatedInvoice, statedInvoices("1 = 0", "",
			"status <> 'open' AND id < $1 AND expires_at < $2 AND id IN "+db.ParameterList(2, len(chunk))), append([]any{f.End, f.settled().Unix()}, chunk...)...)
	})
}

// latePayment is a payment of an invoice that was confirmed longer than UsualDelay after its
// block.
type latePayment struct {
	invoiceID              string
	confirmedAt, blockTime time.Time
}

// latePayments returns late payments that were confirmed at From or later and may have been mined
// before their invoices expired, in the order of their confirmation. Of equal ones it returns one.
func latePayments(ctx context.Context, q db.Querier, f EarlierFilter, after latePayment) ([]latePayment, error) {
	if after.invoiceID == "" {
		after = latePayment{confirmedAt: f.From, blockTime: time.Unix(0, 0)}
	}
	return db.QueryAll(ctx, q, func(row db.Scanner) (p latePayment, err error) {
		err = row.Scan(&p.invoiceID, db.Seconds(&p.confirmedAt), db.Seconds(&p.blockTime))
		return p, err
	}, "SELECT invoice_id, confirmed_at, block_time FROM payments "+q.IndexedBy("payments_confirmed_late")+`
		WHERE invoice_id IS NOT NULL AND confirmed_at - block_time > 86400 AND merchant_id = $1 AND block_time < $2
			AND (confirmed_at, block_time, invoice_id) > ($3, $4, $5)
		ORDER BY merchant_id, confirmed_at, block_time, invoice_id LIMIT $6`,
		f.MerchantID, f.settled().Unix(), after.confirmedAt.Unix(), after.blockTime.Unix(), after.invoiceID, f.Limit)
}
