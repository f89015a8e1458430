package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

const (
	// priceClosed is how many closed invoices of one price an address has.
	priceClosed = 300_000
	// priceCreates is how many more are created, one after the other.
	priceCreates = 600
)

// measurePrice measures how long it takes to create an invoice where an
// address has very many closed ones of the same price, and where it has none.
func (b *bench) measurePrice(ctx context.Context, kind string) error {
	empty, err := b.price(ctx, kind, "price_empty", 0)
	if err != nil {
		return err
	}
	full, err := b.price(ctx, kind, "price_full", priceClosed)
	if err != nil {
		return err
	}
	b.report.row(kind, fmt.Sprintf("create, %d closed of the price", priceClosed), full, empty,
		fmt.Sprintf("%.2f", full.Seconds()/empty.Seconds()), fmt.Sprintf("ceiling: none closed; mean of %d, one after the other", priceCreates))
	return nil
}

// price returns the mean time that a create takes after so many invoices of
// its price were closed.
func (b *bench) price(ctx context.Context, kind, name string, closed int) (mean time.Duration, err error) {
	url, err := b.url(ctx, kind, name)
	if err != nil {
		return 0, err
	}
	s, err := store.Open(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d := newDust(s)
	if err := d.start(ctx); err != nil {
		return 0, err
	}
	const amount = 4_900_000
	all := make([]invoice.Invoice, closed)
	for n := range all {
		all[n] = d.invoice
		all[n].ID, all[n].CommitmentID = fmt.Sprintf("inv_%09d", n), dustHash(uint64(n)<<8)
		all[n].Amount = invoice.NewAmount(amount)
		all[n].TransferAmount = invoice.NewAmount(amount + 1 + uint64(n%invoice.MaxSuffix))
		all[n].Status, all[n].ClosedBlock = invoice.Expired, 1
		all[n].ExpiresAt = time.Now().Unix() - 2*settle.MinQuarantine // their amounts can be told again
	}
	for part := range slices.Chunk(all, 10_000) {
		err := s.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.InsertInvoices(ctx, part)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	if _, err := d.Create(ctx, d.request(amount)); err != nil {
		return 0, err
	}
	began := time.Now()
	for range priceCreates {
		inv, err := d.Create(ctx, d.request(amount))
		if err == nil && inv.TransferAmount.IsZero() {
			err = fmt.Errorf("an invoice on %s has no transfer amount", chain.Local)
		}
		if err != nil {
			return 0, err
		}
	}
	return (time.Since(began) / priceCreates).Round(time.Microsecond), nil
}
