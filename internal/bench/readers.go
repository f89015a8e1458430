package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
)

const (
	// slowReaders is how many clients read full pages slowly.
	slowReaders = 100
	// readersTime is the length of the measurement.
	readersTime = 10 * time.Second
	// readerBuffer is the receive buffer of such a client, and readerRate how much
	// it reads in a tenth of a second.
	readerBuffer, readerRate = 4096, 1024
)

// measureReaders measures the server's resident memory while slow clients read the largest
// pages.
func (b *bench) measureReaders(ctx context.Context, kind string) (err error) {
	url, err := b.url(ctx, kind, "readers")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: url})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.createLarge(ctx, 200); err != nil {
		return err
	}
	before, _, err := w.server.memory()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readersTime)
	defer cancel()
	ended := make(chan int64, slowReaders)
	for range slowReaders {
		go func() {
			n, _ := readSlowly(ctx, strings.TrimPrefix(w.server.url, "http://")) // it ends with the context
			ended <- n
		}()
	}
	most, read := int64(0), int64(0)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for left := slowReaders; left > 0; {
		select {
		case n := <-ended:
			left, read = left-1, read+n
		case <-tick.C:
			now, _, err := w.server.memory()
			if err != nil {
				return err
			}
			most = max(most, now)
		}
	}
	b.report.row(kind, fmt.Sprintf("resident memory, %d slow readers of full pages", slowReaders), fmt.Sprintf("%d MB", most>>20), "", "",
		fmt.Sprintf("%d MB before; %d KB read by each", before>>20, read/slowReaders>>10))
	return nil
}

// createLarge creates invoices whose events have about the maximum size.
func (w *world) createLarge(ctx context.Context, n int) error {
	items := make([]apitypes.LineItem, 100)
	for i := range items {
		items[i] = apitypes.LineItem{Label: strings.Repeat("☕", 180), Amount: "10000"}
	}
	for range n {
		if _, err := w.server.api.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
			MerchantID: "shop", MerchantAddress: devchain.Address(w.node.Keys.Merchant).Hex(), Amount: "1000000",
			Currency: chain.USDC, ChainKey: chain.Local, LineItems: items, ExpiresAt: time.Now().Add(24 * time.Hour).Unix(),
		}); err != nil {
			return err
		}
	}
	return nil
}

// readSlowly asks for a full page of events and reads it slowly, over and over.
// It returns how much it read.
func readSlowly(ctx context.Context, address string) (total int64, err error) {
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return total, err
		}
		n, err := readPage(ctx, conn)
		total += n
		if err = errors.Join(err, conn.Close()); err != nil {
			return total, err
		}
	}
	return total, nil
}

func readPage(ctx context.Context, conn net.Conn) (total int64, err error) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetReadBuffer(readerBuffer); err != nil {
			return 0, err
		}
	}
	if _, err := io.WriteString(conn, "GET /api/events?limit=200 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+operatorKey().Reveal()+"\r\nConnection: close\r\n\r\n"); err != nil {
		return 0, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return total, nil
		}
		n, err := io.CopyN(io.Discard, conn, readerRate)
		total += n
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
