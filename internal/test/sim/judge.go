package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	sdk "github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/clock"
)

// Bounds of progress. Once the faults have stopped and every invoice has expired, everything due happens within
// progressBound: the longest pause between two attempts of a delivery after an hour of failures is 30 minutes and a
// fifth.
const progressBound = 45 * time.Minute

// judge waits until everything due has happened, and records what is missing after progressBound.
func (w *world) judge() {
	last := time.Now()
	for _, o := range w.orders {
		if at := time.Unix(o.request.ExpiresAt, 0); !o.last && at.After(last) {
			last = at
		}
	}
	for _, c := range w.chains {
		if at := time.Now().Add(time.Duration(c.finality.Depth+4) * c.every); at.After(last) {
			last = at
		}
	}
	clock.Sleep(w.ctx, time.Until(last)+15*time.Second, nil)
	pause, until := 20*time.Second, time.Now().Add(progressBound)
	for !w.failed() {
		missing := w.missing()
		if len(missing) == 0 {
			w.judgeHandled()
			w.judgeGas()
			w.judgeResources()
			if !w.failed() {
				w.log.say("JUDGE", "everything is as it should be: %d invoices", len(w.orders))
			}
			return
		}
		if time.Now().After(until) {
			for _, m := range missing {
				w.fail("%s after the faults: %s", progressBound, m)
			}
			return
		}
		clock.Sleep(w.ctx, pause, nil)
		pause = min(2*pause, 10*time.Minute)
	}
}

// answers is what the service says about everything.
type answers struct {
	invoices map[string]apitypes.Invoice // by id
	payments []apitypes.Payment
	events   []apitypes.EventRecord
}

// missing compares what the service says with the ledger, and returns what may still come. An answer that can never
// become right is recorded as a failure.
func (w *world) missing() (all []string) {
	s, err := w.read()
	if err != nil {
		return []string{err.Error()}
	}
	if w.rekeyed && w.browser.isSignedIn() {
		w.fail("a session of the operator's replaced key goes on")
	}
	var transfers []transfer
	for _, c := range w.chains {
		transfers = append(transfers, c.transfers()...)
	}
	w.markRefunds(transfers)
	w.screening.decide()
	w.screening.judgePayments(s.payments)
	miss := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	w.judgeInvoices(s, transfers, miss)
	w.judgePayments(s, transfers, miss)
	w.judgeEvents(s, miss)
	w.judgeMail(miss)
	return all
}

// read reads everything from one of the replicas.
func (w *world) read() (s answers, err error) {
	s.invoices = map[string]apitypes.Invoice{}
	transport := &http.Transport{DialContext: w.net.host("judge").dial, DisableKeepAlives: true}
	api, err := sdk.New(w.address(w.operator), sdk.WithKey(w.operatorKey.Reveal()), sdk.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return s, err
	}
	for inv, err := range api.Invoices(w.ctx, sdk.InvoiceFilter{PageSize: 200}) {
		if err != nil {
			return s, err
		}
		if _, twice := s.invoices[inv.ID]; twice {
			w.fail("the list of invoices has %s twice", inv.ID)
		}
		s.invoices[inv.ID] = inv
	}
	for p, err := range api.Payments(w.ctx, sdk.PaymentFilter{IncludePending: true, IncludeUnattributed: true, PageSize: 200}) {
		if err != nil {
			return s, err
		}
		s.payments = append(s.payments, p)
	}
	for cursor, more := "start", true; more && err == nil; {
		var page []apitypes.EventRecord
		page, cursor, err = api.EventsAfter(w.ctx, sdk.EventFilter{}, cursor)
		s.events, more = append(s.events, page...), len(page) > 0
	}
	return s, err
}

func (w *world) judgeInvoices(s answers, transfers []transfer, miss func(string, ...any)) {
	byReference := map[string]int{}
	for _, inv := range s.invoices {
		byReference[inv.Reference]++
	}
	commitments := map[*worldChain]map[[2]common.Hash]int{}
	for _, c := range w.chains {
		commitments[c] = c.commitments()
	}
	for _, o := range w.orders {
		if made := byReference[o.name]; o.key != "" && made > 1 && o.asked.UnixNano() >= w.restored.Load() || made > 2*o.attempts {
			w.fail("%s: %d requests, key %q, made %d invoices", o.name, o.attempts, o.key, made)
		}
		if len(o.acks) == 0 {
			continue
		}
		inv, ok := s.invoices[o.first().ID]
		if !ok && o.lost {
			continue
		}
		if !ok {
			w.fail("%s: invoice %s was acknowledged and is gone", o.name, o.first().ID)
			continue
		}
		a := o.account(transfers)
		o.judge(inv, a, miss)
		o.judgeRefund(inv, a, miss)
		o.judgeCharge(a, miss)
		o.judgeCommitment(commitments[o.chain])
	}
}

