package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/webhook"
)

// screeningHost is where the screening hook listens.
const screeningHost = "127.0.4.1:80"

// screeningHook is the operator's hook. While things happen it is often silent or wrong. Some hooks never answer.
type screeningHook struct {
	world  *world
	secret string
	conf   *server.Screening
	silent bool

	mu       sync.Mutex
	verdicts map[string]string                        // by payment: the first one, which the hook repeats
	last     map[paymentKey]apitypes.PaymentScreening // what the judge has read
}

// paymentKey names a payment by its transfer. Authorizations share a transaction.
type paymentKey struct{ tx, from, to, amount string }

// The hook's verdicts.
const (
	accept     = "accept"
	quarantine = "quarantine"
)

// screen opens the hook in some of the worlds.
func (w *world) screen(outside *host) {
	r := stream(w.seed, "screening")
	if r.IntN(4) > 0 {
		return
	}
	w.screening = &screeningHook{world: w, secret: fmt.Sprintf("whsec_%032x", r.Uint64()), verdicts: map[string]string{}}
	w.screening.conf = &server.Screening{
		URL: "http://" + screeningHost + "/screen", Secret: w.screening.secret,
		Patience: time.Duration(20+r.IntN(580)) * time.Second, Closed: r.IntN(2) == 0,
	}
	w.screening.silent = r.IntN(4) == 0
	serve(outside, screeningHost, w.screening)
}

// screeningConfig is the configuration of the hook; nil without one.
func (w *world) screeningConfig() *server.Screening {
	if w.screening == nil {
		return nil
	}
	return w.screening.conf
}

// ServeHTTP answers a question.
func (h *screeningHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question struct {
		PaymentID string `json:"paymentId"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &question)
	}
	if err != nil || webhook.Sign(h.secret, signedAt(r), body) != r.Header.Get(webhook.HeaderSignature) {
		h.world.fail("the screening hook was asked %q without a valid signature: %v", body, err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fault := stream(h.world.seed, fmt.Sprint("screening ", question.PaymentID, time.Now().Unix())).IntN(6)
	active := time.Since(h.world.plan.began) <= h.world.active
	if !active {
		fault = 0
	}
	if h.silent {
		fault = 1
	}
	verdict := accept
	if active && hashOf("verdict", question.PaymentID)%6 == 0 {
		verdict = quarantine
	}
	verdict = cmp.Or(h.verdicts[question.PaymentID], verdict)
	h.world.log.say("screening", "%s: fault %d, else %s", question.PaymentID, fault, verdict)
	switch fault {
	case 1:
		panic(http.ErrAbortHandler)
	case 2:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case 3:
		_, _ = io.WriteString(w, `{"verdict":"quarantine"} and more`) // a failed write is a silent hook
	default:
		h.verdicts[question.PaymentID] = verdict
		_, _ = fmt.Fprintf(w, `{"verdict":%q,"reason":"a list"}`, verdict)
	}
}

// signedAt returns the time of a question's signature.
func signedAt(r *http.Request) time.Time {
	var seconds int64
	_, _ = fmt.Sscan(strings.TrimSpace(r.Header.Get(webhook.HeaderTimestamp)), &seconds) // 0 fits no signature
	return time.Unix(seconds, 0)
}

// decision returns what the operator decides about a quarantined payment: to release it, to reject it, or nothing.
func decision(paymentID string) apitypes.PaymentScreening {
	return []apitypes.PaymentScreening{apitypes.ScreeningReleased, apitypes.ScreeningReleased, apitypes.ScreeningRejected, ""}[hashOf("decision", paymentID)%4]
}

// operate lets the operator decide about quarantined payments until the faults have stopped.
func (h *screeningHook) operate() {
	if h == nil {
		return
	}
	w, r := h.world, stream(h.world.seed, "operator of the hook")
	for w.pause(time.Duration(r.ExpFloat64()*float64(20*time.Second))) && time.Since(w.plan.began) < w.active {
		h.decide()
	}
}

// decide has the operator decide about the quarantined payments that are in the inbox.
func (h *screeningHook) decide() {
	if h == nil {
		return
	}
	var page apitypes.InboxList
	if h.world.operator.call(http.MethodGet, "/api/inbox?limit=200&kind=quarantined", nil, &page) != nil {
		return
	}
	for _, item := range page.Items {
		if outcome := decision(item.Payment.ID); outcome != "" {
			_ = h.world.operator.call(http.MethodPost, "/api/inbox/decisions", object{ // it is repeated unless the item has gone
				"kind": item.Kind, "objectId": item.Payment.ID, "version": item.Version, "decision": outcome, "reason": "checked by phone",
			}, nil)
		}
	}
}

// judgePayments checks that a payment counts only by a verdict, by the mode for lack of one, or by the operator, and
// notes what became of each.
func (h *screeningHook) judgePayments(all []apitypes.Payment) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = map[paymentKey]apitypes.PaymentScreening{}
	for _, p := range all {
		if p.Status == "orphaned" {
			continue
		}
		h.last[paymentKey{p.TxHash, p.From, p.To, p.Amount}] = p.Screening
		verdict, ok := h.verdicts[p.ID], p.Status != "confirmed"
		switch p.Screening {
		case apitypes.ScreeningAccepted:
			ok = verdict == accept || p.ScreeningReason == "no answer" && !h.conf.Closed
		case apitypes.ScreeningReleased, apitypes.ScreeningRejected:
			ok = p.Screening == decision(p.ID) && (verdict == quarantine || h.conf.Closed) && (p.Screening == apitypes.ScreeningReleased || p.InvoiceID == "")
		case apitypes.ScreeningWaiting, apitypes.ScreeningQuarantined:
		}
		if !ok {
			h.world.fail("payment %s of %q is %s, and %q because of %q; the verdict is %q", p.ID, p.InvoiceID, p.Status, p.Screening, p.ScreeningReason, verdict)
		}
	}
}

// leaves reports whether the operator leaves a payment in quarantine.
func (h *screeningHook) leaves(p apitypes.Payment) bool {
	return h != nil && p.Screening == apitypes.ScreeningQuarantined && decision(p.ID) == ""
}

// holds reports whether a payment that was sent for an order is in quarantine.
func (h *screeningHook) holds(o *order) bool {
	if h != nil {
		for p, is := range h.last {
			if is == apitypes.ScreeningQuarantined && slices.ContainsFunc(o.sent, func(tx *types.Transaction) bool { return tx.Hash().Hex() == p.tx }) {
				return true
			}
		}
	}
	return false
}

// counts returns what is left of what the rules say about a transfer: whether it may be a payment of an order, is one,
// and was one in time. One that was quarantined may have been released too late.
func (h *screeningHook) counts(t transfer, may, kept, early bool) (_, _, _ bool) {
	if h == nil {
		return may, kept, early
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.last[paymentKey{t.tx.Hash().Hex(), t.from.Hex(), t.to.Hex(), t.amount.String()}] {
	case apitypes.ScreeningReleased:
		return may, kept, false
	case apitypes.ScreeningRejected, apitypes.ScreeningQuarantined:
		return false, false, false
	case apitypes.ScreeningAccepted, apitypes.ScreeningWaiting:
	}
	return may, kept, early
}
