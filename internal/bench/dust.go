package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

const (
	// dustPayments is how many payments of one minor unit an address gets.
	dustPayments = 20_000
	// dustBlock is how many of them a block holds.
	dustBlock = 200
	// dustInvoices is how many open invoices ask for dust, where some do.
	dustInvoices = 99
	// dustPause is the time between two invoices that are created during the measurement.
	dustPause = 50 * time.Millisecond
)

// dustToken is the token of payments of services without a node.
var dustToken = invoice.Address{0x70}

// dustMerchants knows every merchant, and all of them want events.
type dustMerchants struct{}

func (dustMerchants) WantsEvents(string) bool { return true }

func (dustMerchants) Find(context.Context, string) (m invoice.Merchant, known bool, err error) {
	return m, true, nil
}

// measureDust measures how long it takes to observe and to confirm many tiny payments: with
// calldata that names one invoice, without, without while many invoices ask for their
// amount, and as refunds of one payment. While they are observed, invoices are created.
func (b *bench) measureDust(ctx context.Context, kind string) error {
	untagged, err := b.dust(ctx, kind, "untagged")
	if err != nil {
		return err
	}
	tagged, err := b.dust(ctx, kind, "tagged")
	if err != nil {
		return err
	}
	price, err := b.dust(ctx, kind, "price")
	if err != nil {
		return err
	}
	refunds, err := b.dust(ctx, kind, "refunds")
	if err != nil {
		return err
	}
	var filled, filledBelowPaid [2]time.Duration
	for i, name := range []string{"untagged", "tagged"} {
		if filled[i], err = b.fillDust(ctx, kind, name, false); err != nil {
			return err
		}
		if filledBelowPaid[i], err = b.fillDust(ctx, kind, name, true); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%d dust payments that name one invoice", dustPayments)
	b.report.row(kind, what+", observed", tagged.observed, untagged.observed,
		fmt.Sprintf("%.2f", tagged.observed.Seconds()/untagged.observed.Seconds()), "ceiling: as many that name none")
	b.report.row(kind, what+", confirmed", tagged.confirmed, untagged.confirmed,
		fmt.Sprintf("%.2f", tagged.confirmed.Seconds()/untagged.confirmed.Seconds()), "ceiling: as many that name none")
	b.report.row(kind, what+", filled in below a newer one", filled[1], filled[0],
		fmt.Sprintf("%.2f", filled[1].Seconds()/filled[0].Seconds()), "ceiling: as many that name none")
	b.report.row(kind, what+", filled in at once below the payment that paid it", filledBelowPaid[1], filledBelowPaid[0],
		fmt.Sprintf("%.2f", filledBelowPaid[1].Seconds()/filledBelowPaid[0].Seconds()), "ceiling: as many that name none")
	b.report.row(kind, fmt.Sprintf("%d dust payments of a price that %d open invoices ask for, observed", dustPayments, dustInvoices), price.observed, untagged.observed,
		fmt.Sprintf("%.2f", price.observed.Seconds()/untagged.observed.Seconds()),
		fmt.Sprintf("ceiling: as many of another amount; the slowest of %d creates meanwhile took %v", price.created, price.slowest))
	b.report.row(kind, fmt.Sprintf("%d refunds in dust of one payment, observed", dustPayments), refunds.observed, untagged.observed,
		fmt.Sprintf("%.2f", refunds.observed.Seconds()/untagged.observed.Seconds()), "ceiling: as many payments that name no invoice")
	b.report.row(kind, "invoices created meanwhile", tagged.created, untagged.created, "",
		fmt.Sprintf("one every %v at most; the slowest took %v, and %v beside those that name none", dustPause, tagged.slowest, untagged.slowest))
	return nil
}

// dustTimes are the durations of one run.
type dustTimes struct {
	observed, confirmed time.Duration
	created             int           // invoices, while the payments were observed
	slowest             time.Duration // of these
}

func (b *bench) dust(ctx context.Context, kind, name string) (times dustTimes, err error) {
	s, _, err := b.openStore(ctx, kind, "dust_"+name)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d := newDust(s)
	if err := d.start(ctx); err != nil {
		return times, err
	}
	if name == "price" {
		for range dustInvoices {
			if _, err := d.Create(ctx, d.request(1)); err != nil {
				return times, err
			}
		}
	}
	blocks := d.blocks(name)

	creating, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- d.create(creating, &times) }()
	began := time.Now()
	for i := range blocks {
		if err = d.Observe(ctx, chain.Local, blocks[i:i+1]); err != nil {
			break
		}
	}
	times.observed = time.Since(began).Round(time.Millisecond)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return times, err
	}
	began = time.Now()
	err = d.confirm(ctx, blocks[len(blocks)-1].Header)
	times.confirmed = time.Since(began).Round(time.Millisecond)
	return times, err
}

