// Package trigger causes an event in a development world: it creates an invoice, and
// pays or refunds it over the chain's JSON-RPC, as merchants and payers do.
package trigger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/wait"
)

// Types are the types of events that Run can cause.
var Types = []apitypes.EventType{
	apitypes.EventInvoiceCreated, apitypes.EventPaymentReceived, apitypes.EventInvoicePaid,
	apitypes.EventPaymentRefunded, apitypes.EventInvoiceExpired,
}

// The invoice.
const (
	price = "4900000" // minor units: 4.90 USDC
	label = "Sent by quittance trigger"
	// longLife and shortLife are the lifetimes of invoices, in seconds. shortLife is for an invoice that must expire;
	// block times may be up to 2 s ahead.
	longLife  = 3600
	shortLife = 3
)

// eventPoll is how often the service is polled for the event.
const eventPoll = 100 * time.Millisecond

// Config is the configuration of Run. All fields are required.
type Config struct {
	World dev.Info
	API   *client.Client // of the world
	Out   io.Writer      // for the steps
}

// Run causes an event of the type, which must be one of Types, and returns it.
func Run(ctx context.Context, cfg Config, typ apitypes.EventType) (apitypes.EventRecord, error) {
	r := &run{cfg: cfg}
	life := int64(longLife)
	if typ == apitypes.EventInvoiceExpired {
		life = shortLife
	}
	if err := r.create(ctx, life); err != nil {
		return apitypes.EventRecord{}, err
	}
	if slices.Contains([]apitypes.EventType{apitypes.EventPaymentReceived, apitypes.EventInvoicePaid, apitypes.EventPaymentRefunded}, typ) {
		if err := r.pay(ctx, typ == apitypes.EventPaymentRefunded); err != nil {
			return apitypes.EventRecord{}, err
		}
	}
	return r.await(ctx, typ, 1)
}

// run is one call of Run or Play.
type run struct {
	cfg       Config
	made      apitypes.CreateInvoiceResponse
	transfers int64 // number of transfers made
	again     []Came
}

// create creates an invoice that expires after life seconds of the world's time.
func (r *run) create(ctx context.Context, life int64) error {
	clock, err := dev.Clock(ctx, r.cfg.World.BaseURL)
	if err != nil {
		return err
	}
	r.made, err = r.cfg.API.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		MerchantID: r.cfg.World.Merchant.ID, MerchantAddress: r.cfg.World.Merchant.Address, Amount: price, Currency: chain.USDC,
		ChainKey: r.cfg.World.Chain.ChainKey, LineItems: []apitypes.LineItem{{Label: label, Amount: price}}, ExpiresAt: clock.Now + life,
	})
	if err != nil {
		return fmt.Errorf("create an invoice: %w", err)
	}
	return r.print("invoice created", "%s, %s", r.made.ID, r.cfg.API.URL(r.made.CheckoutURL))
}

// pay pays the invoice and, with refund, refunds it once it is paid.
func (r *run) pay(ctx context.Context, refund bool) error {
	amount := cmp.Or(r.made.Invoice.TransferAmount, price) // empty if all suffixes are taken
	if _, err := r.transfer(ctx, transfer{what: "paid", amount: amount}); err != nil || !refund {
		return err
	}
	if _, err := r.await(ctx, apitypes.EventInvoicePaid, 1); err != nil {
		return err
	}
	_, err := r.transfer(ctx, transfer{what: "refunded", amount: amount, refund: true})
	return err
}

// await waits for the nth event of a type about the invoice.
func (r *run) await(ctx context.Context, typ apitypes.EventType, nth int) (apitypes.EventRecord, error) {
	for {
		events, err := r.find(ctx, typ)
		switch {
		case err == nil && len(events) >= nth:
			e := events[nth-1]
			return e, r.print("event recorded", "%s %s", typ, e.ID())
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return apitypes.EventRecord{}, fmt.Errorf("wait for %s: %w", typ, err)
		}
		if !wait.Sleep(ctx, eventPoll, nil) {
			return apitypes.EventRecord{}, fmt.Errorf("no %s for %s in time: %w", typ, r.made.ID, ctx.Err())
		}
	}
}

// find returns the events of a type about the invoice, oldest first.
func (r *run) find(ctx context.Context, typ apitypes.EventType) ([]apitypes.EventRecord, error) {
	events, _, err := r.cfg.API.EventsAfter(ctx, client.EventFilter{InvoiceID: r.made.ID, Type: typ}, client.AfterStart)
	return events, err
}

// print writes a step.
func (r *run) print(what, format string, args ...any) error {
	_, err := fmt.Fprintf(r.cfg.Out, "%-15s %s\n", what, fmt.Sprintf(format, args...))
	return err
}
