package e2e

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/webhook"
)

// mined waits until a transaction is mined, and returns an error if it failed.
func (d *drill) mined(tx common.Hash) error {
	receipt, err := d.node.Mined(d.ctx, tx)
	if err == nil && receipt.Status != types.ReceiptStatusSuccessful {
		err = fmt.Errorf("the transaction %s failed", tx)
	}
	return err
}

// openShop creates an invoice at the shared settlement address, so that every backup knows it.
func (d *drill) openShop() {
	d.Helper()
	for _, o := range d.orders {
		if !o.newTill {
			if err := d.create(o); err != nil {
				d.Fatal(err)
			}
			return
		}
	}
}

// trade makes buyers take the steps of the orders, several at a time, until the gate is closed.
func (d *drill) trade() *sync.WaitGroup {
	var buyers sync.WaitGroup
	for range drillBuyers {
		buyers.Go(func() {
			for o := d.take(); o != nil; o = d.take() {
				if !d.gate.enter() {
					return
				}
				if err := d.step(o); err != nil && !d.killed.Load() {
					d.Errorf("order %d: %v", o.number, err)
					return
				}
				d.giveBack(o)
			}
		})
	}
	go func() {
		buyers.Wait()
		d.gate.update(func() { d.gate.idle = true })
	}()
	d.Cleanup(func() {
		d.killed.Store(true)
		d.gate.close()
		buyers.Wait()
	})
	return &buyers
}

// take returns an order that is ready for its next step, or nil.
func (d *drill) take() *drillOrder {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		return nil
	}
	i := d.random.IntN(len(d.waiting))
	o := d.waiting[i]
	d.waiting = slices.Delete(d.waiting, i, i+1)
	return o
}

// giveBack puts an unfinished order back.
func (d *drill) giveBack(o *drillOrder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !o.done() && (o.made != nil || !o.begun) {
		d.waiting = append(d.waiting, o)
	}
}

// step takes the next step of an order.
func (d *drill) step(o *drillOrder) error {
	switch {
	case o.made == nil:
		return d.create(o)
	case len(o.payments) < o.parts:
		if err := d.awaitTraceable(o); err != nil {
			return err
		}
		return d.payPart(o)
	case o.refund > 0 && len(o.refunds) == 0:
		return d.payBack(o)
	case o.void && o.voided == nil:
		return d.void(o)
	}
	return nil
}

// void makes an order's invoice void, once the blocks are read that could hold a payment of it.
func (d *drill) void(o *drillOrder) error {
	return d.until(func() (bool, error) {
		inv, err := d.api().VoidInvoice(d.ctx, o.made.ID)
		if err == nil {
			o.voided = &inv
		}
		return err == nil, err
	}, "void invoice "+o.made.ID)
}

// create creates the invoice of an order.
func (d *drill) create(o *drillOrder) error {
	request := d.draft(fmt.Sprint(o.amount()))
	request.MerchantAddress = devchain.Address(o.till).Hex()
	if o.pay == payDeposit {
		request.Collection = apitypes.CollectionDeposit
	}
	head, err := d.node.Client().HeaderByNumber(d.ctx, nil)
	if err != nil {
		return err
	}
	request.ExpiresAt = int64(head.Time) + int64(2*time.Hour/time.Second)
	if o.soon {
		request.ExpiresAt = int64(head.Time) + 30
	}
	o.begun = true
	made, err := d.api().CreateInvoice(d.ctx, request)
	if err == nil {
		o.made = &made
	}
	return err
}

// isTraceable reports whether a database that lost an order can learn of its payments: the shared settlement address
// is known, the chain has the commitment, or the merchant has a signed copy.
func (d *drill) isTraceable(o *drillOrder) (bool, error) {
	if !o.newTill && o.pay != payDeposit {
		return true, nil
	}
	return d.isProvable(o)
}

// isProvable reports whether a copy of the order can be imported: with its signature, or with the
// commitment if the merchant is known to own the address.
func (d *drill) isProvable(o *drillOrder) (bool, error) {
	_, delivered := d.receiver.delivery(webhook.InvoiceCreated, o.made.ID)
	if o.copy == copyDelivery && delivered || o.newTill {
		return delivered, nil
	}
	status, err := d.node.StatusOf(d.ctx, common.HexToHash(o.made.OnChainInvoiceID))
	return err == nil && status != contracts.StatusNone, err
}

// findProofs finds out which orders can be proved, before a recovery begins.
func (d *drill) findProofs() {
	d.Helper()
	for _, o := range d.orders {
		if o.made == nil {
			continue
		}
		status, err := d.node.StatusOf(d.ctx, common.HexToHash(o.made.OnChainInvoiceID))
		if err == nil {
			o.provable, err = d.isProvable(o)
		}
		if err != nil {
			d.Fatal(err)
		}
		o.voidTold = status == contracts.StatusClosed || o.copy == copyAnswer
	}
}