// fillDust measures how long it takes to back-fill the blocks with the dust if indexing
// started above them, at a block with a payment that names the invoice. If this payment paid
// the invoice, one transaction stores the blocks.
func (b *bench) fillDust(ctx context.Context, kind, name string, paid bool) (took time.Duration, err error) {
	s, _, err := b.openStore(ctx, kind, fmt.Sprintf("dust_filled_%s_%t", name, paid))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d := newDust(s)
	if d.invoice, err = d.Create(ctx, d.request(34_000_000)); err != nil {
		return 0, err
	}
	blocks := d.blocks(name)
	last := blocks[len(blocks)-1].Header
	if err := d.Start(ctx, chain.Local, last, blocks[0].Number); err != nil {
		return 0, err
	}
	newer := settle.Block{Header: invoice.Header{Number: last.Number + 1, Hash: numberHash(last.Number + 1), Parent: last.Hash, Time: last.Time}}
	t := d.blocks("tagged")[0].Transfers[0]
	t.Position = invoice.Position{BlockNumber: newer.Number, BlockHash: newer.Hash, BlockTime: newer.Time}
	t.TxHash = newer.Hash
	if paid {
		t.Amount = d.invoice.TransferAmount
	}
	newer.Transfers = []invoice.Transfer{t}
	if err := d.Observe(ctx, chain.Local, []settle.Block{newer}); err != nil {
		return 0, err
	}
	if paid {
		if err := d.confirm(ctx, newer.Header); err != nil {
			return 0, err
		}
		began := time.Now()
		err := d.Fill(ctx, chain.Local, blocks[0].Number, blocks, last)
		return time.Since(began).Round(time.Millisecond), err
	}
	began := time.Now()
	for i, block := range blocks {
		if err := d.Fill(ctx, chain.Local, block.Number, blocks[i:i+1], block.Header); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Round(time.Millisecond), nil
}

// dust is a service, and the invoice that its chain's dust names.
type dust struct {
	*settle.Service
	token   invoice.Address
	invoice invoice.Invoice
}

func newDust(s *store.Store) *dust {
	d := &dust{token: dustToken}
	d.Service = settle.New(settle.Config{
		Store:     s,
		Chains:    []chain.Chain{{Key: chain.Local, ID: 1337, Tokens: []chain.Token{{Currency: chain.USDC, Address: d.token, Decimals: 6}}}},
		Merchants: dustMerchants{},
		Now:       time.Now,
		Rand:      rand.Reader,
	})
	return d
}

// start begins the chain and creates the invoice.
func (d *dust) start(ctx context.Context) (err error) {
	genesis := invoice.Header{Number: 1, Hash: numberHash(1), Time: invoice.Unix(time.Now().Unix())}
	if err := d.Start(ctx, chain.Local, genesis, genesis.Number+1); err != nil {
		return err
	}
	d.invoice, err = d.Create(ctx, d.request(34_000_000))
	return err
}

func (d *dust) request(amount uint64) settle.CreateRequest {
	return settle.CreateRequest{Draft: invoice.Draft{
		MerchantID: "shop", Merchant: invoice.Address{0xaa}, Amount: invoice.NewAmount(amount), Currency: chain.USDC, ChainKey: chain.Local,
		ExpiresAt: invoice.Unix(time.Now().Add(time.Hour).Unix()),
	}}
}

// create creates an invoice every dustPause until the context ends.
func (d *dust) create(ctx context.Context, times *dustTimes) error {
	pause := time.NewTicker(dustPause)
	defer pause.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		began := time.Now()
		_, err := d.Create(ctx, d.request(50_000_000+10_000*n))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		times.created++
		times.slowest = max(times.slowest, time.Since(began).Round(100*time.Microsecond))
	}
}

// blocks returns the blocks with the dust of a name. The blocks of refunds begin with the
// payment that is refunded.
func (d *dust) blocks(name string) []settle.Block {
	t := invoice.Transfer{
		ChainKey: chain.Local, Token: d.token, Currency: chain.USDC, From: invoice.Address{0xbb}, To: d.invoice.Merchant, Amount: invoice.NewAmount(1),
	}
	switch name {
	case "tagged":
		t.Evidence.Calldata = d.invoice.CommitmentID
	case "refunds":
		t.From, t.To = t.To, t.From
	}
	blocks := make([]settle.Block, dustPayments/dustBlock)
	for i := range blocks {
		number := uint64(i + 2)
		b := settle.Block{Header: invoice.Header{Number: number, Hash: numberHash(number), Parent: numberHash(number - 1), Time: invoice.Unix(time.Now().Unix())}}
		for n := range dustBlock {
			t.Position = invoice.Position{BlockNumber: number, BlockHash: b.Hash, BlockTime: b.Time, LogIndex: n}
			t.TxHash = numberHash(number<<32 + uint64(n))
			b.Transfers = append(b.Transfers, t)
		}
		blocks[i] = b
	}
	if name == "refunds" {
		first := &blocks[0].Transfers[0]
		first.From, first.To, first.Amount = t.To, t.From, d.invoice.TransferAmount
	}
	return blocks
}

// confirm makes all blocks final.
func (d *dust) confirm(ctx context.Context, line invoice.Header) error {
	_, revision, err := d.Pending(ctx, chain.Local, line.Number)
	if err != nil {
		return err
	}
	_, err = d.Confirm(ctx, chain.Local, line, revision, 0)
	return err
}

// numberHash returns a hash of a number.
func numberHash(n uint64) invoice.Hash {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, n))
}
