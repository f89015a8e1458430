package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

var linkTable = db.NewTable("payment_links", func(l *invoice.PaymentLink) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&l.ID)),
		db.Col("merchant_id", db.Text(&l.MerchantID)),
		db.Col("slug", db.Text(&l.Slug)),
		db.Col("created_at", db.Seconds(&l.CreatedAt)),
		db.Col("archived", db.Bool(&l.Archived)),
		db.Col("title", db.Text(&l.Title)),
		db.Col("description", db.Null(db.Text(&l.Description))),
		db.Col("amount", db.Null(db.Amount(&l.Amount))),
		db.Col("min_amount", db.Null(db.Amount(&l.Minimum))),
		db.Col("max_amount", db.Null(db.Amount(&l.Maximum))),
		db.Col("currency", db.Text(&l.Currency)),
		db.Col("chain_key", db.Text(&l.ChainKey)),
		db.Col("merchant_address", db.Null(db.Address(&l.Merchant))),
		db.Col("line_item", db.Null(db.Text(&l.LineItem))),
		db.Col("reference_prefix", db.Null(db.Text(&l.ReferencePrefix))),
		db.Col("collection", db.Null(db.Text(&l.Collection))),
		db.Col("return_url", db.Null(db.Text(&l.ReturnURL))),
		db.Col("cancel_url", db.Null(db.Text(&l.CancelURL))),
		db.Col("lifetime", db.Duration(&l.Lifetime, time.Second)),
		db.Col("changed_at", db.Seconds(&l.ChangedAt)),
	}
})

// insertPaymentLink inserts a link, with the scope, key and hash of its request unless the key is empty. It returns
// ErrConflict if another link of the merchant that is not archived has the slug, or another request has used the key.
func insertPaymentLink(ctx context.Context, tx *db.Tx, l invoice.PaymentLink, scope, key string, hash invoice.Hash) error {
	if err := access.InsertMerchants(ctx, tx, []string{l.MerchantID}, l.CreatedAt); err != nil {
		return err
	}
	row := linkTable.Values(l, keyValues(scope, key, hash)...)
	if err := tx.InsertNew(ctx, linkTable.Insertion("ON CONFLICT DO NOTHING", keyColumns...), row); err != nil {
		return fmt.Errorf("insert payment link %s: %w", l.ID, err)
	}
	return nil
}

// lockPaymentLink locks a link until the transaction ends, and returns it, or ErrNotFound.
func lockPaymentLink(ctx context.Context, tx *db.Tx, id string) (invoice.PaymentLink, error) {
	return db.QueryRow(ctx, tx, linkTable.Scan, linkTable.Select()+" WHERE id = $1"+tx.ForUpdate(), id)
}

// updatePaymentLink writes the terms of a locked link, and whether it is archived.
func updatePaymentLink(ctx context.Context, tx *db.Tx, l invoice.PaymentLink) error {
	_, err := linkTable.Without("id", "merchant_id", "slug", "created_at").Update(ctx, tx, l, "id = $1", l.ID)
	return err
}

// PaymentLink returns a link, or ErrNotFound.
func PaymentLink(ctx context.Context, q db.Querier, id string) (invoice.PaymentLink, error) {
	return db.QueryRow(ctx, q, linkTable.Scan, linkTable.Select()+" WHERE id = $1", id)
}

// PaymentLinkBySlug returns the merchant's link with the slug, or the newest one if all are archived, or ErrNotFound.
func PaymentLinkBySlug(ctx context.Context, q db.Querier, merchantID, slug string) (invoice.PaymentLink, error) {
	query := linkTable.Select() + " WHERE merchant_id = $1 AND slug = $2"
	l, err := db.QueryRow(ctx, q, linkTable.Scan, query+" AND archived = 0", merchantID, slug)
	if errors.Is(err, db.ErrNotFound) {
		return db.QueryRow(ctx, q, linkTable.Scan, query+" ORDER BY id DESC LIMIT 1", merchantID, slug)
	}
	return l, err
}

// PaymentLinkByKey returns the link that was created with an Idempotency-Key, and the hash of
// that request, or ErrNotFound.
func PaymentLinkByKey(ctx context.Context, q db.Querier, scope, key string) (l invoice.PaymentLink, hash invoice.Hash, err error) {
	l, err = db.QueryRow(ctx, q, func(row db.Scanner) (invoice.PaymentLink, error) {
		return linkTable.ScanAfter(row, db.Hash(&hash))
	}, "SELECT request_hash, "+linkTable.List()+" FROM payment_links WHERE idem_scope = $1 AND idem_key = $2", scope, key)
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
		w.Add("archived = $%d", db.Bit(*f.Archived))
	}
	w.Below("id", f.Before)
	return db.QueryAll(ctx, q, linkTable.Scan, linkTable.Select()+w.Text()+
		" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}
