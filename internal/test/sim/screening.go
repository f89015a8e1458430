package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/webhook"
)

// screeningHost is where the screening hook listens.
const screeningHost = "127.0.4.1:80"

// screeningHook accepts every payment. While things happen it is often silent or wrong.
type screeningHook struct {
	world  *world
	secret string
	conf   *server.Screening

	mu       sync.Mutex
	accepted map[string]bool // by payment
}

// screen opens the hook in some of the worlds.
func (w *world) screen(outside *host) {
	r := stream(w.seed, "screening")
	if r.IntN(4) > 0 {
		return
	}
	w.screening = &screeningHook{world: w, secret: fmt.Sprintf("whsec_%032x", r.Uint64()), accepted: map[string]bool{}}
	w.screening.conf = &server.Screening{
		URL: "http://" + screeningHost + "/screen", Secret: w.screening.secret,
		Patience: time.Duration(1+r.IntN(10)) * time.Minute,
	}
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
	answer := stream(h.world.seed, fmt.Sprint("screening ", question.PaymentID, time.Now().Unix())).IntN(6)
	if time.Since(h.world.plan.began) > h.world.active {
		answer = 0
	}
	h.world.log.say("screening", "%s: answer %d", question.PaymentID, answer)
	switch answer {
	case 1:
		panic(http.ErrAbortHandler)
	case 2:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	case 3:
		_, _ = io.WriteString(w, `{"verdict":"quarantine"} and more`) // a failed write is a silent hook
	default:
		h.accepted[question.PaymentID] = true
		_, _ = io.WriteString(w, `{"verdict":"accept"}`)
	}
}

// signedAt returns the time of a question's signature.
func signedAt(r *http.Request) time.Time {
	var seconds int64
	_, _ = fmt.Sscan(strings.TrimSpace(r.Header.Get(webhook.HeaderTimestamp)), &seconds) // 0 fits no signature
	return time.Unix(seconds, 0)
}

// judgePayment checks that a final payment counts only by the hook's verdict or for lack of one.
func (h *screeningHook) judgePayment(p apitypes.Payment) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if is := h.accepted[p.ID]; p.Screening != apitypes.ScreeningAccepted || !is && p.ScreeningReason != "no answer" {
		h.world.fail("payment %s is confirmed, and %q because of %q; accepted by the hook: %v", p.ID, p.Screening, p.ScreeningReason, is)
	}
}
