package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// event is an event that a merchant's endpoint has received.
type event struct {
	webhook.Event
	Subject    string // the id of an invoice, a payment or a refund
	InvoiceID  string
	MerchantID string // empty for payments and refunds: their bodies lack it
	DeliveryID string
	signature  string // its header
	body       []byte
	attempts   int // number of requests with the event
	accepted   int // number of these that were answered 2xx
}

// receiver is a merchant's endpoint. It verifies each delivery with the package webhook,
// and stores all of them, including those that it rejected.
type receiver struct {
	testing.TB
	*httptest.Server

	mu       sync.Mutex
	secret   string
	restored bool                                                  // the service's database is restored, so that createdAt of an event may change
	answer   func(w http.ResponseWriter, r *http.Request, e event) // nil accepts
	events   map[string]*event                                     // by id
	problems []string                                              // faults that fail the test
	changed  chan struct{}                                         // closed and replaced at every delivery
}

func newReceiver(tb testing.TB) *receiver {
	tb.Helper()
	r := &receiver{TB: tb, events: make(map[string]*event), changed: make(chan struct{})}
	verifier := webhook.Verifier{Lookup: func(*http.Request) ([]string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return []string{r.secret}, nil
	}}
	verified := verifier.Handler(http.HandlerFunc(r.accept))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		status := &statusWriter{ResponseWriter: w}
		verified.ServeHTTP(status, req)
		if status.code == http.StatusUnauthorized {
			r.problem("a delivery was not signed as it should be: %s", req.Header)
		}
	}))
	tb.Cleanup(r.Close)
	return r
}

