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
	play  func(r *run, ctx context.Context) error
}

// Scenarios are all scenarios.
var Scenarios = []Scenario{
	{"underpaid", "a part of the amount is paid, and the invoice expires", (*run).underpaid},
	{"overpaid", "more than the amount is paid", (*run).overpaid},
	{"late", "the amount is paid after the invoice has expired", (*run).late},
	{"duplicate", "the amount is paid twice", (*run).duplicate},
	{"reorg", "a payment is dropped by a reorg, and made again", (*run).reorg},
	{"refund", "the merchant pays a payment back", (*run).refund},
	{"expired", "nobody pays, and the invoice expires", (*run).expired},
	{"slow-confirm", "a payment is not final for a while", (*run).slowConfirm},
	{"provider-outage", "the chain's node refuses requests while the payer pays", (*run).providerOutage},
	{"out-of-order", "older events arrive after newer ones", (*run).outOfOrder},
	{"duplicate-delivery", "an event arrives twice, with one delivery id", (*run).duplicateDelivery},
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
	if err := s.play(r, ctx); err != nil {
		return Played{}, fmt.Errorf("%s: %w", s.Name, err)
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

func (r *run) underpaid(ctx context.Context) error {
	if err := r.createAndPay(ctx, advancedLife, partOfPrice); err != nil {
		return err
	}
	if err := r.awaitException(ctx, apitypes.ExceptionUnderpaid); err != nil {
		return err
	}
	return r.expire(ctx)
}

func (r *run) overpaid(ctx context.Context) error {
	if err := r.createAndPay(ctx, triggerLongLife, moreThanPrice); err != nil {
		return err
	}
	if _, err := r.await(ctx, apitypes.EventInvoicePaid, 1); err != nil {
		return err
	}
	return r.awaitException(ctx, apitypes.ExceptionOverpaid)
}

func (r *run) late(ctx context.Context) error {
	if err := r.expired(ctx); err != nil {
		return err
	}
	if err := r.payAndAwait(ctx, price, 1); err != nil {
		return err
	}
	return r.awaitException(ctx, apitypes.ExceptionLate)
}

func (r *run) duplicate(ctx context.Context) error {
	if err := r.paid(ctx); err != nil {
		return err
	}
	if err := r.payAndAwait(ctx, price, 2); err != nil {
		return err
	}
	return r.awaitException(ctx, apitypes.ExceptionDuplicate)
}

// reorg replaces the block of a payment before it is final. The payer's second transaction must differ: with the same
// content it would be the same transaction, and the same payment.
func (r *run) reorg(ctx context.Context) error {
	release, err := r.holdBlocks(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.create(ctx, triggerLongLife); err != nil {
		return err
	}
	if err := r.payAndMine(ctx); err != nil {
		return err
	}
	if _, err := r.await(ctx, apitypes.EventPaymentReceived, 1); err != nil {
		return err
	}
	if err := r.cfg.World.Reorg(ctx, 1); err != nil {
		return err
	}
	if err := r.print("reorg", "the block of the payment was replaced, and the payment dropped"); err != nil {
		return err
	}
	release()
	if err := r.payAndAwait(ctx, price, 2); err != nil {
		return err
	}
	_, err = r.await(ctx, apitypes.EventInvoicePaid, 1)
	return err
}

func (r *run) refund(ctx context.Context) error {
	if err := r.paid(ctx); err != nil {
		return err
	}
	if _, err := r.transfer(ctx, transferOf{what: "refunded", amount: price, refund: true}); err != nil {
		return err
	}
	_, err := r.await(ctx, apitypes.EventPaymentRefunded, 1)
	return err
}

func (r *run) expired(ctx context.Context) error {
	if err := r.create(ctx, advancedLife); err != nil {
		return err
	}
	return r.expire(ctx)
}

func (r *run) slowConfirm(ctx context.Context) error {
	release, err := r.holdBlocks(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.create(ctx, triggerLongLife); err != nil {
		return err
	}
	if err := r.payAndMine(ctx); err != nil {
		return err
	}
	if _, err := r.await(ctx, apitypes.EventPaymentReceived, 1); err != nil {
		return err
	}
	if !clock.Sleep(ctx, slowTime, nil) {
		return ctx.Err()
	}
	if err := r.print("still open", "no block for %s, so the payment is not final", slowTime); err != nil {
		return err
	}
	release()
	_, err = r.await(ctx, apitypes.EventInvoicePaid, 1)
	return err
}

// providerOutage sends the payment before the outage begins, and seals it during the outage.
func (r *run) providerOutage(ctx context.Context) error {
	release, err := r.holdBlocks(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := r.create(ctx, triggerLongLife); err != nil {
		return err
	}
	if _, err := r.transfer(ctx, transferOf{what: "payment sent", amount: price, pending: true}); err != nil {
		return err
	}
	if err := r.cfg.World.Outage(ctx, outageSeconds); err != nil {
		return err
	}
	if err := r.print("outage", "the chain's JSON-RPC refuses requests for %d s", outageSeconds); err != nil {
		return err
	}
	release()
	if _, err := r.await(ctx, apitypes.EventPaymentReceived, 1); err != nil {
		return err
	}
	_, err = r.await(ctx, apitypes.EventInvoicePaid, 1)
	return err
}

func (r *run) outOfOrder(ctx context.Context) error {
	if err := r.paid(ctx); err != nil {
		return err
	}
	for _, typ := range []apitypes.EventType{apitypes.EventPaymentReceived, apitypes.EventInvoiceCreated} {
		if err := r.redeliver(ctx, typ); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) duplicateDelivery(ctx context.Context) error {
	if err := r.paid(ctx); err != nil {
		return err
	}
	return r.redeliver(ctx, apitypes.EventInvoicePaid)
}

// paid creates an invoice and pays it.
func (r *run) paid(ctx context.Context) error {
	if err := r.createAndPay(ctx, triggerLongLife, price); err != nil {
		return err
	}
	_, err := r.await(ctx, apitypes.EventInvoicePaid, 1)
	return err
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
