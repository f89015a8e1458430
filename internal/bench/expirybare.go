package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/store"
)

const (
	// bareExpiring is the part of the invoices that the bare loop expires.
	bareExpiring = 5
	// bareBatch is how many invoices one transaction of the bare loop expires.
	bareBatch = 500
)

// The statements of the bare loop, which expires the invoices whose ids are in a range.
// %[1]d is their number in the database, and %[2]s the body of an event.
const (
	bareInvoices = "UPDATE invoices SET status = 'expired', closed_block = 1 WHERE id >= $1 AND id < $2"
	bareAmounts  = "UPDATE told_amounts SET live = 0, closed_block = 1 WHERE invoice_id >= $1 AND invoice_id < $2"
	bareEvents   = `INSERT INTO events (id, seq, type, subject, merchant_id, invoice_id, body, created_at)
		SELECT 'exp_' || substr(id, 5), CAST(substr(id, 5) AS BIGINT) + 1 + %[1]d, 'invoice.expired', id, merchant_id, id, '%[2]s', 1 FROM invoices WHERE id >= $1 AND id < $2`
)

// expiryCeiling returns how many invoices a loop without rules expires in a second, with the same rows
// in a database of their own.
func (b *bench) expiryCeiling(ctx context.Context, kind string) (_ float64, err error) {
	url, err := b.url(ctx, kind, "expiry_bare")
	if err != nil {
		return 0, err
	}
	s, err := store.Open(ctx, url)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return 0, err
	}
	if err := appendRows(ctx, url, openRows(b.expiring, time.Now())); err != nil {
		return 0, err
	}
	if err := settleRows(ctx, url); err != nil {
		return 0, err
	}
	db, err := openSQL(url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if kind != "sqlite" {
		if _, err := db.ExecContext(ctx, "SET enable_seqscan = off"); err != nil {
			return 0, err
		}
	}
	all, began := b.expiring/bareExpiring, time.Now()
	for first := 0; first < all; first += bareBatch {
		if err := b.expireBare(ctx, db, first, min(first+bareBatch, all)); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	left, err := count(ctx, url, fmt.Sprintf("SELECT count(*) FROM invoices WHERE chain_key = '%s' AND status = 'open'", chain.Local))
	if err == nil && left != b.expiring-all {
		err = fmt.Errorf("%d invoices are open after %d of %d expired", left, all, b.expiring)
	}
	return float64(all) / took.Seconds(), err
}

// expireBare expires the invoices from one row to another in a transaction.
func (b *bench) expireBare(ctx context.Context, db *sql.DB, first, end int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, statement := range []string{bareInvoices, bareAmounts, fmt.Sprintf(bareEvents, b.expiring, eventBody)} {
		if _, err := tx.ExecContext(ctx, statement, openID(first), openID(end)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}
