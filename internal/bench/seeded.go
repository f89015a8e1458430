package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/seed"
	"github.com/quittance/quittance/internal/store"
)

// startSeeded starts a server on an empty database that it fills with rows.
func startSeeded(ctx context.Context, database string, rows *seed.Maker, conf serverConfig) (_ *world, err error) {
	node, err := devchain.Start(ctx, devchain.Config{})
	if err != nil {
		return nil, err
	}
	if err = loadRows(ctx, database, node, rows); err == nil {
		err = settleRows(ctx, database)
	}
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	conf.Database = database
	return startOn(ctx, node, conf)
}

// settleRows has PostgreSQL do what it does in time after many rows were written, so that it is not
// measured. On SQLite a load ends with a checkpoint.
func settleRows(ctx context.Context, database string) error {
	if strings.HasPrefix(database, "sqlite:") {
		return nil
	}
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if err := execute(ctx, database, statement); err != nil {
			return err
		}
	}
	return nil
}

// loadRows fills an empty database with rows, as if the service had read the node's chain.
func loadRows(ctx context.Context, database string, node *devchain.Chain, rows *seed.Maker) error {
	head, err := newestBlock(ctx, node)
	if err != nil {
		return err
	}
	return loadChanged(ctx, database, rows, func(r *store.Rows) {
		for i := range r.Chains {
			r.Chains[i].Head = head
		}
	})
}

// loadChanged fills an empty database with rows, after a change of each batch.
func loadChanged(ctx context.Context, database string, rows *seed.Maker, change func(*store.Rows)) (err error) {
	s, err := store.Open(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Load(ctx, func(yield func(store.Rows, error) bool) {
		for r, err := range rows.Batches() {
			change(&r)
			if !yield(r, err) {
				return
			}
		}
	}, func(store.LoadProgress) {})
}

// newestBlock returns the newest block of a node.
func newestBlock(ctx context.Context, node *devchain.Chain) (invoice.Header, error) {
	head, err := node.Client().HeaderByNumber(ctx, nil)
	if err != nil {
		return invoice.Header{}, err
	}
	return invoice.Header{Number: head.Number.Uint64(), Hash: invoice.Hash(head.Hash()), Time: time.Unix(int64(head.Time), 0)}, nil
}

// appendRows inserts rows into a database that a server uses.
func appendRows(ctx context.Context, url string, rows iter.Seq2[store.Rows, error]) (err error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for r, err := range rows {
		if err == nil {
			err = s.Append(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openRows returns open invoices of one settlement address that expire at a time.
func openRows(n int, expires time.Time) iter.Seq2[store.Rows, error] {
	return func(yield func(store.Rows, error) bool) {
		since := expires.Add(-time.Hour)
		rows := store.Rows{Since: since, Addresses: []store.SettlementAddress{{ChainKey: chain.Local, Address: account(0), MerchantID: "m0"}}}
		for first := 0; yield(rows, nil) && first < n; first += seedBatch {
			rows = store.Rows{}
			for row := first; row < min(first+seedBatch, n); row++ {
				inv := openInvoice(row, expires)
				rows.Invoices = append(rows.Invoices, inv)
				rows.Events = append(rows.Events, store.LoadedEvent{Event: store.Event{
					ID: fmt.Sprintf("evt_%026d", row), Seq: int64(row) + 1, Type: invoice.EventCreated, Subject: inv.ID, InvoiceID: inv.ID, MerchantID: "m0",
					Body: []byte(eventBody), CreatedAt: since,
				}})
			}
		}
	}
}

// openInvoice returns an invoice of openRows. Each has another amount.
func openInvoice(row int, expires time.Time) invoice.Invoice {
	price := invoice.NewAmount(uint64(1_000_000 + row))
	return invoice.Invoice{
		ID: openID(row), CommitmentID: numberHash(uint64(row)), MerchantID: "m0", ChainKey: chain.Local, Currency: chain.USDC, Status: invoice.Open,
		CreatedAt: expires.Add(-time.Hour), FromBlock: 1, TransferAmount: price,
		Terms: invoice.Terms{Merchant: account(0), Token: dustToken, Amount: price, ExpiresAt: expires},
	}
}

// openID is the id of an invoice of openRows.
func openID(row int) string { return fmt.Sprintf("inv_%026d", row) }
