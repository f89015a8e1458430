package ledger

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
)

// Erasure is the erasure of a customer's personal data.
type Erasure struct {
	ID         string
	MerchantID string
	Customer   string // the customer's key; empty once it is erased
	Through    string // the newest invoice that is erased; empty without one
	Invoices   int64  // that are erased so far
	CreatedAt  time.Time
	FinishedAt time.Time // zero while invoices are left
}

var erasureTable = db.NewTable("erasures", func(e *Erasure) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&e.ID)),
		db.Col("merchant_id", db.Text(&e.MerchantID)),
		db.Col("customer", db.Null(db.Text(&e.Customer))),
		db.Col("through", db.Text(&e.Through)),
		db.Col("invoices", db.Int(&e.Invoices)),
		db.Col("created_at", db.Seconds(&e.CreatedAt)),
		db.Col("finished_at", db.Null(db.Seconds(&e.FinishedAt))),
	}
})

// insertErasure inserts an erasure, and returns it. If an erasure of the same customer is running it
// returns that one, and inserts no row.
func insertErasure(ctx context.Context, tx *db.Tx, e Erasure) (Erasure, error) {
	return erasureTable.InsertReturning(ctx, tx,
		"ON CONFLICT (merchant_id, customer) WHERE customer IS NOT NULL DO UPDATE SET through = erasures.through", e)
}

// ErasureKey is the Idempotency-Key of a request that erases a customer.
type ErasureKey struct {
	KeyHash     invoice.Hash // of the key and its scope
	RequestHash invoice.Hash // of that and the request
}

// erasureByKey returns the erasure of the request that had a key, and the hash of that request, or ErrNotFound.
func erasureByKey(ctx context.Context, q db.Querier, keyHash invoice.Hash) (e Erasure, requestHash invoice.Hash, err error) {
	e, err = db.QueryRow(ctx, q, func(row db.Scanner) (Erasure, error) {
		return erasureTable.ScanAfter(row, db.Hash(&requestHash))
	}, "SELECT request_hash, "+erasureTable.List()+" FROM erasure_keys JOIN erasures ON id = erasure_id WHERE key_hash = $1", keyHash.String())
	return e, requestHash, err
}

// insertErasureKey stores the key of a request for an erasure. ok is false if the key is stored already.
func insertErasureKey(ctx context.Context, tx *db.Tx, k ErasureKey, erasureID string) (ok bool, err error) {
	n, err := tx.Exec(ctx, "INSERT INTO erasure_keys (key_hash, request_hash, erasure_id) VALUES ($1, $2, $3) ON CONFLICT (key_hash) DO NOTHING",
		k.KeyHash.String(), k.RequestHash.String(), erasureID)
	return n > 0, err
}

// ErasureLifetime is how long a finished erasure and its keys are kept.
const ErasureLifetime = 365 * 24 * time.Hour

// DeleteErasures deletes erasures that ended and are older than ErasureLifetime, up to limit keys or up to limit erasures. It
// returns how many.
func DeleteErasures(ctx context.Context, tx *db.Tx, now time.Time, limit int) (int64, error) {
	below := invoice.FirstID(invoice.PrefixErasure, now.Add(-ErasureLifetime))
	n, err := tx.Exec(ctx, "DELETE FROM erasure_keys WHERE key_hash IN (SELECT key_hash FROM erasure_keys WHERE erasure_id < $1 ORDER BY erasure_id LIMIT $2)", below, limit)
	if err != nil || n > 0 {
		return n, err
	}
	return tx.Exec(ctx, "DELETE FROM erasures WHERE id IN (SELECT id FROM erasures WHERE id < $1 AND customer IS NULL ORDER BY id LIMIT $2)", below, limit)
}

// lockErasure returns the oldest running erasure with this id or a greater one that no other
// transaction has locked, or ErrNotFound. It locks the erasure until the transaction ends.
func lockErasure(ctx context.Context, tx *db.Tx, from string) (Erasure, error) {
	return db.QueryRow(ctx, tx, erasureTable.Scan,
		erasureTable.Select()+" "+tx.IndexedBy("erasures_running")+"WHERE customer IS NOT NULL AND id >= $1 ORDER BY id LIMIT 1"+tx.SkipLocked(), from)
}

// updateErasure stores the progress of a locked erasure. For a finished one it deletes the customer's key.
func updateErasure(ctx context.Context, tx *db.Tx, e Erasure) error {
	if !e.FinishedAt.IsZero() {
		e.Customer = ""
	}
	_, err := erasureTable.Only("customer", "invoices", "finished_at").Update(ctx, tx, e, "id = $1", e.ID)
	return err
}

// lockInvoicesToErase locks up to limit invoices of an erasure, and the cursors of their chains, so that no transaction
// that has read one of the invoices writes an event of it afterwards. It reports whether there may be more.
func lockInvoicesToErase(ctx context.Context, tx *db.Tx, e Erasure, limit int) (locked []invoice.Invoice, more bool, err error) {
	key := customerKey(tx)
	ids, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT invoice_id FROM invoice_details "+tx.IndexedBy("invoice_details_by_customer")+"WHERE merchant_id = $1 AND "+isCustomer+
		" AND "+key+" = "+text(tx, "$2")+" AND invoice_id <= $3 ORDER BY merchant_id, "+key+", invoice_id LIMIT $4", e.MerchantID, e.Customer, e.Through, limit)
	if err != nil || len(ids) == 0 {
		return nil, false, err
	}
	in := db.ParameterList(0, len(ids))
	chains, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT DISTINCT chain_key FROM invoices WHERE id IN "+in, db.ToAny(ids)...)
	if err != nil {
		return nil, false, err
	}
	slices.Sort(chains) // as lockBlocks
	for _, chainKey := range chains {
		if _, err := LockCursor(ctx, tx, chainKey); err != nil && !errors.Is(err, db.ErrNotFound) { // no block was read
			return nil, false, err
		}
	}
	for _, id := range ids {
		inv, err := lockInvoice(ctx, tx, id)
		switch {
		case errors.Is(err, db.ErrNotFound): // it was a draft
		case err != nil:
			return nil, false, err
		case inv.Details.Customer.Key() == e.Customer: // else it was changed
			locked = append(locked, inv)
		}
	}
	return locked, len(ids) == limit, nil
}

