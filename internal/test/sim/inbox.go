package main

import (
	"crypto/ecdsa"
	"html"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
)

// act is what a person does with money that no invoice has, or that does not pay its invoice.
type act string

const (
	actAttribute act = "attribute" // a payment to an invoice
	actClaim     act = "claim"     // a payment for an invoice, on the checkout page
	actRefund    act = "refund"    // all of a payment, by a prepared refund
	actReturn    act = "return"    // all of a payment, by a transfer that is not prepared
	actDismiss   act = "dismiss"   // a payment
	actAccept    act = "accept"    // what is missing of an invoice
)

// handled is a payment that people acted on. Two acts that exclude each other must not both succeed.
type handled struct {
	payment apitypes.Payment
	done    []act // the acts that succeeded, in the order of their answers
	lost    []act // those that a restored backup may lack
	began   map[act]time.Time
	ended   map[act]time.Time
	order   *order   // the one to which it may be attributed; nil without one
	clerk   string   // how a clerk attributes it: "at once", "later", or "undone"
	signer  string   // the account that signs a claim; empty if nobody does
	payee   string   // the account that has the money
	back    []string // calldata of its refunds
}

// clerks lets two people of a merchant decide about its inbox, until everything has settled.
func (m *merchant) clerks() {
	w, r := m.world, stream(m.world.seed, "clerks of "+m.name)
	for w.pause(time.Duration(r.ExpFloat64()*float64(15*time.Second))) && time.Since(w.plan.began) < w.active+time.Minute {
		kind := []apitypes.InboxKind{apitypes.InboxUnattributed, apitypes.InboxUnattributed, apitypes.InboxUnderpaid}[r.IntN(3)]
		var page apitypes.InboxList
		if m.call(http.MethodGet, "/api/inbox?limit=20&kind="+string(kind), nil, &page) != nil || len(page.Items) == 0 {
			continue
		}
		item := page.Items[r.IntN(len(page.Items))]
		p, acts := item.Payment, []act{actAttribute, actRefund, actDismiss}
		if item.Invoice != nil {
			p, acts = m.inTime(item.Invoice), []act{actAccept, actRefund}
		}
		if p == nil || p.Status != "confirmed" {
			continue
		}
		if common.HexToAddress(p.From) == addressOf(account(stranger)) && item.Payment != nil {
			acts = append(acts, actReturn, actClaim)
		}
		h := w.handle(r, m, p)
		if h == nil {
			continue
		}
		r.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
		m.decide(r, h, item, acts[:2])
	}
}

// inTime returns a final payment of an invoice that was mined in time, or nil.
func (m *merchant) inTime(inv *apitypes.Invoice) *apitypes.Payment {
	var page apitypes.PaymentList
	if inv.Status == "void" || m.call(http.MethodGet, "/api/invoices/"+inv.ID+"/payments", nil, &page) != nil {
		return nil
	}
	for i, p := range page.Payments {
		if p.Status == "confirmed" && m.world.chainOf(p.ChainKey).minedBy(p.BlockNumber, inv.ExpiresAt) {
			return &page.Payments[i]
		}
	}
	return nil
}

func (w *world) chainOf(key string) *worldChain {
	return w.chains[slices.IndexFunc(w.chains, func(c *worldChain) bool { return c.key == key })]
}

// handle notes that people act on a payment. One without an invoice can be attributed to an order of the merchant. It
// returns nil if somebody has acted on the payment.
func (w *world) handle(r *rand.Rand, m *merchant, p *apitypes.Payment) *handled {
	h := &handled{payment: *p, payee: m.name, began: map[act]time.Time{}, ended: map[act]time.Time{}, signer: []string{stranger, stranger, "nobody", ""}[r.IntN(4)]}
	h.clerk = []string{"at once", "later", "undone"}[r.IntN(3)]
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range r.Perm(len(w.orders)) {
		o := w.orders[i]
		if len(o.acks) > 0 && o.merchant == m && o.chain.key == p.ChainKey && o.request.Currency == p.Currency && common.HexToAddress(p.To) == o.payTo() {
			h.order, h.payee = o, o.payee
		}
	}
	if w.handled[p.ID] != nil || p.InvoiceID == "" && h.order == nil {
		return nil
	}
	if p.InvoiceID != "" {
		h.order = nil // it belongs to its invoice
	}
	w.handled[p.ID] = h
	return h
}