// awaitTraceable waits until isTraceable, like a payer who needs longer than a block.
func (d *drill) awaitTraceable(o *drillOrder) error {
	return d.until(func() (bool, error) { return d.isTraceable(o) }, "the commitment of "+o.made.ID)
}

// until waits until ok returns true, the service was killed, or time is over.
func (d *drill) until(ok func() (bool, error), what string) error {
	ctx, cancel := context.WithTimeout(d.ctx, drillPatience)
	defer cancel()
	var last error
	killed := d.killed.Load()
	done := false
	err := awaitEvery(ctx, drillPoll, func() bool {
		done, last = ok()
		return done || !killed && d.killed.Load()
	})
	switch {
	case err != nil:
		return fmt.Errorf("no %s: %w; the last answer: %w", what, err, last)
	case !done:
		return fmt.Errorf("no %s: the service was killed", what)
	}
	return nil
}

// payPart makes the next payment of an order.
func (d *drill) payPart(o *drillOrder) error {
	inv, payer := o.made.Invoice, d.node.Keys.Payer
	amount, to, trailing := o.amount(), devchain.Address(o.till), []byte(nil)
	if o.parts == 2 {
		amount /= 2
	}
	if o.over {
		amount += 7
	}
	switch o.pay {
	case payTransfer:
		amount = units(d, inv.TransferAmount).Int64()
	case payTagged:
		trailing = common.FromHex(o.made.OnChainInvoiceID)
	case payDeposit:
		to = common.HexToAddress(inv.DepositAddress)
	case payNothing, payRegistry, payWays:
	}
	var tx common.Hash
	var err error
	if o.pay == payRegistry {
		data := contracts.NewInvoiceRegistry().PackPay(chain.ContractTerms(d.terms(inv), inv.ID))
		tx, err = d.node.Send(d.ctx, payer, d.node.Registry, data)
	} else {
		tx, err = d.node.SendToken(d.ctx, payer, to, big.NewInt(amount), trailing)
	}
	if err != nil {
		return err
	}
	o.payments = append(o.payments, drillPayment{tx, amount})
	return d.mined(tx)
}

// payBack prepares a refund of an order's first payment and sends it.
func (d *drill) payBack(o *drillOrder) error {
	var payment apitypes.Payment
	err := d.until(func() (bool, error) {
		answer, err := d.api().Invoice(d.ctx, o.made.ID)
		if err != nil || answer.Status != apitypes.StatusPaid {
			return false, err
		}
		for p, err := range d.api().InvoicePayments(d.ctx, o.made.ID) {
			if err != nil {
				return false, err
			}
			if p.TxHash == o.payments[0].tx.Hex() {
				payment = p
			}
		}
		return payment.ConfirmedAt != 0, nil
	}, "confirmed payment of "+o.made.ID)
	if err != nil {
		return err
	}
	request := apitypes.PrepareRefundRequest{Amount: fmt.Sprint(o.refunded())}
	if o.elsewhere {
		request.To = devchain.Address(d.newRecipient(o)).Hex()
	}
	prepared, err := d.api().PrepareRefund(d.ctx, payment.ID, request)
	if err != nil {
		return err
	}
	if prepared.Transaction == nil {
		return fmt.Errorf("refund %+v of payment %+v cannot be sent", prepared.Refund, payment)
	}
	data, err := hexutil.Decode(prepared.Transaction.Data)
	if err != nil {
		return err
	}
	tx, err := d.node.Send(d.ctx, o.till, common.HexToAddress(prepared.Transaction.To), data)
	if err != nil {
		return err
	}
	o.refunds = append(o.refunds, tx)
	return d.mined(tx)
}

// refunded is the amount that the merchant pays back.
func (o *drillOrder) refunded() int64 { return o.payments[0].amount * int64(o.refund) / 100 }

// newRecipient returns the key of an account that has not paid.
func (d *drill) newRecipient(o *drillOrder) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256(crypto.FromECDSA(o.till), fmt.Append(nil, o.number)))
	if err != nil {
		d.Fatal(err)
	}
	return key
}

// payLate makes the payments of a phase after the kill, if they can be traced.
func (d *drill) payLate(phase latePhase) {
	d.Helper()
	for _, o := range d.orders {
		if o.made == nil || o.late != phase {
			continue
		}
		for len(o.payments) < o.parts {
			ok, err := d.isTraceable(o)
			if ok {
				err = d.payPart(o)
			}
			if err != nil {
				d.Fatalf("pay order %d late: %v", o.number, err)
			}
			if !ok {
				break
			}
		}
	}
}

// finish takes the remaining steps of all orders that the restored service has.
func (d *drill) finish() {
	d.Helper()
	for _, o := range d.orders {
		for !o.done() && (o.made != nil || !o.begun) && !o.lost {
			if err := d.step(o); err != nil {
				d.Fatalf("finish order %d: %v", o.number, err)
			}
		}
	}
}
