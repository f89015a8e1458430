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
	// priceAmount is the price, in minor units.
	priceAmount = 4_900_000
	// priceCreates is how many more are created, one after the other.
	priceCreates = 600
)

// measurePrice measures how long it takes to create an invoice, and to observe a block with
// its payment, at an address with very many closed invoices of the same price and at one
// without. The two take turns, so that other load on the machine affects both equally.
func (b *bench) measurePrice(ctx context.Context, kind string) (failed error) {
	var runs [2]priceRun
	for i, closed := range []int{0, priceClosed} {
		s, _, err := b.openStore(ctx, kind, fmt.Sprintf("price_%d", closed))
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, s.Close()) }()
		runs[i].dust = newDust(s)
		if err := runs[i].start(ctx); err != nil {
			return err
		}
		if err := runs[i].insertClosed(ctx, s, closed); err != nil {
			return err
		}
	}
	for n := range priceCreates {
		for i := range runs {
			if err := runs[i].createAndPay(ctx, uint64(n+2)); err != nil {
				return err
			}
		}
	}
	row := func(what string, full, empty time.Duration) {
		b.report.row(kind, fmt.Sprintf("%s, %d closed of the price", what, priceClosed),
			(full / priceCreates).Round(time.Microsecond), (empty / priceCreates).Round(time.Microsecond),
			fmt.Sprintf("%.2f", full.Seconds()/empty.Seconds()), fmt.Sprintf("ceiling: none closed; mean of %d, in turns", priceCreates))
	}
	row("create", runs[1].create, runs[0].create)
	row("block with one payment", runs[1].block, runs[0].block)
	return nil
}

// priceRun is a service, and how long its creates and its blocks took in all.
type priceRun struct {
	*dust

	create, block time.Duration
}

// createAndPay creates an invoice of the price, and observes the block of the
// given number with one payment of its transfer amount.
func (r *priceRun) createAndPay(ctx context.Context, number uint64) error {
	began := time.Now()
	inv, err := r.Create(ctx, r.request(priceAmount))
	r.create += time.Since(began)
	if err != nil {
		return err
	}
	if inv.TransferAmount.IsZero() {
		return fmt.Errorf("an invoice on %s has no transfer amount", chain.Local)
	}
	block := r.payment(number, inv)
	began = time.Now()
	err = r.Observe(ctx, chain.Local, []settle.Block{block})
	r.block += time.Since(began)
	return err
}

// insertClosed inserts expired invoices of the price whose transfer amounts
// can be used again.
func (d *dust) insertClosed(ctx context.Context, s *store.Store, closed int) error {
	all := make([]invoice.Invoice, closed)
	for n := range all {
		all[n] = d.invoice
		all[n].ID, all[n].CommitmentID = fmt.Sprintf("inv_%09d", n), numberHash(uint64(n)<<8)
		all[n].Amount = invoice.NewAmount(priceAmount)
		all[n].TransferAmount = invoice.NewAmount(priceAmount + 1 + uint64(n%invoice.MaxSuffix))
		all[n].FromBlock = uint64(n / invoice.MaxSuffix) // where invoices with its amount were closed
		all[n].Status, all[n].ClosedBlock = invoice.Expired, all[n].FromBlock+1
		all[n].ExpiresAt = time.Now().Add(-2 * settle.MinQuarantine) // their amounts may be assigned again
		all[n].CreatedAt = all[n].ExpiresAt.Add(-time.Hour)
	}
	for part := range slices.Chunk(all, 10_000) {
		err := s.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.InsertInvoices(ctx, part)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// payment returns a block that holds one payment of the invoice's transfer
// amount.
func (d *dust) payment(number uint64, inv invoice.Invoice) settle.Block {
	b := settle.Block{Header: invoice.Header{Number: number, Hash: numberHash(number), Parent: numberHash(number - 1), Time: invoice.Unix(time.Now().Unix())}}
	b.Transfers = []invoice.Transfer{{
		ChainKey: chain.Local, Token: d.token, Currency: chain.USDC, From: invoice.Address{0xbb}, To: inv.Merchant, Amount: inv.TransferAmount,
		TxHash:   numberHash(number << 32),
		Position: invoice.Position{BlockNumber: number, BlockHash: b.Hash, BlockTime: b.Time},
	}}
	return b
}
