package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/webhook"
)

// arrival is a received event.
type arrival struct {
	typ, invoiceID string
	at             time.Time
}

// measureLatency measures the time from the sealing of the block that makes a
// payment final to the receipt of invoice.paid, one payment at a time.
func (b *bench) measureLatency(ctx context.Context, kind string) (err error) {
	arrivals := make(chan arrival, 1024)
	url, stop, err := receive(ctx, arrivals)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	database, err := b.url(ctx, kind, "latency")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: database, Webhook: poster.Endpoint{URL: url, Secret: "whsec_bench"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	var received, paid []time.Duration
	for range b.payments {
		r, p, err := onePayment(ctx, w, arrivals)
		if err != nil {
			return err
		}
		received, paid = append(received, r), append(paid, p)
	}
	b.report.row(kind, "block sealed to payment.received there", quantile(received, 0.5), "", "",
		fmt.Sprintf("median of %d; p99 %v", len(received), quantile(received, 0.99)))
	b.report.row(kind, "final block sealed to invoice.paid there", quantile(paid, 0.5), "", "",
		fmt.Sprintf("median of %d; p99 %v", len(paid), quantile(paid, 0.99)))
	return nil
}

// onePayment pays an invoice and returns how long after the sealing of its blocks each of
// the two events arrived.
func onePayment(ctx context.Context, w *world, arrivals <-chan arrival) (received, paid time.Duration, err error) {
	made, err := w.request(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := w.pay(ctx, made); err != nil {
		return 0, 0, err
	}
	sealed, err := seal(ctx, w.node)
	if err != nil {
		return 0, 0, err
	}
	came, err := await(ctx, arrivals, webhook.PaymentReceived, made.ID)
	if err != nil {
		return 0, 0, err
	}
	received = came.Sub(sealed)
	local, _ := chain.Lookup(chain.Local)
	for range local.Finality.Depth {
		if sealed, err = seal(ctx, w.node); err != nil {
			return 0, 0, err
		}
	}
	if came, err = await(ctx, arrivals, webhook.InvoicePaid, made.ID); err != nil {
		return 0, 0, err
	}
	return received, came.Sub(sealed), nil
}

// request creates an invoice.
func (w *world) request(ctx context.Context) (apitypes.CreateInvoiceResponse, error) {
	return w.requestOf(ctx, 4_900_000)
}

// requestOf creates an invoice of a price.
func (w *world) requestOf(ctx context.Context, price int) (apitypes.CreateInvoiceResponse, error) {
	return w.requestFor(ctx, aShop, price)
}

// requestFor is requestOf for a merchant.
func (w *world) requestFor(ctx context.Context, merchant string, price int) (apitypes.CreateInvoiceResponse, error) {
	return w.server.api.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: merchant, MerchantAddress: devchain.Address(w.node.Keys.Merchant).Hex(), Amount: strconv.Itoa(price),
		Currency: chain.USDC, ChainKey: chain.Local, ExpiresAt: time.Now().Add(24 * time.Hour).Unix(),
	})
}

// pay sends the transfer that pays the invoice, to be sealed in the next block.
func (w *world) pay(ctx context.Context, made apitypes.CreateInvoiceResponse) error {
	amount, _ := new(big.Int).SetString(made.Invoice.TransferAmount, 10)
	_, err := w.node.SendToken(ctx, w.node.Keys.Payer, common.HexToAddress(made.Invoice.MerchantAddress), amount, nil)
	return err
}

// seal seals a block and returns the time.
func seal(ctx context.Context, node *devchain.Chain) (time.Time, error) {
	err := node.Seal(ctx)
	return time.Now(), err
}

// eventPatience bounds the wait for an event.
const eventPatience = 30 * time.Second

func await(ctx context.Context, arrivals <-chan arrival, typ, invoiceID string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	for {
		select {
		case a := <-arrivals:
			if a.typ == typ && a.invoiceID == invoiceID {
				return a.at, nil
			}
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("no %s came for %s", typ, invoiceID)
		}
	}
}

// receive takes events at an address that it returns.
func receive(ctx context.Context, arrivals chan<- arrival) (url string, stop func() error, err error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var e struct {
			Type string `json:"type"`
			Data struct {
				Invoice struct{ ID string }        `json:"invoice"`
				Payment struct{ InvoiceID string } `json:"payment"`
			} `json:"data"`
		}
		if json.Unmarshal(body, &e) == nil {
			arrivals <- arrival{e.Type, e.Data.Invoice.ID + e.Data.Payment.InvoiceID, at}
		}
	})}
	go s.Serve(l) //nolint:errcheck // it ends with Close
	return "http://" + l.Addr().String(), s.Close, nil
}

// quantile returns the q-quantile of durations, rounded.
func quantile(all []time.Duration, q float64) time.Duration {
	return exactQuantile(all, q).Round(100 * time.Microsecond)
}

// exactQuantile returns the q-quantile of durations.
func exactQuantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