// judge compares an invoice with its account.
func (o *order) judge(inv apitypes.Invoice, a balance, miss func(string, ...any)) {
	wanted, paid := o.statuses(a), toBig(inv.AmountPaid)
	if inv.Amount != o.request.Amount || inv.ExpiresAt != o.request.ExpiresAt || inv.ChainKey != o.request.ChainKey || inv.MerchantID != o.merchant.name || common.HexToAddress(inv.MerchantAddress) != o.wallet {
		o.merchant.world.fail("%s: invoice %s has other terms than were acknowledged", o.name, inv.ID)
	}
	about := fmt.Sprintf("%s: invoice %s is %s with %s of %s; the chain has %s (%s in time) and up to %s (%s) for it", o.name, inv.ID, inv.Status, paid, o.amount(), a.all, a.due, a.mayAll, a.mayDue)
	switch {
	case inv.Status == "open" && !o.mayStayOpen(a):
		miss("%s", about)
	case inv.Status == "open":
	case !slices.Contains(wanted, inv.Status), paid.Cmp(a.mayAll) > 0:
		o.merchant.world.fail("%s; want %v", about, wanted)
	case paid.Cmp(a.all) < 0:
		miss("%s", about)
	}
}

// mayStayOpen reports whether the order may stay open: a payment may be in a transaction that no node returns, or an
// order that was void in a lost past cannot be made void again, because a payment is in quarantine.
func (o *order) mayStayOpen(a balance) bool {
	return o.chain.hides() && (o.voiding || a.due.Cmp(o.amount()) < 0) || o.voiding && o.merchant.world.isRestored() && o.merchant.world.screening.holds(o)
}

// judgePayments compares the confirmed payments with the transfers. Each transfer pays once.
func (w *world) judgePayments(s answers, transfers []transfer, miss func(string, ...any)) {
	type place struct {
		chain, tx, from, to, amount, currency string
		block                                 int64
	}
	on := map[place]int{}
	for _, t := range transfers {
		on[place{t.chain.key, t.tx.Hash().Hex(), t.from.Hex(), t.to.Hex(), t.amount.String(), t.currency, int64(t.block.number)}]++
	}
	ids, sums := map[string]bool{}, map[string]*big.Int{}
	for _, p := range s.payments {
		if ids[p.ID] {
			w.fail("the list of payments has %s twice", p.ID)
		}
		ids[p.ID] = true
		if p.Status == "pending" && !w.screening.leaves(p) {
			miss("payment %s is pending", p.ID)
		}
		if p.Status != "confirmed" {
			continue
		}
		at := place{p.ChainKey, p.TxHash, p.From, p.To, p.Amount, p.Currency, p.BlockNumber}
		if on[at]--; on[at] < 0 {
			w.fail("payment %s is confirmed and not on the chain: %+v", p.ID, at)
		}
		if sums[p.InvoiceID] == nil {
			sums[p.InvoiceID] = new(big.Int)
		}
		sums[p.InvoiceID].Add(sums[p.InvoiceID], toBig(p.Amount))
	}
	for id, inv := range s.invoices {
		if sum := sums[id]; toBig(inv.AmountPaid).Sign() > 0 && (sum == nil || sum.String() != inv.AmountPaid) {
			w.fail("invoice %s says that %s was paid, and its payments add up to %v", id, inv.AmountPaid, sum)
		}
	}
}

// judgeRefund compares what an invoice says was refunded with the transfers of the prepared refund. None is sent twice.
func (o *order) judgeRefund(inv apitypes.Invoice, a balance, miss func(string, ...any)) {
	switch got := toBig(inv.AmountRefunded); {
	case o.refund != nil && a.back.Cmp(o.refunding()) > 0:
		o.merchant.world.fail("%s: a refund of %s was offered again, and sent with %s", o.name, o.refund.Refund.Amount, a.back)
	case got.Cmp(a.back) < 0:
		miss("%s: %s was refunded, and the invoice says %s", o.name, a.back, got)
	case got.Cmp(a.mayBack) > 0:
		o.merchant.world.fail("%s: the invoice says that %s was refunded, and the chain has %s", o.name, got, a.back)
	}
}

