package main

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
)

// order is an invoice that a merchant asked for, and what became of it.
type order struct {
	name     string
	merchant *merchant
	payee    string // the account that it settles to
	wallet   common.Address
	chain    *worldChain
	request  apitypes.CreateInvoiceRequest
	key      string // of idempotency; may be empty
	attempts int
	asked    time.Time // of the first attempt
	acks     []apitypes.CreateInvoiceResponse
	seen     uint64          // the chain's height when the first answer came
	issued   map[string]bool // transfer amounts that the service named; false for one that a restored backup may lack
	voiding  bool            // a request to void it was sent
	voided   bool            // and answered 200
	charging bool            // the service has accepted an authorization
	uncharge bool            // the invoice was made void, too, so that nobody may be charged
	sent     []*types.Transaction
	refund   *apitypes.RefundResponse // the prepared one; nil without one
	patient  bool                     // it has the time to be paid in parts, with a refund in between
	lost     bool                     // a restored backup lacks it, and its copy proves nothing
	last     bool                     // made after the faults; the service must carry out its authorization
	early    bool                     // the refund was prepared before the invoice was paid or expired
}

func (m *merchant) newOrder(r *rand.Rand, i int) *order {
	c := m.world.chains[r.IntN(len(m.world.chains))]
	o := &order{name: fmt.Sprintf("%s-%d", m.name, i+1), merchant: m, payee: m.drawWallet(), chain: c, issued: map[string]bool{}}
	o.wallet = addressOf(account(o.payee))
	o.request = apitypes.CreateInvoiceRequest{
		MerchantID: m.name, MerchantAddress: o.wallet.Hex(), Amount: fmt.Sprint(1_000_000 + 10_000*r.IntN(50)), Currency: chain.USDC, ChainKey: c.key,
		ExpiresAt: time.Now().Add(time.Duration(30+r.IntN(80)) * time.Second).Unix(), Reference: o.name,
	}
	if r.IntN(4) == 0 {
		o.request.ExpiresAt += int64(r.IntN(120))
	}
	if m.preset && o.payee == m.name && m.draws.IntN(2) == 0 {
		o.request.MerchantAddress = ""
	}
	if o.patient = r.IntN(6) == 0; o.patient {
		o.request.ExpiresAt += 240
	}
	if r.IntN(3) == 0 {
		o.request.Collection = "deposit"
	}
	if m.world.changes && r.IntN(4) == 0 {
		o.request.Currency = euros
	}
	if r.IntN(3) > 0 {
		o.key = "key-" + o.name
	}
	return o
}

// live is the life of an order: it is created, paid in some way, and perhaps made void.
func (o *order) live(r *rand.Rand) {
	if !o.create(r) {
		return
	}
	w := o.merchant.world
	pause := func(most time.Duration) { clock.Sleep(w.ctx, time.Duration(r.Int64N(int64(most))), nil) }
	pause(15 * time.Second)
	o.readTerms()
	w.busy.Go(o.askForReceipt)
	if r.IntN(8) == 0 {
		_ = o.void() // void notes whether it is
	}
	if r.IntN(4) == 0 { // at the last moment, and perhaps a block too late
		clock.Sleep(w.ctx, time.Until(time.Unix(o.request.ExpiresAt, 0).Add(-time.Duration(r.Int64N(int64(3*o.chain.every))))), nil)
	}
	o.payInSomeWay(r, pause)
	switch r.IntN(8) {
	case 0:
		pause(30 * time.Second)
		_ = o.void() // void notes whether it is
	case 1, 2:
		o.voidSeen()
	case 3, 4:
		o.giveBack(r)
	}
}

