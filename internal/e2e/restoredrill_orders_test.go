package e2e

import (
	"context"
	"crypto/ecdsa"
	"encoding/binary"
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
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/webhook"
)

// What orders do in TestRestoreDrill, apart from being created and paid.
const (
	drillVoids   = false // they are made void
	drillRefunds = false // they are paid back
)

// payWay is how an order is paid.
type payWay int

const (
	payNothing  payWay = iota
	payTransfer        // the transfer amount, which names the invoice
	payTagged          // a transfer that names the invoice in its calldata
	payDeposit         // to the deposit address
	payRegistry        // through the registry
	payWays
)

// copyKind is what the merchant kept of an order.
type copyKind int

const (
	copyNothing  copyKind = iota
	copyAnswer            // of the API
	copyDelivery          // with its signature, or the answer if it did not come
	copyKinds
)

// latePhase is when a payer pays whose invoice was not paid before the kill.
type latePhase int

const (
	lateBeforeRecovery latePhase = iota
	lateBeforeImport
	lateBeforeServing
	lateWhileServing
	latePhases
)

// drillOrder is what is to become of an invoice, and what happened.
type drillOrder struct {
	number    int
	pay       payWay
	parts     int // payments
	over      bool
	refund    int  // percent of the first payment
	elsewhere bool // it is refunded to another address than the payer's
	void      bool
	soon      bool // expires soon
	till      *ecdsa.PrivateKey
	newTill   bool // which no other invoice has
	copy      copyKind
	late      latePhase

	begun    bool // the create was sent
	made     *apitypes.CreateInvoiceResponse
	payments []drillPayment
	refunds  []common.Hash // transactions
	voided   *apitypes.Invoice
	provable bool // when the recovery began
	lost     bool // after the restore and the import
}

// drillPayment is a transfer that pays an order.
type drillPayment struct {
	tx     common.Hash
	amount int64
}

// String says what is to become of an order, and what happened.
func (o *drillOrder) String() string {
	id, payments := "", ""
	if o.made != nil {
		id = o.made.ID
	}
	for _, p := range o.payments {
		payments += fmt.Sprintf(" %d by %.10s", p.amount, p.tx)
	}
	return fmt.Sprintf("order %d %s (pay %d in %d parts, over %t, refund %d%%, void %t, soon %t, new address %t, copy %d, late %d; paid%s, %d refunds, void %t, lost %t)",
		o.number, id, o.pay, o.parts, o.over, o.refund, o.void, o.soon, o.newTill, o.copy, o.late, payments, len(o.refunds), o.voided != nil, o.lost)
}

// amount is the amount of the invoice. Transfer amounts differ from it by less than the amounts of two invoices do.
func (o *drillOrder) amount() int64 { return 1_000_000 + 10_000*int64(o.number) }

// paid is what was paid.
func (o *drillOrder) paid() (sum int64) {
	for _, p := range o.payments {
		sum += p.amount
	}
	return sum
}

// steps is how many steps an order takes.
func (o *drillOrder) steps() int {
	n := 1 + o.parts
	if o.refund > 0 {
		n++
	}
	if o.void {
		n++
	}
	return n
}

// done reports whether every step was made, or cannot be made.
func (o *drillOrder) done() bool {
	return o.made != nil && len(o.payments) == o.parts && (o.refund == 0 || len(o.refunds) > 0) && (!o.void || o.voided != nil)
}

// plan decides about the orders, and gives the accounts what they need.
func (d *drill) plan() {
	d.Helper()
	d.till = d.newAccount()
	tills := []*ecdsa.PrivateKey{d.till}
	for n := range drillOrders {
		o := &drillOrder{
			number: n, pay: payWay(d.random.IntN(int(payWays))), till: d.till, copy: copyKind(d.random.IntN(int(copyKinds))),
			late: latePhase(d.random.IntN(int(latePhases))),
		}
		if o.pay == payNothing {
			o.void = drillVoids && d.random.IntN(2) == 0
			o.soon = !o.void && d.random.IntN(2) == 0
		} else {
			o.parts = 1
			if o.pay == payTagged || o.pay == payDeposit {
				o.parts, o.over = 1+d.random.IntN(2), d.random.IntN(3) == 0
			}
			if drillRefunds {
				o.refund = []int{0, 0, 25, 100}[d.random.IntN(4)]
			}
			o.elsewhere = d.random.IntN(3) > 0
		}
		if o.newTill = d.random.IntN(4) == 0; o.newTill {
			o.till = d.newAccount()
			tills = append(tills, o.till)
			// Only a copy names an address that was used first after the backup.
			o.copy = max(o.copy, copyAnswer)
		}
		d.orders = append(d.orders, o)
	}
	d.waiting = slices.Clone(d.orders)
	d.fund(tills)
}

