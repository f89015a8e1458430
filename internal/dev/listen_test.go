package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

func TestMain(m *testing.M) {
	// The development chain leaves the workers of its package.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"))
}

const (
	key    = "06ajrm4k5xwqz8v3d0n7c2b9h"
	secret = "whsec_bGlzdGVuIHRvIHdoYXQgdGhlIGNoYWluIHNheXM="
)

// record is the nth event, over 4.90 USDC.
func record(n int, delivery *apitypes.Delivery) apitypes.EventRecord {
	return apitypes.EventRecord{
		Event: json.RawMessage(fmt.Sprintf(`{"id":"evt_%s%d","type":"invoice.paid","createdAt":1764000000,`+
			`"data":{"invoice":{"amount":"4900000","currency":"USDC"}}}`, key, n)),
		MerchantID: "acme", InvoiceID: "inv_" + key + "0", Delivery: delivery,
	}
}

// page answers with events, and with next as the position to continue at.
func page(next string, events ...apitypes.EventRecord) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(apitypes.EventList{Events: append([]apitypes.EventRecord{}, events...), NextCursor: next})
	}
}

// problem answers with a problem document.
func problem(status int, code apitypes.ErrorCode) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		p := apitypes.Problem{Type: "https://x.example/", Title: http.StatusText(status), Status: status, Code: code, Detail: "It is a test."}
		if code == apitypes.CodeInvalidField {
			p.Field = "after"
		}
		return json.NewEncoder(w).Encode(p)
	}
}

// message is a message of a stream of deliveries, which has only an id if there are no events.
func message(id string, events ...apitypes.EventRecord) string {
	text := "id: " + id + "\n"
	for _, e := range events {
		data, _ := json.Marshal(e)
		text += "event: invoice.paid\ndata: " + string(data) + "\n"
	}
	return text + "\n"
}

// streams answers with a stream of messages that ends.
func streams(messages ...string) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := io.WriteString(w, strings.Join(messages, ""))
		return err
	}
}

// hangs answers with a stream that does not end.
func hangs(ctx context.Context, messages ...string) func(http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		if err := streams(messages...)(w); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}

// old returns the answers together with the answers of a service without streams.
func old(all ...func(http.ResponseWriter) error) []func(http.ResponseWriter) error {
	return append([]func(http.ResponseWriter) error{problem(http.StatusNotFound, apitypes.CodeNotFound)}, all...)
}

// answers returns a client of a service that gives its answers one after the other, and
// then repeats the last. asked receives the parameter "after" of each request.
func answers(t *testing.T, all ...func(http.ResponseWriter) error) (api *client.Client, asked <-chan string) {
	t.Helper()
	places := make(chan string, 100)
	var mu sync.Mutex
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		places <- r.URL.Query().Get("after")
		mu.Lock()
		next := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		mu.Unlock()
		expect.NoError(t, next(w))
	})
	checked := apitest.Check(t, h)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/events/stream" { // Check reads a response to its end
			h(w, r)
			return
		}
		checked.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	api, err := client.New(server.URL, client.WithHTTPClient(server.Client()), client.WithRetries(0))
	expect.OK(t, err)
	return api, places
}

// TestForward posts each event once, whatever the receiver answers and whether or not the service also
// delivers it. The service is one without streams.
func TestForward(t *testing.T) {
	t.Parallel()
	api, asked := answers(t, old(
		page("c1"),
		page("c2", record(0, &apitypes.Delivery{ID: "dlv_" + key + "7", Status: apitypes.DeliveryDelivered, Attempts: 1, FinishedAt: 1764000001}), record(1, nil)),
		page("c3", apitypes.EventRecord{Event: json.RawMessage(`{"id":"evt_` + key + `2","type":"invoice.paid","createdAt":0,"data":{}}`), MerchantID: "acme", InvoiceID: "inv_" + key + "0"}),
		problem(http.StatusServiceUnavailable, apitypes.CodeUnavailable),
		page("c4", record(3, nil)),
		page("c4"),
	)...)
	type post struct{ delivery, standard, body string }
	posts := make(chan post, 10)
	receiver := httptest.NewServer(webhook.Handler(secret, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		posts <- post{r.Header.Get(webhook.HeaderDelivery), r.Header.Get(webhook.HeaderStandardID), string(body)}
		if strings.Contains(string(body), key+"1") {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	})))
	t.Cleanup(receiver.Close)
	var out strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Listen(ctx, ListenConfig{API: api, To: &webhooks.Endpoint{URL: receiver.URL, Secret: secret}, Out: Printer{Out: &out, Notes: &out}, Now: time.Now})
	}()
	for i, id := range []string{"dlv_" + key + "7", "dlv_" + key + "1", "dlv_" + key + "3"} {
		n := []int{0, 1, 3}[i]
		expect.Equal(t, <-posts, (post{id, id, string(record(n, nil).Event)}), "posted")
	}
	for _, want := range []string{"end", "end", "c1", "c2", "c3", "c3", "c4"} {
		expect.Equal(t, <-asked, want, "asked for what comes after")
	}
	cancel()
	expect.NoError(t, <-ended)
	if len(posts) > 0 {
		t.Errorf("posted once more: %+v", <-posts)
	}
	for _, want := range []string{
		"4.90 USDC", "evt_" + key + "0  → 200 in ", "evt_" + key + "1  → failed in ", "answered 307, which leads to ",
		"has no streams of deliveries", "returned an invalid event", "does not answer", "answers again", "evt_" + key + "3  → 200 in ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("escape codes in a pipe:\n%s", &out)
	}
}