// payInSomeWay pays as asked, or late, twice, in parts, in another token or not at all.
func (o *order) payInSomeWay(r *rand.Rand, pause func(most time.Duration)) {
	payer, way := o.drawPayer(r), r.IntN(10)
	if o.patient {
		way = 3
	}
	switch way {
	case 0: // nobody pays
	case 1: // late
		until := time.Until(time.Unix(o.request.ExpiresAt, 0))
		if until > 0 && !clock.Sleep(o.merchant.world.ctx, until+o.chain.every, nil) {
			return
		}
		o.pay(r, payer, o.shown(), true)
	case 2: // twice
		o.pay(r, payer, o.shown(), true)
		pause(30 * time.Second)
		o.pay(r, payer, o.shown(), true)
	case 3: // in parts
		half := new(big.Int).Div(o.amount(), big.NewInt(2))
		o.pay(r, payer, half, false)
		if o.patient {
			o.giveBack(r)
		}
		pause(30 * time.Second)
		o.refresh()
		o.pay(r, payer, o.shown(), o.first().Invoice.RemainingTransferAmount != "")
	case 4: // the wrong token
		wrong := o.chain.other
		if o.token() == wrong {
			wrong = o.chain.token
		}
		o.send(payer, wrong, contracts.NewTestUSDC().PackTransfer(o.payTo(), o.amount()))
	case 5: // from an exchange's account, to which the shop has just paid as much
		if !o.payFromExchange() {
			o.pay(r, payer, o.shown(), true)
		}
	case 6:
		o.payOddly(r)
	default:
		o.pay(r, payer, o.shown(), true)
	}
}

// voidSeen waits until the service has seen a payment, and asks for the end of the invoice. Payments that cover an
// invoice keep it open, unless a node dates their blocks after the invoice's expiry.
func (o *order) voidSeen() {
	if o.voiding {
		return
	}
	var before, after []apitypes.Payment
	for before = o.payments(); len(before) == 0 && time.Now().Unix() < o.request.ExpiresAt; before = o.payments() {
		if !o.merchant.world.pause(o.chain.poll) {
			return
		}
	}
	_ = o.void()
	if !o.voided {
		return
	}
	sum := new(big.Int)
	for after = o.payments(); len(before) > 0; before = before[1:] {
		p := before[0]
		stays := slices.ContainsFunc(after, func(q apitypes.Payment) bool {
			return q.ID == p.ID && q.BlockNumber == p.BlockNumber && q.Status != "orphaned" && p.Status != "orphaned"
		})
		if stays && o.chain.minedBy(p.BlockNumber, o.request.ExpiresAt) && !o.chain.misdates {
			sum.Add(sum, toBig(p.Amount))
		}
	}
	if sum.Cmp(o.amount()) >= 0 {
		o.merchant.world.fail("%s: invoice %s was made void, and payments that were shown cover it", o.name, o.first().ID)
	}
}

// payments returns the invoice's payments that the service shows.
func (o *order) payments() []apitypes.Payment {
	var page apitypes.PaymentList
	_ = o.merchant.insist(http.MethodGet, "/api/invoices/"+o.first().ID+"/payments", nil, &page) // empty without an answer
	return page.Payments
}

// readTerms compares the terms on the checkout page with the answer that the merchant got.
func (o *order) readTerms() {
	c := &client{world: o.merchant.world, name: "payer of " + o.name}
	var terms struct{ OnChainInvoiceID, DepositAddress, MerchantAddress, Token, Amount string }
	if c.call(http.MethodGet, "/checkout/"+o.first().ID+"/terms", nil, &terms) != nil {
		return
	}
	if terms.OnChainInvoiceID != o.first().OnChainInvoiceID || terms.DepositAddress != o.first().Invoice.DepositAddress ||
		terms.Amount != o.request.Amount || common.HexToAddress(terms.MerchantAddress) != o.wallet || common.HexToAddress(terms.Token) != o.token() {
		o.merchant.world.fail("%s: the page shows other terms: %+v", o.name, terms)
	}
}

