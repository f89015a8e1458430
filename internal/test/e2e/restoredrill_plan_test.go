package e2e

import (
	"crypto/ecdsa"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/dev/devchain"
)

// The steps of orders in TestExtraRestoreDrill, apart from being created and paid.
const (
	drillVoids   = true // they are made void
	drillRefunds = true // they are paid back
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

// copyKind is the merchant's copy of an order.
type copyKind int

const (
	copyNothing  copyKind = iota
	copyAnswer            // of the API
	copyDelivery          // with its signature, or the answer if it did not come
	copyKinds
)

// latePhase is when the payer of an invoice that was not paid before the kill pays.
type latePhase int

const (
	lateBeforeRecovery latePhase = iota
	lateBeforeImport
	lateBeforeServing
	lateWhileServing
	latePhases
)

// drillOrder is the plan for an invoice, and its outcome.
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
	newTill   bool // unique to this invoice
	copy      copyKind
	late      latePhase

	begun    bool // the create was sent
	made     *apitypes.CreateInvoiceResponse
	payments []drillPayment
	refunds  []common.Hash // transactions
	voided   *apitypes.Invoice
	provable bool // when the recovery began
	voidTold bool // the chain or the merchant's copy shows that it is void
	lost     bool // after the restore and the import
}

// drillPayment is a transfer that pays an order.
type drillPayment struct {
	tx     common.Hash
	amount int64
}

// String describes the plan for an order, and what happened.
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

// paid is the paid amount.
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

// plan makes the plans for the orders, and funds the accounts.
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
			// Only a signed copy has an address that was first used after the backup.
			o.copy = copyDelivery
		}
		d.orders = append(d.orders, o)
	}
	d.waiting = slices.Clone(d.orders)
	d.fund(tills)
}

// newAccount returns a key that depends on the seed.
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

// fund gives settlement addresses ether and tokens for refunds. The service may record the tokens as
// unattributed.
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