// decide lets two people act on a payment, one after the other or at the same time.
func (m *merchant) decide(r *rand.Rand, h *handled, item apitypes.InboxItem, acts []act) {
	var group sync.WaitGroup
	together := r.IntN(2) == 0
	for _, a := range acts {
		m.world.mu.Lock()
		h.began[a] = time.Now()
		m.world.mu.Unlock()
		if run := func() { m.act(h, item, a) }; together && a != actReturn {
			group.Go(run)
		} else {
			run()
		}
	}
	group.Wait()
}

// act makes one act, and notes whether it succeeded.
func (m *merchant) act(h *handled, item apitypes.InboxItem, a act) {
	done := false
	switch a {
	case actAttribute:
		done = m.attribute(h, item)
	case actClaim:
		done = m.claim(h)
	case actRefund:
		done = m.refund(h)
	case actReturn:
		done = m.sendBack(h)
	case actDismiss:
		done = m.dismiss(item, h.payment.ID, "dismissed")
	case actAccept:
		done = m.dismiss(item, item.Invoice.ID, "accepted")
	}
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	if done {
		h.done, h.ended[a] = append(h.done, a), time.Now()
	}
}

// attribute attributes a payment to its order, at once or by a decision about its item, and reports whether it belongs to
// the order then.
func (m *merchant) attribute(h *handled, item apitypes.InboxItem) bool {
	const path = "/api/inbox/decisions"
	if item.Payment == nil || h.clerk == "at once" {
		return m.call(http.MethodPost, "/api/payments/"+h.payment.ID+"/attribution", object{"invoiceId": h.order.first().ID, "by": "a clerk"}, nil) == nil
	}
	var answer apitypes.DecisionResponse
	err := m.call(http.MethodPost, path, object{
		"kind": item.Kind, "objectId": h.payment.ID, "version": item.Version, "decision": "attributed", "invoiceId": h.order.first().ID, "reason": "the shop knows",
	}, &answer)
	if err != nil {
		return false
	}
	undone := h.clerk == "undone" && m.call(http.MethodPost, path+"/"+answer.Decision.ID+"/undo", nil, nil) == nil
	applied := m.takesEffect(h, answer.Decision.ID)
	if undone && !m.world.isRestored() {
		if applied {
			m.world.fail("%s: the attribution of %s was undone, and took effect", m.name, h.payment.ID)
		}
		m.world.mu.Lock()
		delete(h.began, actAttribute) // so nothing may count it
		m.world.mu.Unlock()
	}
	return applied
}

// takesEffect waits until a decision to attribute a payment has taken effect, and reports whether it has.
func (m *merchant) takesEffect(h *handled, decision string) bool {
	for range 30 {
		if !m.world.pause(10 * time.Second) {
			return false
		}
		var now apitypes.DecisionList
		if m.call(http.MethodGet, "/api/inbox/decisions?objectId="+h.payment.ID, nil, &now) != nil {
			continue
		}
		i := slices.IndexFunc(now.Decisions, func(d apitypes.Decision) bool { return d.ID == decision })
		if i < 0 || now.Decisions[i].UndoneAt != 0 || now.Decisions[i].AppliedAt != 0 { // i < 0 after a backup without it was restored
			return i >= 0 && now.Decisions[i].AppliedAt != 0
		}
	}
	return false
}

// claimText is the text that the payer signs, on the page about a transaction.
var claimText = regexp.MustCompile(`(?s)<code id="claim-text">(.*?)</code>`)

// claim claims a payment for its order, as the page about it offers, and reports whether it belongs to the order then.
// Only a claim that its payer has signed counts. Others, and those that the page leaves to the merchant, are listed.
func (m *merchant) claim(h *handled) bool {
	w, o, payer := m.world, h.order, &client{world: m.world, name: "payer of " + h.payment.ID}
	page, form, path := "", url.Values{"tx": {h.payment.TxHash}}, "/checkout/"+o.first().ID
	err := payer.call(http.MethodGet, path+"/check?tx="+h.payment.TxHash, nil, &page)
	text := claimText.FindStringSubmatch(page)
	if err != nil || text == nil {
		return false
	}
	if h.signer != "" {
		form.Set("signature", personalSign(account(h.signer), html.UnescapeString(text[1])))
	}
	var now apitypes.PaymentResponse
	err = payer.call(http.MethodPost, path+"/claim", form, nil)
	if m.insist(http.MethodGet, "/api/payments/"+h.payment.ID, nil, &now) != nil {
		return false
	}
	p := now.Payment
	counts, listed := p.InvoiceID == o.first().ID, slices.ContainsFunc(p.Claims, func(c apitypes.Claim) bool { return c.InvoiceID == o.first().ID })
	taken := err == nil && h.signer == stranger && h.isAlone()
	switch {
	case counts && p.Attribution.Method == "by_claim" && h.signer != stranger:
		w.fail("%s: payment %s was counted by a claim that %q signed", o.name, p.ID, h.signer)
	case taken && !counts && strings.Contains(page, "counted for this invoice at once"), taken && p.InvoiceID == "" && !listed:
		w.fail("%s: the payer of %s has claimed it, and it is neither counted nor listed as promised: %+v", o.name, p.ID, p)
	}
	return counts
}