// giveBack waits until a payment is final, and refunds a part of it, or all.
func (o *order) giveBack(r *rand.Rand) {
	w := o.merchant.world
	p, ok := o.confirmed()
	if !ok || o.refund != nil || !o.merchant.plays(refunds) {
		return
	}
	o.refresh()
	path := "/api/payments/" + p.ID + "/refunds"
	o.tryReceiver(r, p)
	var answer apitypes.RefundResponse
	in := object{"to": addressOf(payers[r.IntN(len(payers))]).Hex()}
	status := o.first().Invoice.Status
	o.early = status == "open" || status == "void" // a restore may lose the void, so that the invoice is open again
	if status != "open" || r.IntN(3) == 0 {
		in["amount"] = fmt.Sprint(1 + r.IntN(500_000))
	}
	if amount := o.askedBy(common.HexToAddress(p.From), p.Amount); amount != "" {
		in = object{"amount": amount}
	}
	for errors.Is(o.merchant.call(http.MethodPost, path, in, &answer, "Idempotency-Key", "refund-"+o.name), errLost) {
		if !w.pause(10*time.Second) || time.Since(w.plan.began) > w.active {
			return
		}
	}
	if answer.Refund.ID == "" { // it was refused
		o.early = false
		return
	}
	o.sendRefund(r, &answer, r.IntN(4) > 0)
}

// tryReceiver sometimes asks for a refund to an address that receives payments, which must be refused.
func (o *order) tryReceiver(r *rand.Rand, p apitypes.Payment) {
	w, path := o.merchant.world, "/api/payments/"+p.ID+"/refunds"
	if other := w.anyOrder(r); other != nil && other.chain == o.chain && common.HexToAddress(p.From) != other.payTo() && r.IntN(4) == 0 && !other.lost &&
		o.merchant.call(http.MethodPost, path, object{"to": other.payTo().Hex()}, nil) == nil {
		w.fail("%s: a refund to %s, which receives payments, was prepared", o.name, other.payTo())
	}
}

// askedBy returns the transfer amount of an invoice that settles to the payer's account, if it is at most the given
// amount, or "". A refund of that amount pays no invoice.
func (o *order) askedBy(payer common.Address, most string) (amount string) {
	w := o.merchant.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.orders {
		if other.wallet != payer || len(other.acks) == 0 || other.chain != o.chain || other.request.Currency != o.request.Currency {
			continue
		}
		if asked := other.first().Invoice.TransferAmount; asked != "" && toBig(asked).Cmp(toBig(most)) <= 0 {
			amount = asked
		}
	}
	return amount
}

// confirmed waits until a payment is final. ok is false if none is when the invoice expires.
func (o *order) confirmed() (p apitypes.Payment, ok bool) {
	for {
		shown := o.payments()
		if i := slices.IndexFunc(shown, func(p apitypes.Payment) bool { return p.Status == "confirmed" }); i >= 0 {
			return shown[i], true
		}
		if !o.merchant.world.pause(5*time.Second) || time.Now().Unix() > o.request.ExpiresAt+60 {
			return p, false
		}
	}
}

// sendRefund notes a refund and perhaps sends it, and again if the service has seen its transfer and then offers it.
func (o *order) sendRefund(r *rand.Rand, refund *apitypes.RefundResponse, send bool) {
	w, offered, seen := o.merchant.world, refund.Transaction, false
	w.mu.Lock()
	o.refund = refund
	w.mu.Unlock()
	if !send {
		return
	}
	reorg := r.IntN(2) == 0
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); {
		if seen && reorg {
			o.chain.unmine(o.sent[len(o.sent)-1].Hash(), uint64(r.IntN(6)))
			reorg = false
		}
		if offered != nil {
			o.send(account(o.payee), common.HexToAddress(offered.To), hexutil.MustDecode(offered.Data))
			o.chain.withhold(r, o.sent[len(o.sent)-1].Hash())
		}
		if offered = nil; !w.pause(o.chain.every) {
			return
		}
		var now apitypes.RefundResponse
		if o.merchant.call(http.MethodGet, "/api/refunds/"+o.refund.Refund.ID, nil, &now) == nil {
			if seen && now.Refund.TxHash == "" && !w.isRestored() { // a refund that is not mined yet must not be sent again after a restore
				offered = now.Transaction
			}
			seen = seen && offered == nil || now.Refund.TxHash != ""
		}
	}
}

