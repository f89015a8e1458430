package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/quittance/quittance/bench/seed"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	fillRole = "fill"
	// fillBatch is the number of rows per batch.
	fillBatch = 2000
	// fillMerchants is the number of merchants with deliveries.
	fillMerchants = 100
)

// fillConfig defines the rows for an empty database: one of the three kinds.
type fillConfig struct {
	Database string

	// Year has invoices of a year, as if the service had read a chain up to Head.
	Year *seed.Config
	Head invoice.Header

	// Open invoices of a history. The first Shared have the addresses of the history's shops, and each of the others
	// has its own address.
	History      *history
	Open, Shared int
	Token        invoice.Address

	// Deliveries that are due.
	Deliveries int
}

// fill fills a database in a separate process, so that the program under test writes the rows for its schema.
func fill(ctx context.Context, text string) (err error) {
	var c fillConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	rows := c.deliveries()
	switch {
	case c.Year != nil:
		if rows, err = c.year(); err != nil {
			return err
		}
	case c.History != nil:
		rows = c.invoices()
	}
	s, err := db.Open(ctx, c.Database)
	if err != nil {
		return err
	}
	if err := errors.Join(seed.Load(ctx, s, rows), s.Close()); err != nil {
		return err
	}
	fmt.Println("filled")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// newFilled returns the URL of a database with rows. PostgreSQL has finished the work that follows a load, so that a
// measurement does not include it.
func (r *measurement) newFilled(ctx context.Context, c fillConfig) (url string, err error) {
	if url, err = r.newDatabase(ctx); err != nil {
		return "", err
	}
	c.Database = url
	p, _, err := startProcess(ctx, r.program, fillRole, c)
	if err != nil {
		return "", fmt.Errorf("fill the database: %w", err)
	}
	if err := p.stop(); err != nil || strings.HasPrefix(url, "sqlite:") {
		return url, err
	}
	return url, errors.Join(execute(ctx, url, "VACUUM ANALYZE"), execute(ctx, url, "CHECKPOINT"))
}

func (c fillConfig) year() (iter.Seq2[seed.Rows, error], error) {
	maker, err := seed.New(*c.Year)
	if err != nil {
		return nil, err
	}
	return func(yield func(seed.Rows, error) bool) {
		for rows, err := range maker.Batches() {
			if rows.Heads != nil {
				rows.Heads[chain.Local] = c.Head
			}
			if !yield(rows, err) {
				return
			}
		}
	}, nil
}

// batches makes rows in batches, the nth by add.
func batches(first seed.Rows, n int, add func(rows *seed.Rows, n int)) iter.Seq2[seed.Rows, error] {
	return func(yield func(seed.Rows, error) bool) {
		rows := first
		for i := range n {
			add(&rows, i)
			if (i+1)%fillBatch == 0 || i == n-1 {
				if !yield(rows, nil) {
					return
				}
				rows = seed.Rows{Since: first.Since}
			}
		}
	}
}

func (c fillConfig) invoices() iter.Seq2[seed.Rows, error] {
	now := time.Now()
	return batches(seed.Rows{Since: now.Add(-2 * historyAge)}, c.Open, func(rows *seed.Rows, n int) {
		inv := c.History.invoiceOf(n, n >= c.Shared, c.Token, now)
		rows.Invoices = append(rows.Invoices, inv)
		if n < c.History.Shops || n >= c.Shared {
			rows.Addresses = append(rows.Addresses, addressOf(inv))
		}
	})
}

func addressOf(inv invoice.Invoice) access.SettlementAddress {
	return access.SettlementAddress{ChainKey: inv.ChainKey, Address: inv.Merchant, MerchantID: inv.MerchantID}
}

// deliveries makes an invoice for each merchant, and events about them.
func (c fillConfig) deliveries() iter.Seq2[seed.Rows, error] {
	now := time.Now().Truncate(time.Second)
	first, invoices := seed.Rows{Since: now.Add(-time.Hour)}, make([]invoice.Invoice, fillMerchants)
	for m := range invoices {
		inv := history{Shops: fillMerchants}.invoiceOf(m, true, invoice.Address{1}, now)
		inv.MerchantID = fmt.Sprintf("m%d", m)
		invoices[m] = inv
		first.Addresses = append(first.Addresses, addressOf(inv))
	}
	first.Invoices = invoices
	return batches(first, c.Deliveries, func(rows *seed.Rows, n int) {
		inv := invoices[n%fillMerchants]
		rows.Events = append(rows.Events, seed.Event{Status: webhooks.Pending, Event: webhooks.Event{
			ID: fmt.Sprintf("evt_%026d", n), Seq: int64(n) + 1, Type: invoice.EventReceived, Subject: fmt.Sprint(n),
			MerchantID: inv.MerchantID, InvoiceID: inv.ID, Body: []byte(eventBody), CreatedAt: now,
			DeliveryID: fmt.Sprintf("dlv_%026d", n), Due: now,
		}})
	})
}

// eventBody is about as long as the body of invoice.created.
var eventBody = `{"data":"` + strings.Repeat("x", 600) + `"}`
