package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// linkTermColumns are the columns that UpdatePaymentLink writes.
const linkTermColumns = "archived, title, description, amount, min_amount, max_amount, currency, chain_key, merchant_address, " +
	"line_item, reference_prefix, collection, return_url, cancel_url, lifetime, changed_at"

const linkColumns = "id, merchant_id, slug, created_at, " + linkTermColumns

func scanPaymentLink(row scanner) (l invoice.PaymentLink, err error) {
	var archived, lifetime int64
	err = row.Scan(&l.ID, &l.MerchantID, &l.Slug, seconds{&l.CreatedAt}, &archived, &l.Title, nullText(&l.Description), amountCol(&l.Amount),
		amountCol(&l.Minimum), amountCol(&l.Maximum), &l.Currency, &l.ChainKey, addressCol(&l.Merchant), nullText(&l.LineItem),
		nullText(&l.ReferencePrefix), nullText(&l.Collection), nullText(&l.ReturnURL), nullText(&l.CancelURL), &lifetime, seconds{&l.ChangedAt})
	l.Archived, l.Lifetime = archived == 1, time.Duration(lifetime)*time.Second
	return l, err
}

// linkTerms returns the values of linkTermColumns.
func linkTerms(l invoice.PaymentLink) []any {
	archived := int64(0)
	if l.Archived {
		archived = 1
	}
	return []any{archived, l.Title, orNull(l.Description), orNull(l.Amount), orNull(l.Minimum), orNull(l.Maximum), l.Currency, l.ChainKey, orNull(l.Merchant),
		orNull(l.LineItem), orNull(l.ReferencePrefix), orNull(string(l.Collection)), orNull(l.ReturnURL), orNull(l.CancelURL), int64(l.Lifetime / time.Second),
		invoice.UnixSeconds(l.ChangedAt)}
}

// InsertPaymentLink inserts a link, with the scope, key and hash of its request unless the
// key is empty. It returns ErrConflict if another link of the merchant that is not archived
// has the slug, or another request has used the key.
func (tx *Tx) InsertPaymentLink(ctx context.Context, l invoice.PaymentLink, scope, key string, hash invoice.Hash) error {
	if err := tx.insertMerchants(ctx, []string{l.MerchantID}, l.CreatedAt); err != nil {
		return err
	}
	keyed := []any{nil, nil, nil}
	if key != "" {
		keyed = []any{scope, key, hash.String()}
	}
	row := append([]any{l.ID, l.MerchantID, l.Slug, invoice.UnixSeconds(l.CreatedAt)}, append(linkTerms(l), keyed...)...)
	columns := append(strings.Split(linkColumns, ", "), "idem_scope", "idem_key", "request_hash")
	inserted, err := tx.insertReturningKeys(ctx, insertion{"payment_links", columns, "ON CONFLICT DO NOTHING"}, [][]any{row})
	if err == nil && !inserted[l.ID] {
		err = ErrConflict
	}
	if err != nil {
		return fmt.Errorf("insert payment link %s: %w", l.ID, err)
	}
	return nil
}

// LockPaymentLink locks a link until the transaction ends, and returns it, or ErrNotFound.
func (tx *Tx) LockPaymentLink(ctx context.Context, id string) (invoice.PaymentLink, error) {
	return queryRow(ctx, &tx.queries, scanPaymentLink, "SELECT "+linkColumns+" FROM payment_links WHERE id = $1"+tx.forUpdate(), id)
}

// UpdatePaymentLink writes the terms of a locked link, and whether it is archived.
func (tx *Tx) UpdatePaymentLink(ctx context.Context, l invoice.PaymentLink) error {
	names := strings.Split(linkTermColumns, ", ")
	for i, name := range names {
		names[i] = fmt.Sprintf("%s = $%d", name, i+1)
	}
	_, err := tx.exec(ctx, fmt.Sprintf("UPDATE payment_links SET %s WHERE id = $%d", strings.Join(names, ", "), len(names)+1), append(linkTerms(l), l.ID)...)
	return err
}

// PaymentLink returns a link, or ErrNotFound.
func (q *queries) PaymentLink(ctx context.Context, id string) (invoice.PaymentLink, error) {
	return queryRow(ctx, q, scanPaymentLink, "SELECT "+linkColumns+" FROM payment_links WHERE id = $1", id)
}

// PaymentLinkBySlug returns the merchant's link with the slug, or the newest one if all are
// archived, or ErrNotFound.
func (q *queries) PaymentLinkBySlug(ctx context.Context, merchantID, slug string) (invoice.PaymentLink, error) {
	const query = "SELECT " + linkColumns + " FROM payment_links WHERE merchant_id = $1 AND slug = $2"
	l, err := queryRow(ctx, q, scanPaymentLink, query+" AND archived = 0", merchantID, slug)
	if errors.Is(err, ErrNotFound) {
		return queryRow(ctx, q, scanPaymentLink, query+" ORDER BY id DESC LIMIT 1", merchantID, slug)
	}
	return l, err
}

// PaymentLinkByKey returns the link that was created with an Idempotency-Key, and the hash of
// that request, or ErrNotFound.
func (q *queries) PaymentLinkByKey(ctx context.Context, scope, key string) (l invoice.PaymentLink, hash invoice.Hash, err error) {
	l, err = queryRow(ctx, q, func(row scanner) (invoice.PaymentLink, error) {
		return scanPaymentLink(prefixedRow{row, []any{hashCol(&hash)}})
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
func (q *queries) PaymentLinks(ctx context.Context, f PaymentLinkFilter) ([]invoice.PaymentLink, error) {
	w := where{}
	w.equal("merchant_id", f.MerchantID)
	w.equal("slug", f.Slug)
	if f.Archived != nil {
		archived := int64(0)
		if *f.Archived {
			archived = 1
		}
		w.add("archived = $%d", archived)
	}
	w.below("id", f.Before)
	return queryAll(ctx, q, scanPaymentLink, "SELECT "+linkColumns+" FROM payment_links"+w.text()+
		" ORDER BY id DESC LIMIT "+parameter(w.next()), append(w.args, f.Limit)...)
}