// written collects printed lines. lines receives each write.
type written struct {
	mu    sync.Mutex
	text  strings.Builder
	lines chan string
}

func newWritten() *written { return &written{lines: make(chan string, 100)} }

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines <- string(p)
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestFromStart prints without posting, in colour.
func TestFromStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	api, asked := answers(t, hangs(ctx, message("c0"), message("c1", record(0, nil))))
	out := newWritten()
	ended := make(chan error, 1)
	go func() {
		ended <- Listen(ctx, ListenConfig{API: api, FromStart: true, Out: Printer{Out: out, Notes: out, Color: true}, Now: time.Now, Ready: func() { fmt.Fprintln(out, "ready") }})
	}()
	expect.Equal(t, <-asked, "start", "asked for what comes after")
	for range 3 { // the line of the event is written in two parts
		<-out.lines
	}
	cancel()
	expect.NoError(t, <-ended)
	if got := out.String(); !strings.HasPrefix(got, "ready\n\x1b[2m") || strings.Count(got, "\n") != 2 || strings.Contains(got, "→") {
		t.Errorf("it printed %q", got)
	}
}

// TestStreams follows streams that break: a stream that is continued immediately prints no line, and
// an outage has one line at its beginning and one at its end. A later replica may be too old.
func TestStreams(t *testing.T) {
	t.Parallel()
	down := problem(http.StatusServiceUnavailable, apitypes.CodeUnavailable)
	ctx, cancel := context.WithCancel(t.Context())
	api, asked := answers(t,
		streams(message("c0"), message("c1", record(1, nil)), "id: c2\nevent: invoice.paid\ndata: {"),
		streams(message("c1"), message("c2", record(2, nil))), // the connection broke before it was read
		down, problem(http.StatusNotFound, apitypes.CodeNotFound), down,
		streams(message("c2"), message("c3", record(1, &apitypes.Delivery{ID: "dlv_" + key + "1", Status: apitypes.DeliveryPending}))), // redelivered
		problem(http.StatusUnauthorized, apitypes.CodeUnauthorized),
	)
	posts := make(chan string, 10)
	receiver := httptest.NewServer(webhook.Handler(secret, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		posts <- r.Header.Get(webhook.HeaderDelivery)
	})))
	t.Cleanup(receiver.Close)
	var notes strings.Builder
	err := Listen(ctx, ListenConfig{API: api, To: &webhooks.Endpoint{URL: receiver.URL, Secret: secret}, Out: Printer{Out: io.Discard, Notes: &notes}, Now: time.Now})
	cancel()
	if err == nil || !strings.Contains(err.Error(), "unauthorized") {
		t.Errorf("it ended with %v", err)
	}
	close(posts)
	var got []string
	for id := range posts {
		got = append(got, strings.TrimPrefix(id, "dlv_"+key))
	}
	expect.NoDiff(t, cmp.Diff([]string{"1", "2", "1"}, got), "deliveries")
	for _, want := range []string{"end", "c1", "c2", "c2", "c2", "c2", "c3"} {
		expect.Equal(t, <-asked, want, "asked for what comes after")
	}
	if text := notes.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "does not answer, will retry") || !strings.HasSuffix(text, "answers again.\n") {
		t.Errorf("it notes\n%s", text)
	}
}

