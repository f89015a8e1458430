package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// measureExports measures how many invoices are created in a second with and without an
// export of all payments as CSV, and the server's resident memory.
func (b *bench) measureExports(ctx context.Context, kind string) (err error) {
	url, err := b.url(ctx, kind, "exports")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: url})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.seedPayments(ctx, url, b.exported); err != nil {
		return fmt.Errorf("make payments: %w", err)
	}
	rate := func(during <-chan struct{}) (float64, error) {
		began := time.Now()
		made, err := create(ctx, w, connections, func(int64) bool {
			select {
			case <-during:
				return false
			default:
				return during != nil || time.Since(began) < b.creates
			}
		})
		return float64(made) / time.Since(began).Seconds(), err
	}
	before, err := rate(nil)
	if err != nil {
		return err
	}
	_, peakBefore, err := w.server.memory()
	if err != nil {
		return err
	}
	began, ended := time.Now(), make(chan struct{})
	var rows int
	var exportErr error
	go func() {
		defer close(ended)
		rows, exportErr = w.export(ctx)
	}()
	beside, err := rate(ended)
	<-ended
	if err = errors.Join(err, exportErr); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := rate(nil)
	if err != nil {
		return err
	}
	_, peak, err := w.server.memory()
	if err != nil {
		return err
	}
	alone := (before + after) / 2
	b.report.row(kind, fmt.Sprintf("creates/s beside an export of %d payments", rows), fmt.Sprintf("%.0f", beside), fmt.Sprintf("%.0f", alone), fmt.Sprintf("%.2f", beside/alone),
		fmt.Sprintf("ceiling: without, before and after; the export took %.1fs", took.Seconds()))
	b.report.row(kind, "resident memory with the export", fmt.Sprintf("%d MB", peak>>20), "", "", fmt.Sprintf("its peak; %d MB before the export", peakBefore>>20))
	return nil
}

// export reads the export of payments, and returns the number of its rows.
func (w *world) export(ctx context.Context) (rows int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.url+"/api/payments", nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept", "text/csv")
	r.Header.Set("Authorization", "Bearer "+operatorKey().Reveal())
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return 0, errors.New(response.Status)
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := response.Body.Read(buffer)
		rows += bytes.Count(buffer[:n], []byte("\n"))
		if errors.Is(err, io.EOF) {
			return rows - 1, nil // without the header
		}
		if err != nil {
			return rows, err
		}
	}
}

// seedPayments stores confirmed payments of one invoice.
func (w *world) seedPayments(ctx context.Context, url string, n int) (err error) {
	if err := w.waitReady(ctx); err != nil { // payments refer to the chain's row
		return err
	}
	merchant := devchain.Address(w.node.Keys.Merchant)
	made, err := w.server.api.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: "shop", MerchantAddress: merchant.Hex(), Amount: "1000000", Currency: chain.USDC, ChainKey: chain.Local, ExpiresAt: time.Now().Add(24 * time.Hour).Unix(),
	})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	at := time.Now().Truncate(time.Second)
	for first := 0; first < n; first += seedBatch {
		var rows []store.PaymentRow
		for i := first; i < min(first+seedBatch, n); i++ {
			t := invoice.Transfer{
				ChainKey: chain.Local, TxHash: numberHash(uint64(i)), Position: invoice.Position{BlockNumber: 1, BlockHash: numberHash(1), BlockTime: at, LogIndex: i},
				Token: invoice.Address(w.node.Token), Currency: chain.USDC, From: account(i), To: invoice.Address(merchant), Amount: invoice.NewAmount(uint64(i) + 1),
			}
			rows = append(rows, store.PaymentRow{SeenID: fmt.Sprintf("%026d", i), Payment: invoice.Payment{
				ID: invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, 0), InvoiceID: made.ID, MerchantID: "shop", Method: invoice.ByCalldata,
				Status: invoice.Confirmed, ObservedAt: at, ConfirmedAt: at, Transfer: t,
			}})
		}
		if err := s.Update(ctx, func(tx *store.Tx) error { return tx.SavePayments(ctx, rows) }); err != nil {
			return err
		}
	}
	return nil
}