// eraseAnswers erases up to limit excerpts of answers to events of invoices. It returns how many.
func eraseAnswers(ctx context.Context, tx *db.Tx, invoiceIDs []string, limit int) (int64, error) {
	return tx.Exec(ctx, `UPDATE attempts SET excerpt = '' WHERE (seq, number) IN (SELECT attempts.seq, attempts.number
		FROM events JOIN attempts ON attempts.seq = events.seq WHERE attempts.excerpt <> '' AND events.invoice_id IN `+db.ParameterList(1, len(invoiceIDs))+` LIMIT $1)`,
		append([]any{limit}, db.ToAny(invoiceIDs)...)...)
}

// EraseInvoices writes the line items and details of locked invoices, from which personal data was removed. It also
// removes personal data from rows that refer to them, except events and the answers to deliveries: texts that people
// wrote about their payments and refunds, and addresses of mails, which are not sent then.
func EraseInvoices(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	ids := make([]string, len(invoices))
	for i, inv := range invoices {
		ids[i] = inv.ID
		if err := tx.Send(ctx, nil, "UPDATE invoices SET line_items = $1 WHERE id = $2", linesText(inv.LineItems), inv.ID); err != nil {
			return err
		}
	}
	in := " IN " + db.ParameterList(0, len(ids))
	payments := "(SELECT id FROM payments WHERE invoice_id" + in + ")"
	for _, statement := range []string{
		"DELETE FROM invoice_metadata WHERE invoice_id" + in,
		"DELETE FROM invoice_words WHERE invoice_id" + in,
		"DELETE FROM invoice_details WHERE reference IS NULL AND invoice_id" + in,
		`UPDATE invoice_details SET description = NULL, customer_id = NULL, customer_email = NULL, return_url = NULL, cancel_url = NULL, metadata = NULL
			WHERE invoice_id` + in,
		"UPDATE payments SET attribution_note = NULL WHERE attribution_note IS NOT NULL AND invoice_id" + in,
		"UPDATE refund_records SET reason = NULL WHERE reason IS NOT NULL AND payment_id IN " + payments,
		"UPDATE inbox_decisions SET reason = '" + invoice.Erased + "' WHERE object_id" + in,
		"UPDATE inbox_decisions SET reason = '" + invoice.Erased + "' WHERE object_id IN " + payments,
		"UPDATE inbox_decisions SET reason = '" + invoice.Erased + "' WHERE invoice_id" + in,
		"UPDATE inbox_decisions SET reason = '" + invoice.Erased + "' WHERE object_id IN (SELECT id FROM refund_records WHERE payment_id IN " + payments + ")",
	} {
		if err := tx.Send(ctx, nil, statement, db.ToAny(ids)...); err != nil {
			return err
		}
	}
	return mailer.EraseOfInvoices(ctx, tx, ids)
}

// rewriteEvents replaces the bodies of events that contain one of the invoices. change returns the new body.
func rewriteEvents(ctx context.Context, tx *db.Tx, invoiceIDs []string, change func(invoiceID string, body []byte) ([]byte, error)) error {
	type stored struct {
		seq             int64
		invoiceID, body string
	}
	events, err := db.QueryAll(ctx, tx, db.Fields(func(e *stored) []any {
		return []any{&e.seq, &e.invoiceID, &e.body}
	}), "SELECT seq, invoice_id, body FROM events WHERE type IN ('invoice.created', 'invoice.expired') AND invoice_id IN "+db.ParameterList(0, len(invoiceIDs)), db.ToAny(invoiceIDs)...)
	if err != nil {
		return err
	}
	for _, e := range events {
		body, err := change(e.invoiceID, []byte(e.body))
		if err != nil {
			return err
		}
		if err := tx.Send(ctx, nil, "UPDATE events SET body = $1 WHERE seq = $2", string(body), e.seq); err != nil {
			return err
		}
	}
	return nil
}

// eraseCustomer deletes what names a customer besides its invoices: its address in mails, and the saved filters that
// select it, of the merchant's people, and of the operator unless they name another merchant.
func eraseCustomer(ctx context.Context, tx *db.Tx, merchantID, customer string) error {
	if err := mailer.Erase(ctx, tx, merchantID, customer); err != nil {
		return err
	}
	const whole = "'&' || query || '&'"
	has := func(text string) string { return "replace(" + whole + ", " + text + ", '') <> " + whole } // LIKE ignores case on SQLite
	for _, name := range []string{"customer", "q"} {
		_, err := tx.Exec(ctx, "DELETE FROM saved_filters WHERE "+has("$1")+` AND key_id NOT IN (SELECT id FROM api_keys WHERE merchant_id <> $2)
			AND (key_id IN (SELECT id FROM api_keys WHERE merchant_id = $2) OR `+has("$3")+" OR NOT "+has("'&merchantId='")+")",
			"&"+name+"="+url.QueryEscape(customer)+"&", merchantID, "&merchantId="+url.QueryEscape(merchantID)+"&")
		if err != nil {
			return err
		}
	}
	return nil
}
