package dev

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
	"github.com/quittance/quittance/internal/clock"
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
	// The lifetimes of invoices, in seconds. triggerShortLife is for an invoice that must expire;
	// block times may be up to 2 s ahead.
	triggerLongLife  = 3600
	triggerShortLife = 3
)

// eventPoll is how often the service is polled for the event.
const eventPoll = 100 * time.Millisecond

// TriggerConfig is the configuration of Trigger. All fields are required.
type TriggerConfig struct {
	World Info
	API   *client.Client // of the world
	Out   io.Writer      // for the steps
}

// Trigger causes an event of the type, which must be one of Types, and returns it.
func Trigger(ctx context.Context, cfg TriggerConfig, typ apitypes.EventType) (apitypes.EventRecord, error) {
	r := &run{cfg: cfg}
	life := int64(triggerLongLife)
	if typ == apitypes.EventInvoiceExpired {
		life = triggerShortLife
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

// run is one call of Trigger or Play.
type run struct {
	cfg       TriggerConfig
	made      apitypes.CreateInvoiceResponse
	transfers int64 // number of transfers made
	again     []Came
	held      bool // blocks are held
}

// create creates an invoice that expires after life seconds of the world's time.
func (r *run) create(ctx context.Context, life int64) error {
	clock, err := Clock(ctx, r.cfg.World.BaseURL)
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
	if _, err := r.transfer(ctx, transferOf{what: "paid", amount: amount}); err != nil || !refund {
		return err
	}
	if _, err := r.await(ctx, apitypes.EventInvoicePaid, 1); err != nil {
		return err
	}
	_, err := r.transfer(ctx, transferOf{what: "refunded", amount: amount, refund: true})
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
		if !clock.Sleep(ctx, eventPoll, nil) {
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