// create asks for the invoice until there is an answer. Without an idempotency key it asks once.
func (o *order) create(r *rand.Rand) bool {
	m := o.merchant
	var headers []string
	if o.key != "" {
		headers = []string{"Idempotency-Key", o.key}
	}
	for {
		var answer apitypes.CreateInvoiceResponse
		if o.attempts++; o.attempts == 1 {
			o.asked = time.Now()
		}
		refusable := o.refusable()
		err := m.call(http.MethodPost, "/api/invoices", o.request, &answer, headers...)
		var refused *refusedError
		switch {
		case err == nil:
			o.ack(answer)
		case errors.As(err, &refused):
			if !refusable && !o.refusable() {
				m.world.fail("%s: a create was refused: %v", o.name, err)
			}
			return false
		case o.key == "":
			return false
		}
		if err == nil && r.IntN(4) > 0 {
			return true
		}
		if !clock.Sleep(m.world.ctx, time.Duration(1+r.IntN(5))*time.Second, nil) || o.key == "" || o.attempts > 20 {
			return len(o.acks) > 0
		}
	}
}

func (o *order) ack(answer apitypes.CreateInvoiceResponse) {
	w := o.merchant.world
	w.mu.Lock()
	o.acks = append(o.acks, answer)
	first := o.acks[0]
	w.mu.Unlock()
	if len(o.acks) == 1 {
		o.seen = o.chain.view()[len(o.chain.view())-1].number
	}
	o.note(answer.Invoice)
	if _, may := o.merchant.allows(o.wallet, o.asked); !may {
		w.fail("%s: invoice %s settles to %s, which is not allowed", o.name, answer.ID, o.wallet)
	}
	if (first.ID != answer.ID || first.OnChainInvoiceID != answer.OnChainInvoiceID) && o.asked.UnixNano() >= w.restored.Load() {
		w.fail("%s: two answers to one idempotency key, %s and %s", o.name, first.ID, answer.ID)
	}
	if answer.Invoice.Amount != o.request.Amount || answer.Invoice.ChainKey != o.request.ChainKey || common.HexToAddress(answer.Invoice.MerchantAddress) != o.wallet {
		w.fail("%s: the invoice %s has other terms than the request", o.name, answer.ID)
	}
}

// note remembers the transfer amounts that an answer names.
func (o *order) note(inv apitypes.Invoice) {
	o.merchant.world.mu.Lock()
	defer o.merchant.world.mu.Unlock()
	for _, a := range []string{inv.TransferAmount, inv.RemainingTransferAmount} {
		if a != "" {
			o.issued[a] = true
		}
	}
}

func (o *order) first() *apitypes.CreateInvoiceResponse { return &o.acks[0] }

// refresh reads the invoice, as a page does that is still open.
func (o *order) refresh() {
	var answer struct{ Invoice apitypes.Invoice }
	if o.merchant.insist(http.MethodGet, "/api/invoices/"+o.first().ID, nil, &answer) == nil {
		o.note(answer.Invoice)
		o.first().Invoice = answer.Invoice
	}
}

func (o *order) amount() *big.Int { return toBig(o.request.Amount) }

// void asks for the end of the invoice.
func (o *order) void() error {
	w := o.merchant.world
	w.mu.Lock()
	o.voiding = true
	w.mu.Unlock()
	err := o.merchant.call(http.MethodPost, "/api/invoices/"+o.first().ID+"/void", nil, nil)
	if err == nil {
		w.mu.Lock()
		o.voided, o.uncharge = true, o.charging
		w.mu.Unlock()
	}
	return err
}