// isAlone reports whether nobody else has acted on the payment, or ends the order.
func (h *handled) isAlone() bool {
	w := h.order.merchant.world
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(h.began) == 1 && !h.order.voiding
}

func personalSign(key *ecdsa.PrivateKey, text string) string {
	signature, err := crypto.Sign(accounts.TextHash([]byte(text)), key)
	if err != nil {
		panic(err)
	}
	return hexutil.Encode(signature)
}

// payOddly pays an amount that no invoice asks for, and claims it. The merchant acts on it, too.
func (o *order) payOddly(r *rand.Rand) {
	w, m, acts := o.merchant.world, o.merchant, []act{actClaim, []act{actAttribute, actRefund}[r.IntN(2)]}
	o.send(account(stranger), o.token(), contracts.NewTestUSDC().PackTransfer(o.wallet, big.NewInt(int64(20_000_001+2*r.IntN(5_000)))))
	path := "/api/payments?include=unattributed&txHash=" + o.sent[len(o.sent)-1].Hash().Hex()
	for w.pause(5*time.Second) && time.Now().Unix() < o.request.ExpiresAt+60 {
		var page apitypes.PaymentList
		if m.call(http.MethodGet, path, nil, &page) != nil || len(page.Payments) == 0 || page.Payments[0].Status != "confirmed" {
			continue
		}
		if h := w.handle(r, m, &page.Payments[0]); h != nil {
			r.Shuffle(len(acts), func(i, j int) { acts[i], acts[j] = acts[j], acts[i] })
			m.decide(r, h, apitypes.InboxItem{}, acts)
		}
		return
	}
}

func (m *merchant) dismiss(item apitypes.InboxItem, id, decision string) bool {
	return m.call(http.MethodPost, "/api/inbox/decisions", object{
		"kind": item.Kind, "objectId": id, "version": item.Version, "decision": decision, "reason": "the shop knows",
	}, nil) == nil
}

// excludes reports whether an act that succeeded excludes another one. A transfer on the chain counts whatever was
// decided before it, and a payment that has an invoice can be refunded.
func (h *handled) excludes(a, b act) bool {
	switch a {
	case actRefund, actReturn:
		return b != actReturn && (b == actAccept || b == actDismiss && a == actRefund || !h.ended[a].After(h.began[b])) // no time passes between two acts in turn
	case actDismiss, actAccept:
		return b != actReturn
	case actAttribute, actClaim:
		return b == actDismiss
	}
	return false
}

// judgeHandled checks that no payment was put to two uses.
func (w *world) judgeHandled() {
	w.mu.Lock()
	handled := maps.Clone(w.handled) // in the end, nobody changes them
	w.mu.Unlock()
	for id, h := range handled {
		for _, a := range h.done {
			for _, b := range h.done {
				if a != b && h.excludes(a, b) {
					w.fail("payment %s: people succeeded to %s and to %s", id, a, b)
				}
			}
		}
	}
}

// returned returns the calldata of the transfers with which people gave back payments that an order may have, besides
// its own refund.
func (o *order) returned() map[string]bool {
	w, all := o.merchant.world, map[string]bool{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.handled {
		if h.order == o || h.payment.InvoiceID == o.first().ID {
			for _, data := range h.back {
				all[data] = true
			}
		}
	}
	return all
}

// attributed returns when people had attributed a transfer to the order, or zero, and whether they may have.
func (o *order) attributed(t transfer) (at time.Time, may bool) {
	w := o.merchant.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.handled {
		for _, a := range []act{actAttribute, actClaim} {
			if h.order == o && h.payment.TxHash == t.tx.Hash().Hex() && !h.began[a].IsZero() {
				if may = true; slices.Contains(h.done, a) {
					at = h.ended[a]
				}
			}
		}
	}
	return at, may
}

// lostAttribution reports whether people attributed a payment to the order that the service had not read, but found later,
// and a restored backup lacks both. The chain then only shows that the order's commitment was closed.
func (o *order) lostAttribution() bool {
	w := o.merchant.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.handled {
		if h.order == o && h.payment.BlockNumber == 1 && (slices.Contains(h.lost, actAttribute) || slices.Contains(h.lost, actClaim)) {
			return true
		}
	}
	return false
}
