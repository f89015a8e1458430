package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// linkTermColumns are the columns that UpdatePaymentLink writes.
const linkTermColumns = "archived, title, description, amount, min_amount, max_amount, currency, chain_key, merchant_address, " +
	"line_item, reference_prefix, collection, return_url, cancel_url, lifetime, changed_at"

const linkColumns = "id, merchant_id, slug, created_at, " + linkTermColumns

func scanPaymentLink(row db.Scanner) (l invoice.PaymentLink, err error) {
	var archived, lifetime int64
	err = row.Scan(&l.ID, &l.MerchantID, &l.Slug, db.Seconds(&l.CreatedAt), &archived, &l.Title, db.NullText(&l.Description), db.AmountCol(&l.Amount),
		db.AmountCol(&l.Minimum), db.AmountCol(&l.Maximum), &l.Currency, &l.ChainKey, db.AddressCol(&l.Merchant), db.NullText(&l.LineItem),
		db.NullText(&l.ReferencePrefix), db.NullText(&l.Collection), db.NullText(&l.ReturnURL), db.NullText(&l.CancelURL), &lifetime, db.Seconds(&l.ChangedAt))
	l.Archived, l.Lifetime = archived == 1, time.Duration(lifetime)*time.Second
	return l, err
}

// linkTerms returns the values of linkTermColumns.
func linkTerms(l invoice.PaymentLink) []any {
	archived := int64(0)
	if l.Archived {
		archived = 1
	}
	return []any{archived, l.Title, db.OrNull(l.Description), db.OrNull(l.Amount), db.OrNull(l.Minimum), db.OrNull(l.Maximum), l.Currency, l.ChainKey, db.OrNull(l.Merchant),
		db.OrNull(l.LineItem), db.OrNull(l.ReferencePrefix), db.OrNull(string(l.Collection)), db.OrNull(l.ReturnURL), db.OrNull(l.CancelURL), int64(l.Lifetime / time.Second),
		invoice.UnixSeconds(l.ChangedAt)}
}

// insertPaymentLink inserts a link, with the scope, key and hash of its request unless the
// key is empty. It returns ErrConflict if another link of the merchant that is not archived
// has the slug, or another request has used the key.
func insertPaymentLink(ctx context.Context, tx *db.Tx, l invoice.PaymentLink, scope, key string, hash invoice.Hash) error {
	if err := access.InsertMerchants(ctx, tx, []string{l.MerchantID}, l.CreatedAt); err != nil {
		return err
	}
	keyed := []any{nil, nil, nil}
	if key != "" {
		keyed = []any{scope, key, hash.String()}
	}
	row := append([]any{l.ID, l.MerchantID, l.Slug, invoice.UnixSeconds(l.CreatedAt)}, append(linkTerms(l), keyed...)...)
	columns := append(strings.Split(linkColumns, ", "), "idem_scope", "idem_key", "request_hash")
	inserted, err := tx.InsertReturningKeys(ctx, db.Insertion{Table: "payment_links", Columns: columns, Conflict: "ON CONFLICT DO NOTHING"}, [][]any{row})
	if err == nil && !inserted[l.ID] {
		err = db.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("insert payment link %s: %w", l.ID, err)
	}
	return nil
}

// lockPaymentLink locks a link until the transaction ends, and returns it, or ErrNotFound.
func lockPaymentLink(ctx context.Context, tx *db.Tx, id string) (invoice.PaymentLink, error) {
	return db.QueryRow(ctx, tx, scanPaymentLink, "SELECT "+linkColumns+" FROM payment_links WHERE id = $1"+tx.ForUpdate(), id)
}

// updatePaymentLink writes the terms of a locked link, and whether it is archived.
func updatePaymentLink(ctx context.Context, tx *db.Tx, l invoice.PaymentLink) error {
	names := strings.Split(linkTermColumns, ", ")
	for i, name := range names {
		names[i] = fmt.Sprintf("%s = $%d", name, i+1)
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("UPDATE payment_links SET %s WHERE id = $%d", strings.Join(names, ", "), len(names)+1), append(linkTerms(l), l.ID)...)
	return err
}

// PaymentLink returns a link, or ErrNotFound.
func PaymentLink(ctx context.Context, q db.Querier, id string) (invoice.PaymentLink, error) {
	return db.QueryRow(ctx, q, scanPaymentLink, "SELECT "+linkColumns+" FROM payment_links WHERE id = $1", id)
}

// PaymentLinkBySlug returns the merchant's link with the slug, or the newest one if all are
// archived, or ErrNotFound.
func PaymentLinkBySlug(ctx context.Context, q db.Querier, merchantID, slug string) (invoice.PaymentLink, error) {
	const query = "SELECT " + linkColumns + " FROM payment_links WHERE merchant_id = $1 AND slug = $2"
	l, err := db.QueryRow(ctx, q, scanPaymentLink, query+" AND archived = 0", merchantID, slug)
	if errors.Is(err, db.ErrNotFound) {
		return db.QueryRow(ctx, q, scanPaymentLink, query+" ORDER BY id DESC LIMIT 1", merchantID, slug)
	}
	return l, err
}

// PaymentLinkByKey returns the link that was created with an Idempotency-Key, and the hash of
// that request, or ErrNotFound.
func PaymentLinkByKey(ctx context.Context, q db.Querier, scope, key string) (l invoice.PaymentLink, hash invoice.Hash, err error) {
	l, err = db.QueryRow(ctx, q, func(row db.Scanner) (invoice.PaymentLink, error) {
		return scanPaymentLink(db.PrefixedRow{Row: row, First: []any{db.HashCol(&hash)}})
	}, "SELECT request_hash, "+linkColumns+" FROM payment_links WHERE idem_scope = $1 AND idem_key = $2", scope, key)
	return l, hash, err
}

// PaymentLinkFilter selects links. Empty fields match all.
type PaymentLinkFilter struct {
	MerchantID string
	Slug       string
	Archived   *bool
	Before     string // a link's id; those listed were created before it
	Limit      int
}

// PaymentLinks lists links, newest first.
func PaymentLinks(ctx context.Context, q db.Querier, f PaymentLinkFilter) ([]invoice.PaymentLink, error) {
	w := db.Where{}
	w.Equal("merchant_id", f.MerchantID)
	w.Equal("slug", f.Slug)
	if f.Archived != nil {
		archived := int64(0)
		if *f.Archived {
			archived = 1
		}
		w.Add("archived = $%d", archived)
	}
	w.Below("id", f.Before)
	return db.QueryAll(ctx, q, scanPaymentLink, "SELECT "+linkColumns+" FROM payment_links"+w.Text()+
		" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}