// judgeCommitment checks that the service has opened and closed the commitment at most once.
func (o *order) judgeCommitment(times map[[2]common.Hash]int) {
	id := common.HexToHash(o.first().OnChainInvoiceID)
	if opened, closed := times[[2]common.Hash{contracts.OpenedTopic, id}], times[[2]common.Hash{contracts.ClosedTopic, id}]; (opened > 1 || closed > 1) && !o.merchant.world.isRestored() { // transactions of the lost past may be mined later
		o.merchant.world.fail("%s: its commitment was opened %d times and closed %d times", o.name, opened, closed)
	}
}

// judgeCharge compares what became of an accepted authorization with the chain.
func (o *order) judgeCharge(a balance, miss func(string, ...any)) {
	if o.uncharge && a.charged {
		o.merchant.world.fail("%s: the invoice was made void after an authorization was accepted, and the payer was charged", o.name)
	}
	if o.last && !a.charged {
		miss("%s: its authorization after the faults is not carried out", o.name)
		return
	}
	var answer apitypes.AuthorizationResponse
	if !o.charging || o.merchant.world.operator.insist(http.MethodGet, "/checkout/"+o.first().ID+"/authorization", nil, &answer) != nil {
		return
	}
	switch status := answer.Authorization.Status; {
	case status == apitypes.AuthorizationUnknown:
		miss("%s: the outcome of its authorization is unknown", o.name)
	case a.charged != (status == apitypes.AuthorizationPaid):
		o.merchant.world.fail("%s: its authorization is %s; the payer was charged: %v", o.name, status, a.charged)
	}
}

// judgeEvents checks that the log of events is complete, that its reader has missed nothing, and that merchants
// received their events.
func (w *world) judgeEvents(s answers, miss func(string, ...any)) {
	ids := eventIDs(s.events)
	w.mu.Lock()
	followed := slices.Clone(w.followed)
	w.mu.Unlock()
	if n := min(len(ids), len(followed)); !slices.Equal(ids[:n], followed[:n]) && !w.isRestored() {
		w.fail("a reader that followed the events has others than the log: %v and %v", followed, ids)
	}
	if i := slices.IndexFunc(ids, func(id string) bool { return !slices.Contains(followed, id) }); i >= 0 {
		miss("the follower has %d events, and not the %d. of %d", len(followed), i+1, len(ids))
	}
	count := map[string]int{}
	for i, e := range s.events {
		var about struct {
			Type string `json:"type"`
			Data struct {
				Payment apitypes.Payment `json:"payment"`
				Refund  apitypes.Refund  `json:"refund"`
			} `json:"data"`
		}
		if err := json.Unmarshal(e.Event, &about); err != nil {
			w.fail("event %s: %v", e.Event, err)
		}
		if slices.Contains(ids[:i], ids[i]) {
			w.fail("the log has event %s twice", ids[i])
		}
		count[about.Type+" "+e.InvoiceID]++
		count[about.Type+" "+about.Data.Payment.ID+about.Data.Refund.ID]++
		w.judgeDelivery(e, ids[i], miss)
	}
	w.judgeCounts(s, count)
}

// judgeCounts checks that each event that is due exists once.
func (w *world) judgeCounts(s answers, count map[string]int) {
	for id, inv := range s.invoices {
		if inv.Status == "open" {
			continue // it is missed, or was paid since it was read
		}
		for kind, wanted := range map[string]bool{"invoice.created": true, "invoice.paid": inv.Status == "paid", "invoice.expired": inv.Status == "expired"} {
			if n := count[kind+" "+id]; wanted != (n == 1) || n > 1 {
				w.fail("invoice %s is %s and has %d events %s", id, inv.Status, n, kind)
			}
		}
	}
	for _, p := range s.payments {
		if n := count["payment.received "+p.ID]; p.InvoiceID != "" && n != 1 && p.Status == "confirmed" || n > 1 {
			w.fail("payment %s of %q has %d events payment.received", p.ID, p.InvoiceID, n)
		}
	}
}

// judgeDelivery checks that the merchant has received an event.
func (w *world) judgeDelivery(e apitypes.EventRecord, id string, miss func(string, ...any)) {
	i := slices.IndexFunc(w.merchants, func(m *merchant) bool { return m.name == e.MerchantID })
	if i < 0 {
		w.fail("event %s is of merchant %s", id, e.MerchantID)
		return
	}
	m := w.merchants[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	sent, taken := 0, false
	for _, got := range m.received {
		if got.event != id {
			continue
		}
		sent, taken = sent+1, taken || got.taken
		if got.body != string(e.Event) {
			w.fail("event %s was sent with another body than the log has", id)
		}
	}
	if sent > 1 {
		w.fail("event %s was sent under %d delivery ids", id, sent)
	}
	if !taken {
		miss("event %s of %s was not received", id, e.InvoiceID)
	}
}