// TestJSON writes only events as the service lists them, with the result of posting them.
func TestJSON(t *testing.T) {
	t.Parallel()
	down := problem(http.StatusServiceUnavailable, apitypes.CodeUnavailable)
	ctx, cancel := context.WithCancel(t.Context())
	api, asked := answers(t, streams(message("c0"), message("c1", record(0, nil))), down, streams(message("c1")), hangs(ctx))
	receiver := httptest.NewServer(webhook.Handler(secret, http.NotFoundHandler()))
	t.Cleanup(receiver.Close)
	var out, notes strings.Builder
	ended := make(chan error, 1)
	go func() {
		ended <- Listen(ctx, ListenConfig{API: api, FromStart: true, To: &webhooks.Endpoint{URL: receiver.URL, Secret: secret},
			Out: Printer{Out: &out, Notes: &notes, JSON: true}, Now: time.Now})
	}()
	for range 4 {
		<-asked
	}
	cancel()
	expect.NoError(t, <-ended)
	var got struct {
		apitypes.EventRecord
		Forwarded struct {
			StatusCode int
			Error      string
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("it wrote %q: %v", &out, err)
	}
	if want := record(0, nil); string(got.Event) != string(want.Event) || got.MerchantID != want.MerchantID || got.InvoiceID != want.InvoiceID {
		t.Errorf("the event is %+v", got.EventRecord)
	}
	if got.Forwarded.StatusCode != http.StatusNotFound || got.Forwarded.Error == "" {
		t.Errorf("posting it is said to have ended with %+v", got.Forwarded)
	}
	if !strings.Contains(notes.String(), "answers again") {
		t.Errorf("the notes are %q", &notes)
	}
}

// TestRefused ends if another request would not help, and starts only with a service that answers.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, all := range map[string][]func(http.ResponseWriter) error{
		"at first":   {problem(http.StatusBadRequest, apitypes.CodeInvalidField)},
		"later":      {streams(message("c1")), problem(http.StatusBadRequest, apitypes.CodeInvalidField)},
		"old":        old(problem(http.StatusBadRequest, apitypes.CodeInvalidField)),
		"old, later": old(page("c1"), problem(http.StatusBadRequest, apitypes.CodeInvalidField)),
		"no answer":  {problem(http.StatusServiceUnavailable, apitypes.CodeUnavailable)},
		"old, none":  old(problem(http.StatusServiceUnavailable, apitypes.CodeUnavailable)),
		"no service": {func(http.ResponseWriter) error { panic(http.ErrAbortHandler) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, _ := answers(t, all...)
			if err := Listen(t.Context(), ListenConfig{API: api, Out: Printer{Out: io.Discard, Notes: io.Discard}, Now: time.Now}); err == nil {
				t.Error("it ended without an error")
			}
		})
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"invoice":{"amount":"4900000","currency":"USDC"}}`:                                                 "4.90 USDC",
		`{"payment":{"amount":"1","currency":"USDC"}}`:                                                       "0.000001 USDC",
		`{"refund":{"amount":"2000000","currency":"USDC"},"payment":{"amount":"4900000","currency":"USDC"}}`: "2.00 USDC",
		`{"invoice":{"amount":"7","currency":"XTS"}}`:                                                        "7 minor units of XTS",
		`{}`:              "",
		`{"invoice":"x"}`: "",
	} {
		expect.Equal(t, amount(json.RawMessage(data)), want, "%s:", data)
	}
}

// TestRedeliver redelivers old events, including one that the service never delivered.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	event := func(n int) func(http.ResponseWriter) error {
		return func(w http.ResponseWriter) error {
			w.Header().Set("Content-Type", "application/json")
			return json.NewEncoder(w).Encode(record(n, nil))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	api, _ := answers(t, streams(message("c1")), event(0), event(1), hangs(ctx, message("c2", record(2, nil))))
	posts := make(chan string, 10)
	receiver := httptest.NewServer(webhook.Handler(secret, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		posts <- r.Header.Get(webhook.HeaderDelivery)
	})))
	t.Cleanup(receiver.Close)
	ended := make(chan error, 1)
	go func() {
		ended <- Listen(ctx, ListenConfig{API: api, Redeliver: []string{"evt_" + key + "0", "evt_" + key + "1"},
			To: &webhooks.Endpoint{URL: receiver.URL, Secret: secret}, Out: Printer{Out: io.Discard, Notes: io.Discard}, Now: time.Now})
	}()
	for _, want := range []string{"dlv_" + key + "0", "dlv_" + key + "1", "dlv_" + key + "2"} {
		expect.Equal(t, <-posts, want, "posted")
	}
	cancel()
	expect.NoError(t, <-ended)
}
