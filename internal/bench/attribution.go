package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

const (
	// attributedFew is how many invoices are open in the ceiling.
	attributedFew = 1000
	// attributedBlocks is how many blocks of each kind are measured.
	attributedBlocks = 600
	// attributedStride is the distance between the rows of invoices that are paid one after another.
	attributedStride = 7919
)

// measureAttribution measures how long it takes to observe a block with one payment, of an
// open invoice's transfer amount and of an amount that no invoice has, at an address with
// very many open invoices and at one with few. The two take turns.
func (b *bench) measureAttribution(ctx context.Context, kind string) (failed error) {
	if b.million == 0 {
		return nil
	}
	var runs [2]attributionRun
	for i, open := range []int{attributedFew, b.million} {
		s, url, err := b.openStore(ctx, kind, fmt.Sprintf("attribution_%d", open))
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, s.Close()) }()
		runs[i] = attributionRun{dust: newDust(s), url: url, open: open}
		if err := s.Load(ctx, openRows(open, time.Now().Add(24*time.Hour)), func(store.LoadProgress) {}); err != nil {
			return err
		}
		if err := runs[i].start(ctx); err != nil {
			return err
		}
	}
	for n := range attributedBlocks {
		for i := range runs {
			if err := runs[i].pay(ctx, n); err != nil {
				return err
			}
		}
	}
	for _, r := range runs {
		if err := r.verify(ctx); err != nil {
			return err
		}
	}
	row := func(what string, many, few []time.Duration) {
		b.report.slower(kind, fmt.Sprintf("block with one payment %s, %d open at its address", what, b.million),
			exactQuantile(many, 0.5).Round(time.Microsecond), exactQuantile(few, 0.5).Round(time.Microsecond),
			fmt.Sprintf("ceiling: %d open; medians of %d, in turns", attributedFew, attributedBlocks))
	}
	row("of an invoice", runs[1].attributed, runs[0].attributed)
	row("of no invoice's amount", runs[1].unattributed, runs[0].unattributed)
	return nil
}

// attributionRun is a service with open invoices, and how long each block took.
type attributionRun struct {
	*dust

	url                      string
	open                     int
	attributed, unattributed []time.Duration
}

// pay observes a block with a payment of an open invoice, and one with a payment of an amount that none asks for.
func (r *attributionRun) pay(ctx context.Context, n int) error {
	inv := openInvoice(n*attributedStride%r.open, time.Now())
	for i, into := range []*[]time.Duration{&r.attributed, &r.unattributed} {
		block := r.payment(uint64(2*n+i+2), inv)
		if i == 1 {
			block.Transfers[0].Amount = invoice.NewAmount(uint64(100_000 + n))
		}
		began := time.Now()
		err := r.Observe(ctx, chain.Local, []settle.Block{block})
		*into = append(*into, time.Since(began))
		if err != nil {
			return err
		}
	}
	return nil
}

// verify fails unless each payment of an invoice was attributed, and no other.
func (r *attributionRun) verify(ctx context.Context) error {
	for where, want := range map[string]int{"NOT NULL": attributedBlocks, "NULL": attributedBlocks} {
		n, err := count(ctx, r.url, "SELECT count(*) FROM payments WHERE invoice_id IS "+where)
		if err != nil {
			return err
		}
		if n != want {
			return fmt.Errorf("%d payments have an invoice that IS %s, want %d", n, where, want)
		}
	}
	return nil
}
