package dev

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
)

// transferOf is a transfer of minor units from the payer to the merchant, tagged with the
// invoice, or back.
type transferOf struct {
	what    string // the name of the step
	amount  string
	refund  bool
	pending bool // without waiting for it
}

// transfer sends a transfer, and waits until it is mined unless it stays pending.
func (r *run) transfer(ctx context.Context, t transferOf) (common.Hash, error) {
	node, done, err := chain.Dial(r.cfg.World.Chain.RPCURL)
	if err != nil {
		return common.Hash{}, fmt.Errorf("reach the chain: %w", err)
	}
	defer done()
	key, to, tag := r.cfg.World.Payer.PrivateKey, r.cfg.World.Merchant.Address, common.FromHex(r.made.OnChainInvoiceID)
	if t.refund {
		key, to, tag = r.cfg.World.Merchant.PrivateKey, r.cfg.World.Payer.Address, nil
	}
	from, err := openWallet(node, r.cfg.World.Chain, key)
	if err != nil {
		return common.Hash{}, err
	}
	r.transfers++
	tx, err := from.send(ctx, to, t.amount, tag, r.transfers)
	if err != nil {
		return common.Hash{}, err
	}
	if !t.pending {
		if err := from.awaitMined(ctx, tx); err != nil {
			return tx, err
		}
	}
	return tx, r.print(t.what, "%s minor units, transaction %s", t.amount, tx.Hex())
}

// payAndMine pays while blocks are held: it seals blocks until the newest has the payment.
func (r *run) payAndMine(ctx context.Context) error {
	tx, err := r.transfer(ctx, transferOf{what: "paid", amount: price, pending: true})
	if err != nil {
		return err
	}
	node, done, err := chain.Dial(r.cfg.World.Chain.RPCURL)
	if err != nil {
		return fmt.Errorf("reach the chain: %w", err)
	}
	defer done()
	for {
		if err := r.cfg.World.Mine(ctx); err != nil {
			return err
		}
		if receipt, err := node.TransactionReceipt(ctx, tx); err == nil && receipt != nil {
			return nil
		}
		if !clock.Sleep(ctx, minedPoll, nil) {
			return ctx.Err()
		}
	}
}

// hold holds blocks until release.
func (r *run) hold(ctx context.Context) error {
	err := r.cfg.World.Hold(ctx, holdSeconds)
	r.held = err == nil
	return err
}

// release lets held blocks come. If it fails, the hold ends later by its timeout.
func (r *run) release(ctx context.Context) error {
	if r.held {
		_ = r.cfg.World.Hold(context.WithoutCancel(ctx), 0)
	}
	r.held = false
	return nil
}

// awaitException waits until the invoice has an exception.
func (r *run) awaitException(ctx context.Context, want apitypes.InvoiceException) error {
	for {
		inv, err := r.cfg.API.Invoice(ctx, r.made.ID)
		if err != nil {
			return fmt.Errorf("look at the invoice: %w", err)
		}
		if inv.Exception == want {
			return r.print("invoice", "%s, exception %s, amountPaid %s of %s", inv.Status, inv.Exception, inv.AmountPaid, inv.Amount)
		}
		if !clock.Sleep(ctx, eventPoll, nil) {
			return fmt.Errorf("%s has no exception %s in time: %w", r.made.ID, want, ctx.Err())
		}
	}
}

// redeliver makes the service send the invoice's event of a type again, and waits until it has been attempted.
func (r *run) redeliver(ctx context.Context, typ apitypes.EventType) error {
	found, err := r.find(ctx, typ)
	if err != nil {
		return fmt.Errorf("find %s: %w", typ, err)
	}
	if len(found) == 0 {
		return fmt.Errorf("the service has no %s of the invoice", typ)
	}
	id := found[0].ID()
	for { // a pending delivery would not be repeated
		e, err := r.cfg.API.Event(ctx, id)
		if err != nil {
			return fmt.Errorf("look at the delivery: %w", err)
		}
		if e.Delivery == nil || e.Delivery.Status != apitypes.DeliveryPending {
			break
		}
		if !clock.Sleep(ctx, eventPoll, nil) {
			return fmt.Errorf("the delivery of %s is still pending: %w", id, ctx.Err())
		}
	}
	before, err := r.cfg.API.RedeliverEvent(ctx, id)
	var problem *client.Error
	switch {
	case errors.As(err, &problem) && problem.Code == apitypes.CodeNoDelivery:
		return fmt.Errorf("nothing receives the events of %s: run quittance listen meanwhile, start quittance dev with --webhook-url URL, or set the merchant's endpoint",
			r.cfg.World.Merchant.ID)
	case err != nil:
		return fmt.Errorf("redeliver %s: %w", id, err)
	case before.Delivery == nil:
		r.again = append(r.again, Came{EventRecord: before, Redelivered: true})
		return r.print("redelivered", "%s, to the terminals that listen", id)
	}
	return r.awaitAttempt(ctx, before)
}

// awaitAttempt waits until a redelivered event was attempted again.
func (r *run) awaitAttempt(ctx context.Context, before apitypes.EventRecord) error {
	for {
		e, err := r.cfg.API.Event(ctx, before.ID())
		if err != nil {
			return fmt.Errorf("look at the delivery: %w", err)
		}
		if d := e.Delivery; d != nil && (d.Status != apitypes.DeliveryPending || d.Attempts > before.Delivery.Attempts) {
			e.Attempts = nil
			r.again = append(r.again, Came{EventRecord: e, Redelivered: true})
			return r.print("redelivered", "%s, delivery %s", e.ID(), d.ID)
		}
		if !clock.Sleep(ctx, eventPoll, nil) {
			return fmt.Errorf("%s was not attempted in time: %w", before.ID(), ctx.Err())
		}
	}
}
