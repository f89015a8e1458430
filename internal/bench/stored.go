package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

const (
	// storedPoll is the interval at which the API is polled for a payment.
	storedPoll = 200 * time.Microsecond
	// pollInterval is the server's without a subscription.
	pollInterval = time.Second
	// polledPayments is the number of payments that are measured without a
	// subscription; each takes about a second.
	polledPayments = 20
)

// measureStored measures the time from the sealing of a payment's block until
// the API shows the payment: with a subscription to the node, and by polling.
func (b *bench) measureStored(ctx context.Context, kind string) error {
	if err := b.stored(ctx, kind, "subscribed", "", b.payments); err != nil {
		return err
	}
	return b.stored(ctx, kind, fmt.Sprintf("polling every %v", pollInterval), polled, polledPayments)
}

func (b *bench) stored(ctx context.Context, kind, how, rpc string, payments int) (err error) {
	database, err := b.url(ctx, kind, "stored_"+rpc)
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: database, RPC: rpc, PollInterval: pollInterval})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	var all []time.Duration
	for range payments {
		made, err := w.request(ctx)
		if err != nil {
			return err
		}
		if err := w.pay(ctx, made); err != nil {
			return err
		}
		if rpc == polled { // at any time between two polls
			select {
			case <-time.After(rand.N(pollInterval)): //nolint:gosec // it spreads out measurements
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		sealed, err := seal(ctx, w.node)
		if err != nil {
			return err
		}
		if err := w.shows(ctx, storedPoll, 1, func(p apitypes.Payment) bool { return p.InvoiceID == made.ID }); err != nil {
			return err
		}
		all = append(all, time.Since(sealed))
	}
	b.report.row(kind, "block sealed to payment.received stored, "+how, quantile(all, 0.5), "", "",
		fmt.Sprintf("median of %d; p99 %v", len(all), quantile(all, 0.99)))
	return nil
}

// shows asks the API every interval until it lists a number of wanted payments, including pending ones.
func (w *world) shows(ctx context.Context, interval time.Duration, want int, wanted func(apitypes.Payment) bool) error {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	for poll := time.NewTicker(interval); ; {
		n := 0
		for p, err := range w.server.api.Payments(ctx, client.PaymentFilter{IncludePending: true, PageSize: min(want, 200)}) {
			if err != nil {
				return fmt.Errorf("wait for %d payments: %w", want, err)
			}
			if !wanted(p) {
				break
			}
			n++
			if n == want {
				return nil
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d payments: %w", want, ctx.Err())
		}
	}
}