// setSecret sets the secret that verifies deliveries.
func (r *receiver) setSecret(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// behave sets how the receiver answers deliveries; nil accepts them.
func (r *receiver) behave(answer func(http.ResponseWriter, *http.Request, event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// hangUp closes the connection without a response.
func hangUp(http.ResponseWriter, *http.Request, event) { panic(http.ErrAbortHandler) }

type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader stores the status.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the writer beneath.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (r *receiver) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// accept stores a delivery with a valid signature.
func (r *receiver) accept(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.problem("read a verified body: %v", err)
		return
	}
	e, err := parseEvent(body)
	if err != nil {
		r.problem("%v\n%s", err, body)
		return
	}
	if err := apitest.Event(r, body); err != nil {
		r.problem("%s is not as openapi.yaml says: %v\n%s", e.Type, err, body)
	}
	if typ := req.Header.Get(webhook.HeaderEvent); typ != e.Type {
		r.problem("the event %s is of type %s, and its header says %s", e.ID, e.Type, typ)
	}
	if at := req.Header.Get(webhook.HeaderTimestamp); !strings.HasPrefix(req.Header.Get(webhook.HeaderSignature), "t="+at+",") {
		r.problem("the timestamp %q is not that of the signature", at)
	}
	if typ := req.Header.Get("Content-Type"); typ != "application/json" {
		r.problem("the content type is %q", typ)
	}
	e.DeliveryID, e.signature = req.Header.Get(webhook.HeaderDelivery), req.Header.Get(webhook.HeaderSignature)
	kept, answer := r.keep(e)
	if answer != nil {
		status := &statusWriter{ResponseWriter: w}
		answer(status, req, kept)
		if status.code < 200 || status.code > 299 {
			r.notify(nil)
			return
		}
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	r.notify(func() { r.events[e.ID].accepted++ })
}

// notify makes a change and wakes all waiting goroutines.
func (r *receiver) notify(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change != nil {
		change()
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// keep stores a delivery, and returns the event with its number of deliveries, and the response to give.
func (r *receiver) keep(e event) (event, func(http.ResponseWriter, *http.Request, event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.events[e.ID]
	switch {
	case known == nil:
		known = &e
		r.events[e.ID] = known
	case known.DeliveryID != e.DeliveryID:
		r.problems = append(r.problems, fmt.Sprintf("the event %s came as %s and as %s", e.ID, known.DeliveryID, e.DeliveryID))
	case !r.restored && !bytes.Equal(known.body, e.body):
		r.problems = append(r.problems, fmt.Sprintf("the event %s came with other bytes:\n%s\n%s", e.ID, known.body, e.body))
	}
	known.attempts++
	return *known, r.answer
}

// parseEvent parses the body of an event.
func parseEvent(body []byte) (event, error) {
	parsed, err := webhook.ParseEvent(body)
	if err != nil {
		return event{}, err
	}
	var data struct {
		Invoice struct{ ID, MerchantID string }
		Payment struct{ ID, InvoiceID string }
		Refund  struct{ ID, InvoiceID string }
	}
	if err := json.Unmarshal(parsed.Data, &data); err != nil {
		return event{}, err
	}
	e := event{Event: parsed, body: body, MerchantID: data.Invoice.MerchantID}
	switch parsed.Type {
	case webhook.PaymentReceived:
		e.Subject, e.InvoiceID = data.Payment.ID, data.Payment.InvoiceID
	case webhook.PaymentRefunded:
		e.Subject, e.InvoiceID = data.Refund.ID, data.Refund.InvoiceID
	default:
		e.Subject, e.InvoiceID = data.Invoice.ID, data.Invoice.ID
	}
	return e, nil
}

// got returns a copy of all received events, and the problems.
func (r *receiver) got() (events []event, problems []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		events = append(events, *e)
	}
	return events, append(problems, r.problems...)
}

// await waits until an event of the type about the invoice was accepted.
func (r *receiver) await(ctx context.Context, typ, invoiceID string) event {
	r.Helper()
	for {
		r.mu.Lock()
		changed := r.changed
		for _, e := range r.events {
			if e.Type == typ && e.InvoiceID == invoiceID && e.accepted > 0 {
				found := *e
				r.mu.Unlock()
				return found
			}
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			r.Fatalf("no %s came for invoice %s", typ, invoiceID)
		}
	}
}

// clean fails the test if a delivery had a problem.
func (r *receiver) clean() {
	r.Helper()
	_, problems := r.got()
	for _, p := range problems {
		r.Error(p)
	}
}

// exactly fails the test unless the received events are exactly these types of each invoice, in any order.
func (r *receiver) exactly(want map[string][]string) {
	r.Helper()
	events, _ := r.got()
	got := make(map[string]map[string]int)
	subjects := make(map[string]bool)
	for _, e := range events {
		if got[e.InvoiceID] == nil {
			got[e.InvoiceID] = make(map[string]int)
		}
		got[e.InvoiceID][e.Type]++
		if key := e.Type + " " + e.Subject; subjects[key] {
			r.Errorf("two events tell of one thing: %s", key)
		} else {
			subjects[key] = true
		}
	}
	for id, types := range want {
		if got[id] == nil {
			got[id] = make(map[string]int)
		}
		for _, typ := range types {
			got[id][typ]--
		}
	}
	for id, types := range got {
		for typ, n := range types {
			if n != 0 {
				r.Errorf("%s came %d times too often about invoice %s", typ, n, id)
			}
		}
	}
	r.clean()
}

// leaseTime is the time within which a delivery that a killed program had leased must be attempted again.
const leaseTime = time.Minute

// awaitEvent waits until the record of an event meets a condition.
func (w *world) awaitEvent(id string, limit time.Duration, ok func(apitypes.EventRecord) bool) apitypes.EventRecord {
	w.Helper()
	var got apitypes.EventRecord
	ctx := within(w, limit)
	err := await(ctx, func() bool {
		var err error
		if got, err = w.api().Event(ctx, id); err != nil {
			w.Fatal(err)
		}
		return ok(got)
	})
	if err != nil {
		w.Fatalf("the event did not become what it should: %+v, delivery %+v", got, got.Delivery)
	}
	return got
}

// created returns the one event of an invoice that was just created.
func (w *world) created(invoiceID string) apitypes.EventRecord {
	w.Helper()
	for e, err := range w.api().Events(w.Context(), client.EventFilter{InvoiceID: invoiceID}) {
		expect.OK(w, err)
		return e
	}
	w.Fatalf("no event has the invoice %s", invoiceID)
	return apitypes.EventRecord{}
}

// allowConfig configures a service with a merchant on the same machine.
const allowConfig = `
listen: 127.0.0.1:0
database: sqlite:%s
merchants: [{id: acme, webhookUrl: "%s", webhookSecretEnv: ACME_SECRET}]
webhooks: {allow: [%s]}
` + keySetting + `
chains:
  - {chainKey: testnet, idleInterval: 1s, chainId: %d, rpc: ["%s"], finality: 2, tokens: [{currency: USDC, address: "%s"}]}
`

// TestExtraWebhookAllow checks that a service posts to its own machine only if the configuration allows it.
func TestExtraWebhookAllow(t *testing.T) {
	t.Parallel()
	g, r := newServedWorld(t), newReceiver(t)
	r.setSecret("whsec_of_acme_shop")
	g.env = []string{"ACME_SECRET=whsec_of_acme_shop"}
	serve := func(allow string) *child {
		on := g.info.Load().Chain
		g.configure(fmt.Sprintf(allowConfig, filepath.Join(g.dir, "pay.db"), r.URL, allow, on.ChainID, on.RPCURL, on.Token))
		return g.serve()
	}
	c := serve("10.0.0.0/8")
	made := g.create(g.draft("4900000"))
	got := g.awaitEvent(g.created(made.ID).ID(), patience, func(e apitypes.EventRecord) bool { return e.Delivery.Attempts > 0 })
	if a := got.Attempts[0]; a.StatusCode != 0 || !strings.Contains(a.Error, "webhooks.allow") {
		t.Errorf("the attempt is %+v", a)
	}
	if events, _ := r.got(); len(events) != 0 {
		t.Fatalf("the receiver was reached: %+v", events)
	}
	c.kill()
	serve("10.0.0.0/8, 127.0.0.1/32")
	if came := r.await(within(t, leaseTime), webhook.InvoiceCreated, made.ID); came.DeliveryID != got.Delivery.ID {
		t.Errorf("it came as %s, not as %s", came.DeliveryID, got.Delivery.ID)
	}
	r.clean()
}