// newAccount returns a key that the seed decides.
func (d *drill) newAccount() *ecdsa.PrivateKey {
	var seed [16]byte
	binary.BigEndian.PutUint64(seed[:], d.random.Uint64())
	binary.BigEndian.PutUint64(seed[8:], d.random.Uint64())
	key, err := crypto.ToECDSA(crypto.Keccak256(seed[:]))
	if err != nil {
		d.Fatal(err)
	}
	return key
}

// fund gives settlement addresses ether and tokens to pay back with. The service may record the tokens as unattributed.
func (d *drill) fund(tills []*ecdsa.PrivateKey) {
	d.Helper()
	payer := d.node.Keys.Payer
	ether := new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)
	last, err := d.node.Approve(d.ctx, payer, d.node.Registry, new(big.Int).Exp(big.NewInt(10), big.NewInt(15), nil))
	for _, key := range tills {
		if err == nil {
			_, err = d.node.SendCoins(d.ctx, payer, devchain.Address(key), ether)
		}
		if err == nil {
			last, err = d.node.SendToken(d.ctx, payer, devchain.Address(key), big.NewInt(1_000_000_000), nil)
			d.funding[fact{string(apitypes.EventPaymentUnattributed), "", last.Hex()}] = true
		}
	}
	if err == nil {
		err = d.mined(last)
	}
	if err != nil {
		d.Fatalf("fund the accounts: %v", err)
	}
}

// mined waits until a transaction is mined, and returns an error if it failed.
func (d *drill) mined(tx common.Hash) error {
	receipt, err := d.node.Mined(d.ctx, tx)
	if err == nil && receipt.Status != types.ReceiptStatusSuccessful {
		err = fmt.Errorf("the transaction %s failed", tx)
	}
	return err
}

// trade lets buyers make the steps of the orders, several at a time, until the gate is closed.
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

// take returns an order whose next step can be made, or nil.
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

// giveBack puts an order back that is not done.
func (d *drill) giveBack(o *drillOrder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !o.done() && (o.made != nil || !o.begun) {
		d.waiting = append(d.waiting, o)
	}
}

// step makes the next step of an order.
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
		inv, err := d.api().VoidInvoice(d.ctx, o.made.ID)
		if err == nil {
			o.voided = &inv
		}
		return err
	}
	return nil
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

// isProvable reports whether a copy of the order can be imported.
func (d *drill) isProvable(o *drillOrder) (bool, error) {
	status, err := d.node.StatusOf(d.ctx, common.HexToHash(o.made.OnChainInvoiceID))
	if err != nil || status != contracts.StatusNone {
		return err == nil, err
	}
	_, delivered := d.receiver.delivery(webhook.InvoiceCreated, o.made.ID)
	return o.copy == copyDelivery && delivered, nil
}

// awaitTraceable waits until isTraceable, as payers do who need longer than a block.
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

// refunded is the amount that is paid back.
func (o *drillOrder) refunded() int64 { return o.payments[0].amount * int64(o.refund) / 100 }

// newRecipient returns the key of an account that has paid nothing.
func (d *drill) newRecipient(o *drillOrder) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256(o.till.D.Bytes(), fmt.Append(nil, o.number)))
	if err != nil {
		d.Fatal(err)
	}
	return key
}

// payLate makes the payments of a phase after the kill, of those that can be traced.
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

// finish makes the steps that are left, of all orders that the restored service has.
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
