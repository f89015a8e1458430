package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/devchain"
)

// connections is how many clients create invoices at the same time, and how
// many rows the ceiling groups.
const connections = 64

// measureCreates measures how many invoices are created in a second through
// HTTP, and how many a bare program writes the same rows of.
func (b *bench) measureCreates(ctx context.Context, kind string) (err error) {
	url, err := b.url(ctx, kind, "ceiling")
	if err != nil {
		return err
	}
	ceiling, note, err := b.ceiling(ctx, kind, url)
	if err != nil {
		return fmt.Errorf("ceiling: %w", err)
	}
	if url, err = b.url(ctx, kind, "creates"); err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: url})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	before, err := w.server.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	made, err := create(ctx, w, connections, func(int64) bool { return time.Since(began) < b.creates })
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := w.server.cpu()
	if err != nil {
		return err
	}
	rate := float64(made) / took.Seconds()
	b.report.ratio(kind, "creates/s, 64 connections", fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", ceiling), rate/ceiling, "ceiling: "+note)
	b.report.row(kind, "server CPU per create", ((after - before) / time.Duration(made)).Round(time.Microsecond), "", "", "")
	return nil
}

// create creates invoices through HTTP with as many connections, as long as more returns
// true for the number of creates begun so far. Amounts and addresses vary as in a busy
// service.
func create(ctx context.Context, w *world, connections int, more func(begun int64) bool) (int64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	var begun, made atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, connections)
	merchant := devchain.Address(w.node.Keys.Merchant).Hex()
	expires := time.Now().Add(24 * time.Hour).Unix()
	for range connections {
		group.Go(func() {
			for {
				n := begun.Add(1)
				if !more(n) || ctx.Err() != nil {
					return
				}
				if err := post(ctx, client, w.server.url+"/api/invoices", "", newInvoice(w.shop(n), merchant, n, expires)); err != nil {
					errs <- err
					return
				}
				made.Add(1)
			}
		})
	}
	group.Wait()
	close(errs)
	return made.Load(), <-errs
}

// shop returns the merchant of the n-th invoice.
func (w *world) shop(n int64) string {
	if w.merchants == 0 {
		return aShop
	}
	return fmt.Sprint(aShop, "-", n%w.merchants)
}

// aShop is the merchant of most measurements.
const aShop = "shop"

// newInvoice returns the request for the n-th invoice, of a merchant that has the address.
func newInvoice(merchantID, address string, n, expires int64) []byte {
	return fmt.Appendf(nil, `{"merchantId":"%s","merchantAddress":"%s","amount":"%d","currency":"USDC","chainKey":"local","expiresAt":%d}`,
		merchantID, address, 1_000_000+1000*n, expires)
}

// post creates an invoice, with an idempotency key unless it is empty.
func post(ctx context.Context, client *http.Client, url, key string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+operatorKey().Reveal())
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %s", errRefused, text)
	case res.StatusCode != http.StatusCreated:
		return fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	return nil
}

// errRefused: the server is too busy for a create.
var errRefused = errors.New("status 503")

// measureMemory measures the server's resident memory with many open
// invoices.
func (b *bench) measureMemory(ctx context.Context, kind string) (err error) {
	if b.open == 0 {
		return nil
	}
	url, err := b.url(ctx, kind, "memory")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: url})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	empty, _, err := w.server.memory()
	if err != nil {
		return err
	}
	if _, err := create(ctx, w, connections, func(begun int64) bool { return begun <= int64(b.open) }); err != nil {
		return err
	}
	// The block is read while all of them are open.
	if err := w.node.Seal(ctx); err != nil {
		return err
	}
	full, _, err := w.server.memory()
	if err != nil {
		return err
	}
	b.report.row(kind, fmt.Sprintf("resident memory, %d open", b.open), fmt.Sprintf("%d MB", full>>20), "", "",
		fmt.Sprintf("%d MB when empty", empty>>20))
	return nil
}
