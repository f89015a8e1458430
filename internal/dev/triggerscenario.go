package dev

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/clock"
)

// Scenario is a sequence of events that a receiver must handle.
type Scenario struct {
	Name  string
	About string
	steps []step
}

// step is a step of a scenario.
type step func(r *run, ctx context.Context) error

// Scenarios are all scenarios.
var Scenarios = []Scenario{
	{"underpaid", "a part of the amount is paid, and the invoice expires", []step{
		created(advancedLife), paid(partOfPrice, 1), excepted(apitypes.ExceptionUnderpaid), (*run).expire,
	}},
	{"overpaid", "more than the amount is paid", []step{
		created(triggerLongLife), paid(moreThanPrice, 1), seen(apitypes.EventInvoicePaid),
		excepted(apitypes.ExceptionOverpaid),
	}},
	{"late", "the amount is paid after the invoice has expired", []step{
		created(advancedLife), (*run).expire, paid(price, 1), excepted(apitypes.ExceptionLate),
	}},
	{"duplicate", "the amount is paid twice", []step{
		created(triggerLongLife), paid(price, 1), seen(apitypes.EventInvoicePaid),
		paid(price, 2), excepted(apitypes.ExceptionDuplicate),
	}},
	// The payer's second transaction must differ: with the same content it would be the same transaction, and payment.
	{"reorg", "a payment is dropped by a reorg, and made again", []step{
		(*run).hold, created(triggerLongLife), (*run).payAndMine, seen(apitypes.EventPaymentReceived),
		(*run).reorg, (*run).release, paid(price, 2), seen(apitypes.EventInvoicePaid),
	}},
	{"refund", "the merchant pays a payment back", []step{
		created(triggerLongLife), paid(price, 1), seen(apitypes.EventInvoicePaid),
		sent(transferOf{what: "refunded", amount: price, refund: true}), seen(apitypes.EventPaymentRefunded),
	}},
	{"expired", "nobody pays, and the invoice expires", []step{created(advancedLife), (*run).expire}},
	{"slow-confirm", "a payment is not final for a while", []step{
		(*run).hold, created(triggerLongLife), (*run).payAndMine, seen(apitypes.EventPaymentReceived),
		(*run).wait, (*run).release, seen(apitypes.EventInvoicePaid),
	}},
	// The payment is sent before the outage begins, and sealed during the outage.
	{"provider-outage", "the chain's node refuses requests while the payer pays", []step{
		(*run).hold, created(triggerLongLife), sent(transferOf{what: "payment sent", amount: price, pending: true}),
		(*run).outage, (*run).release, seen(apitypes.EventPaymentReceived), seen(apitypes.EventInvoicePaid),
	}},
	{"out-of-order", "older events arrive after newer ones", []step{
		created(triggerLongLife), paid(price, 1), seen(apitypes.EventInvoicePaid),
		redelivered(apitypes.EventPaymentReceived), redelivered(apitypes.EventInvoiceCreated),
	}},
	{"duplicate-delivery", "an event arrives twice, with one delivery id", []step{
		created(triggerLongLife), paid(price, 1), seen(apitypes.EventInvoicePaid),
		redelivered(apitypes.EventInvoicePaid),
	}},
}

// Amounts and times of scenarios.
const (
	partOfPrice   = "2940000"
	moreThanPrice = "5900000"
	// advancedLife is the lifetime of an invoice that expires by the test clock, in seconds.
	advancedLife = 60
	// holdSeconds bounds how long blocks are held if the scenario is interrupted.
	holdSeconds   = 60
	slowTime      = 2 * time.Second
	outageSeconds = 2
)

// Came is an event that receivers got.
type Came struct {
	apitypes.EventRecord
	Redelivered bool `json:"redelivered,omitempty"`
}

// Played is the result of a scenario: the events in the order in which they arrived.
type Played struct {
	Scenario  string `json:"scenario"`
	InvoiceID string `json:"invoiceId"`
	Events    []Came `json:"events"`
}

// Play plays a scenario, and returns when its last event has arrived.
func Play(ctx context.Context, cfg TriggerConfig, s Scenario) (Played, error) {
	r := &run{cfg: cfg}
	defer func() { _ = r.release(ctx) }()
	for _, take := range s.steps {
		if err := take(r, ctx); err != nil {
			return Played{}, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	events, _, err := cfg.API.EventsAfter(ctx, client.EventFilter{InvoiceID: r.made.ID}, client.AfterStart)
	if err != nil {
		return Played{}, fmt.Errorf("list the events: %w", err)
	}
	played := Played{Scenario: s.Name, InvoiceID: r.made.ID}
	for _, e := range events {
		played.Events = append(played.Events, Came{EventRecord: e})
	}
	played.Events = append(played.Events, r.again...)
	return played, nil
}

// created creates an invoice.
func created(life int64) step {
	return func(r *run, ctx context.Context) error { return r.create(ctx, life) }
}

// paid pays an amount, and waits for the nth payment.received.
func paid(amount string, nth int) step {
	return func(r *run, ctx context.Context) error {
		if _, err := r.transfer(ctx, transferOf{what: "paid", amount: amount}); err != nil {
			return err
		}
		_, err := r.await(ctx, apitypes.EventPaymentReceived, nth)
		return err
	}
}

// sent sends a transfer.
func sent(t transferOf) step {
	return func(r *run, ctx context.Context) error {
		_, err := r.transfer(ctx, t)
		return err
	}
}

// seen waits for the first event of a type.
func seen(typ apitypes.EventType) step {
	return func(r *run, ctx context.Context) error {
		_, err := r.await(ctx, typ, 1)
		return err
	}
}

// excepted waits until the invoice has an exception.
func excepted(want apitypes.InvoiceException) step {
	return func(r *run, ctx context.Context) error { return r.awaitException(ctx, want) }
}

// redelivered makes the service send an event again.
func redelivered(typ apitypes.EventType) step {
	return func(r *run, ctx context.Context) error { return r.redeliver(ctx, typ) }
}

// reorg replaces the newest block.
func (r *run) reorg(ctx context.Context) error {
	if err := r.cfg.World.Reorg(ctx, 1); err != nil {
		return err
	}
	return r.print("reorg", "the block of the payment was replaced, and the payment dropped")
}

// wait leaves a payment without blocks on top for a while.
func (r *run) wait(ctx context.Context) error {
	if !clock.Sleep(ctx, slowTime, nil) {
		return ctx.Err()
	}
	return r.print("still open", "no block for %s, so the payment is not final", slowTime)
}

// outage has the chain's node refuse requests.
func (r *run) outage(ctx context.Context) error {
	if err := r.cfg.World.Outage(ctx, outageSeconds); err != nil {
		return err
	}
	return r.print("outage", "the chain's JSON-RPC refuses requests for %d s", outageSeconds)
}

// expire advances the world's clock until the invoice has expired.
func (r *run) expire(ctx context.Context) error {
	clock, err := Clock(ctx, r.cfg.World.BaseURL)
	if err != nil {
		return err
	}
	by := time.Duration(max(1, r.made.Invoice.ExpiresAt-clock.Now+1)) * time.Second
	if _, err := Advance(ctx, r.cfg.World.BaseURL, by); err != nil {
		return err
	}
	if err := r.print("clock advanced", "%s, past the invoice's expiry", by); err != nil {
		return err
	}
	_, err = r.await(ctx, apitypes.EventInvoiceExpired, 1)
	return err
}
