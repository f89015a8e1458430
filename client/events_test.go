package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

func record(n int) apitypes.EventRecord {
	id := fmt.Sprintf("06ajrm4k5xwqz8v3d0n7c2b9h%d", n)
	return apitypes.EventRecord{
		Event:      json.RawMessage(fmt.Sprintf(`{"id":"evt_%s","type":"invoice.paid","createdAt":7,"data":{}}`, id)),
		MerchantID: "acme", InvoiceID: invoice.ID, Delivery: &apitypes.Delivery{ID: "dlv_" + id, Status: apitypes.DeliveryFailed, Attempts: 2, FinishedAt: 9},
	}
}

// asked is a request to the service.
type asked []string

// follow returns a client of a service that returns the given responses in turn.
func follow(t *testing.T, answers ...any) (*client.Client, *asked) {
	t.Helper()
	seen := new(asked)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		*seen = append(*seen, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
		answer(t, w, http.StatusOK, "application/json", answers[len(*seen)-1])
	}), seen
}

func TestEvents(t *testing.T) {
	c, seen := follow(t, apitypes.EventList{Events: []apitypes.EventRecord{record(2)}, NextCursor: "c1"}, apitypes.EventList{Events: []apitypes.EventRecord{record(1)}})
	var ids []string
	for r, err := range c.Events(t.Context(), client.EventFilter{MerchantID: "acme", Type: apitypes.EventInvoicePaid, InvoiceID: "inv_1", Delivery: apitypes.WithFailed, PageSize: 1}) {
		expect.OK(t, err)
		ids = append(ids, r.ID())
	}
	if diff := cmp.Diff([]string{record(2).ID(), record(1).ID()}, ids); diff != "" || ids[0] == "" {
		t.Error(diff)
	}
	const filter = "delivery=failed&invoiceId=inv_1&limit=1&merchantId=acme&type=invoice.paid"
	if diff := cmp.Diff(asked{"GET /api/events?" + filter, "GET /api/events?cursor=c1&" + filter}, *seen); diff != "" {
		t.Error(diff)
	}
}

func TestEventsAfter(t *testing.T) {
	c, seen := follow(t, apitypes.EventList{Events: []apitypes.EventRecord{record(1)}, NextCursor: "c1"}, apitypes.EventList{Events: []apitypes.EventRecord{}, NextCursor: "c1"},
		apitypes.EventList{Events: []apitypes.EventRecord{}})
	f := client.EventFilter{MerchantID: "acme", PageSize: 5}
	events, next, err := c.EventsAfter(t.Context(), f, client.AfterStart)
	if diff := cmp.Diff([]apitypes.EventRecord{record(1)}, events); diff != "" || err != nil || next != "c1" {
		t.Errorf("next is %q, %v: %s", next, err, diff)
	}
	if events, next, err := c.EventsAfter(t.Context(), f, next); len(events) != 0 || next != "c1" || err != nil {
		t.Errorf("an empty page gives %v, %q, %v", events, next, err)
	}
	if _, next, err := c.EventsAfter(t.Context(), f, next); err == nil || next != "c1" {
		t.Errorf("an answer without a cursor gives %q, %v", next, err)
	}
	want := asked{"GET /api/events?after=start&limit=5&merchantId=acme", "GET /api/events?after=c1&limit=5&merchantId=acme", "GET /api/events?after=c1&limit=5&merchantId=acme"}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Error(diff)
	}
}

func TestEvent(t *testing.T) {
	want := record(1)
	want.Attempts = []apitypes.Attempt{{Number: 1, StartedAt: 8, DurationMs: 3, StatusCode: 500, Error: "answered 500, expected 2xx", Excerpt: "no"}}
	c, seen := follow(t, want, want, want)
	got, err := c.Event(t.Context(), want.ID())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if e := got.Envelope(); e != (apitypes.Envelope{ID: want.ID(), Type: apitypes.EventInvoicePaid, CreatedAt: 7}) {
		t.Errorf("the envelope is %+v", e)
	}
	if got, err := c.RedeliverEvent(t.Context(), want.ID()); err != nil || got.ID() != want.ID() {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.Event(t.Context(), "evt_other"); err == nil {
		t.Error("the answer of another event is taken")
	}
	if diff := cmp.Diff(asked{"GET /api/events/" + want.ID(), "POST /api/events/" + want.ID() + "/redeliver", "GET /api/events/evt_other"}, *seen); diff != "" {
		t.Error(diff)
	}
}

func TestRedeliverEvents(t *testing.T) {
	c, seen := follow(t, apitypes.RedeliverEventsResponse{Redelivered: 5, NextCursor: "c1"}, apitypes.RedeliverEventsResponse{Redelivered: 2},
		apitypes.RedeliverEventsResponse{NextCursor: "c1"}, apitypes.RedeliverEventsResponse{NextCursor: "c1"})
	from := int64(0)
	if n, err := c.RedeliverEvents(t.Context(), apitypes.RedeliverEventsRequest{From: &from, FailedOnly: true}); n != 7 || err != nil {
		t.Errorf("%d sent again, %v", n, err)
	}
	if n, err := c.RedeliverEvents(t.Context(), apitypes.RedeliverEventsRequest{FailedOnly: true}); n != 0 || err == nil {
		t.Errorf("a service that leads in circles gives %d, %v", n, err)
	}
	want := asked{`POST /api/events/redeliver {"from":0,"failedOnly":true}`, `POST /api/events/redeliver {"from":0,"failedOnly":true,"cursor":"c1"}`,
		`POST /api/events/redeliver {"failedOnly":true}`, `POST /api/events/redeliver {"failedOnly":true,"cursor":"c1"}`}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Error(diff)
	}
	c = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, http.StatusConflict, "application/problem+json", apitypes.Problem{Type: "https://x.example/", Title: "x", Status: 409, Detail: "x", Code: apitypes.CodeDeliveryPending})
	})
	var refused *client.Error
	if _, err := c.RedeliverEvent(t.Context(), "evt_1"); !errors.As(err, &refused) || refused.Code != apitypes.CodeDeliveryPending {
		t.Errorf("the error is %v", err)
	}
}

// invoicePage answers with invoices of the numbers.
func invoicePage(next string, numbers ...int) outcome {
	var invoices []string
	for _, n := range numbers {
		invoices = append(invoices, fmt.Sprintf(`{"id":"inv_%d"}`, n))
	}
	return answers(http.StatusOK, fmt.Sprintf(`{"invoices":[%s],"nextCursor":%q}`, strings.Join(invoices, ","), next))
}

func numbers(invoices []apitypes.Invoice) string {
	var all []string
	for _, inv := range invoices {
		all = append(all, strings.TrimPrefix(inv.ID, "inv_"))
	}
	return strings.Join(all, " ")
}

func TestCollect(t *testing.T) {
	for limit, want := range map[int]struct {
		ids      string
		requests int
	}{1: {"1", 1}, 2: {"1 2", 1}, 3: {"1 2 3", 2}, 100: {"1 2 3", 2}} {
		c, e, _ := with(t, invoicePage("c1", 1, 2), invoicePage("", 3))
		got, err := client.Collect(c.Invoices(t.Context(), client.InvoiceFilter{}), limit)
		if err != nil || numbers(got) != want.ids || len(e.sent) != want.requests {
			t.Errorf("at most %d: %s, %v after %d requests, want %+v", limit, numbers(got), err, len(e.sent), want)
		}
	}
	c, e, _ := with(t, invoicePage("c1", 1, 2), problem(400, apitypes.CodeInvalidField))
	got, err := client.Collect(c.Invoices(t.Context(), client.InvoiceFilter{}), 3)
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || numbers(got) != "1 2" {
		t.Errorf("%s, %v", numbers(got), err)
	}
	if _, err := client.Collect(c.Invoices(t.Context(), client.InvoiceFilter{}), 0); err == nil || len(e.sent) != 2 {
		t.Errorf("a limit of 0: %v", err)
	}
}

func TestPages(t *testing.T) {
	c, e, _ := with(t, invoicePage("c1", 1, 2), invoicePage("", 3))
	f := client.InvoiceFilter{Status: apitypes.StatusPaid, PageSize: 2}
	first, err := c.InvoicesPage(t.Context(), f, "")
	if err != nil || numbers(first.Items) != "1 2" || first.NextCursor != "c1" {
		t.Errorf("%+v, %v", first, err)
	}
	last, err := c.InvoicesPage(t.Context(), f, first.NextCursor)
	if err != nil || numbers(last.Items) != "3" || last.NextCursor != "" {
		t.Errorf("%+v, %v", last, err)
	}
	if e.queries[0].Encode() != "limit=2&status=paid" || e.queries[1].Encode() != "cursor=c1&limit=2&status=paid" {
		t.Errorf("asked for %v", e.queries)
	}

	c, e, _ = with(t, answers(200, `{"payments":[{"id":"pay_1"}],"nextCursor":"c1"}`), answers(200, `{"refunds":[{"id":"ref_1"}],"nextCursor":"c2"}`),
		answers(200, `{"customers":[{"customer":"x"}],"nextCursor":"c3"}`), answers(200, `{"links":[{"id":"lnk_1","url":"/pay/x"}],"nextCursor":"c4"}`),
		answers(200, `{"events":[{"event":{"id":"evt_1"},"merchantId":"acme"}],"nextCursor":"c5"}`))
	ctx := t.Context()
	payments, err1 := c.PaymentsPage(ctx, client.PaymentFilter{}, "c")
	refunds, err2 := c.RefundsPage(ctx, client.RefundFilter{}, "c")
	customers, err3 := c.CustomersPage(ctx, client.CustomerFilter{}, "c")
	links, err4 := c.PaymentLinksPage(ctx, client.PaymentLinkFilter{}, "c")
	events, err5 := c.EventsPage(ctx, client.EventFilter{}, "c")
	expect.OK(t, errors.Join(err1, err2, err3, err4, err5))
	got := []string{payments.NextCursor, refunds.NextCursor, customers.NextCursor, links.NextCursor, events.NextCursor, payments.Items[0].ID, refunds.Items[0].ID,
		customers.Items[0].Customer, links.Items[0].URL, events.Items[0].ID()}
	want := []string{"c1", "c2", "c3", "c4", "c5", "pay_1", "ref_1", "x", "http://service.example/pay/x", "evt_1"}
	if !slices.Equal(got, want) || len(e.sent) != 5 {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, query := range e.queries {
		if query.Encode() != "cursor=c" {
			t.Errorf("asked for %s", query.Encode())
		}
	}
}

// TestLongMessageOfAStream has a stream with a message that is too long, in one line or in several.
func TestLongMessageOfAStream(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	for name, text := range map[string]string{"lines": strings.Repeat(line, 3), "a line": strings.ReplaceAll(strings.Repeat(line, 3), "\n", "") + "\n\n"} {
		c, e, _ := with(t, answers(http.StatusOK, text+"\n"))
		for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
			if invalid := (*client.InvalidResponseError)(nil); !errors.As(err, &invalid) || len(e.sent) != 1 {
				t.Errorf("%s: %v after %d requests", name, err, len(e.sent))
			}
		}
	}
}

// TestStreamEvents has a stream that breaks in the middle of a message, a service that is
// down, and a stream that is continued.
func TestStreamEvents(t *testing.T) {
	first := "retry: 2000\nid: c0\n\n: nothing yet\n\nid: c1\nevent: invoice.paid\ndata: " + body("invoice.paid", "{}") + "\n\nid: c2\ndata: {"
	second := "id: c2\r\ndata: " + strings.Replace(body("invoice.paid", "{}"), "evt_1", "evt_2", 1) + "\r\n\r\n"
	c, e, k := with(t, answers(http.StatusOK, first), problem(503, apitypes.CodeUnavailable), breaks(errNoListener),
		answers(http.StatusOK, second), problem(401, apitypes.CodeUnauthorized))
	var got []string
	for event, err := range c.StreamEvents(t.Context(), client.EventFilter{MerchantID: "acme"}, client.AfterEnd) {
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, event.Position+" "+event.Event.ID)
	}
	expect.NoDiff(t, cmp.Diff([]string{"c1 evt_1", "c2 evt_2", "client: GET /api/events/stream: answered 401 unauthorized: D. (2 attempts)"}, got), "events")
	var after []string
	for _, query := range e.queries {
		after = append(after, query.Get("merchantId")+" "+query.Get("after"))
	}
	expect.NoDiff(t, cmp.Diff([]string{"acme end", "acme c1", "acme c1", "acme c1", "acme c2"}, after), "positions")
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 500 * time.Millisecond}
	expect.NoDiff(t, cmp.Diff(want, k.waited), "waits")
}

// TestSilentStream has a stream that is silent for longer than the service ever is.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &exchanges{outcomes: []outcome{{hangs: true}, problem(404, apitypes.CodeNotFound)}}
		c := expect.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e}), client.WithRandom(zeros{})))
		start := time.Now()
		for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
			if refused := (*client.Error)(nil); !errors.As(err, &refused) {
				t.Errorf("the error is %v", err)
			}
		}
		if took := time.Since(start); took != 45*time.Second+client.FirstDelay || len(e.sent) != 2 {
			t.Errorf("it took %s and %d requests", took, len(e.sent))
		}

		e.outcomes, e.sent = []outcome{{hangs: true}}, nil
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		for _, err := range c.StreamEvents(ctx, client.EventFilter{}, client.AfterStart) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		}
	})
}

func TestStreamEndsWithItsReader(t *testing.T) {
	c, e, _ := with(t, answers(http.StatusOK, strings.Repeat("id: c1\ndata: "+body("invoice.paid", "{}")+"\n\n", 2)))
	for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
		expect.NoError(t, err)
		break
	}
	if len(e.sent) != 1 {
		t.Errorf("%d requests", len(e.sent))
	}
	c, _, _ = with(t, answers(http.StatusOK, "data: {}\n\n"))
	failed := 0
	for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
		if failed++; err == nil {
			t.Error("what is not an event is yielded")
		}
	}
	if failed != 1 {
		t.Errorf("%d errors", failed)
	}
}

func TestAwaitInvoice(t *testing.T) {
	open, paid := `{"invoice":{"id":"inv_1","status":"open"}}`, `{"invoice":{"id":"inv_1","status":"paid"}}`
	c, e, _ := with(t, answers(http.StatusOK, open), problem(503, apitypes.CodeUnavailable), answers(http.StatusOK, paid))
	got, err := c.AwaitInvoice(t.Context(), "inv_1", apitypes.StatusOpen)
	if err != nil || got.Status != apitypes.StatusPaid || len(e.sent) != 3 || e.queries[2].Encode() != "status=open&wait=60" {
		t.Errorf("%+v, %v after %q", got, err, e.queries)
	}
	// A request with wait takes up to a minute more.
	synctest.Test(t, func(t *testing.T) {
		e := &exchanges{outcomes: []outcome{{hangs: true}, {hangs: true}}}
		c := client.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e})))
		start := time.Now()
		if _, err := c.AwaitInvoice(t.Context(), "inv_1", apitypes.StatusOpen); err == nil || time.Since(start) != time.Minute+client.DefaultTimeout {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestStreamDeliveries reads a stream that breaks: it is not continued.
func TestStreamDeliveries(t *testing.T) {
	record := `{"event":` + body("invoice.paid", "{}") + `,"merchantId":"acme","delivery":{"id":"dlv_1","status":"pending","attempts":0}}`
	c, e, _ := with(t, answers(http.StatusOK, "retry: 2000\nid: c0\n\n: nothing yet\n\nid: c1\nevent: invoice.paid\ndata: "+record+"\n\nid: c2\ndata: {"))
	var got []string
	for m, err := range c.StreamDeliveries(t.Context(), client.EventFilter{MerchantID: "acme"}, "c0") {
		switch {
		case err != nil:
			got = append(got, "error")
		case m.Record == nil:
			got = append(got, m.Position)
		default:
			got = append(got, m.Position+" "+m.Record.ID()+" "+m.Record.Delivery.ID)
		}
	}
	if diff := cmp.Diff([]string{"c0", "c0", "c1 evt_1 dlv_1", "error"}, got); diff != "" || e.queries[0].Encode() != "after=c0&include=deliveries&merchantId=acme" {
		t.Errorf("asked for %s (-want +got):\n%s", e.queries[0].Encode(), diff)
	}
	for text, want := range map[string]int{"data: {}\n\n": 1, "data: x\n\n": 1, "id: c1\n\n": 1} {
		c, _, _ := with(t, answers(http.StatusOK, text))
		errs := 0
		for _, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, client.AfterEnd) {
			if err != nil {
				errs++
			}
		}
		if errs != want {
			t.Errorf("%q: %d errors, want %d", text, errs, want)
		}
	}
	c, e, _ = with(t, answers(http.StatusOK, "id: c0\n\nid: c1\n\n"))
	for _, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, client.AfterEnd) {
		expect.NoError(t, err)
		break
	}
	if len(e.sent) != 1 {
		t.Errorf("%d requests", len(e.sent))
	}
}

// TestSlowReader has a caller who takes longer for an event than a stream may be silent.
func TestSlowReader(t *testing.T) {
	event := body("invoice.paid", "{}")
	record := `{"event":` + event + `,"merchantId":"acme","delivery":{"id":"dlv_1","status":"pending","attempts":0}}`
	synctest.Test(t, func(t *testing.T) {
		c := client.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: &slow{kind: "text/event-stream", parts: []part{
			{0, "id: c1\ndata: " + record + "\n\n"}, {30 * time.Second, ": ping\n"}, {30 * time.Second, "id: c2\ndata: " + record + "\n\n"},
		}}})))
		got := 0
		for m, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, client.AfterEnd) {
			if m.Record == nil {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("the stream ended with %v", err)
				}
				break
			}
			got++
			<-time.After(time.Minute)
		}
		if got != 2 {
			t.Errorf("%d events came, want 2", got)
		}
	})
}

// endless is a text that is repeated, beyond the limit of any client.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 64<<20 {
		return 0, io.EOF
	}
	n := len(p) - len(p)%len(e.text)
	copy(p, strings.Repeat(e.text, n/len(e.text)))
	e.read += n
	return n, nil
}

// TestEndlessMessages has lines without an end, with and without content.
func TestEndlessMessages(t *testing.T) {
	for _, text := range []string{"data:\n", "data: x\n", "data: " + strings.Repeat("x", 1000) + "\n", "data"} {
		e := &endless{text: text}
		c, _, _ := with(t, outcome{status: http.StatusOK, header: http.Header{"Content-Type": {"text/event-stream"}}, body: e}, problem(401, apitypes.CodeUnauthorized))
		for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterEnd) {
			if err == nil || !strings.Contains(err.Error(), "a message of the stream exceeds 2097152 bytes") || e.read > 16<<20 {
				t.Errorf("%.10q: the error is %v after %d bytes", text, err, e.read)
			}
		}
	}
}

// gone answers that the log cannot be continued from a position.
func gone(reason, after string) outcome {
	return answers(http.StatusGone, fmt.Sprintf(`{"status":410,"code":"cursor_gone","detail":"D.","reason":%q,"after":%q}`, reason, after))
}

// eventPage answers with the events of the numbers, and a position.
func eventPage(next string, numbers ...int) outcome {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprintf(`{"event":{"id":"evt_%d","type":"invoice.paid","createdAt":1,"data":{}},"merchantId":"acme"}`, n)
	}
	return answers(http.StatusOK, fmt.Sprintf(`{"events":[%s],"nextCursor":%q}`, strings.Join(texts, ","), next))
}

func ids(events []apitypes.EventRecord) (all []string) {
	for _, e := range events {
		all = append(all, e.ID())
	}
	return all
}

// TestEventsAfterARestore pages over two restores and a removal.
func TestEventsAfterARestore(t *testing.T) {
	c, e, _ := with(t,
		eventPage("c3", 1, 2, 3),
		gone("restored", "d1"), eventPage("d3", 2, 3), eventPage("d4", 4), // 2 and 3 happened again
		gone("replaced", "e0"), gone("removed", "e1"),
		eventPage("e5", 4, 5),
		eventPage("c3", 1, 2, 3), // another caller, from the beginning
	)
	var got []string
	at := client.AfterStart
	for range 4 {
		events, next, err := c.EventsAfter(t.Context(), client.EventFilter{}, at)
		var lost *client.EventsLostError
		switch {
		case errors.As(err, &lost):
			got = append(got, "lost "+lost.Position+" "+lost.Detail)
		case err != nil:
			t.Fatal(err)
		}
		got = append(got, ids(events)...)
		at = next
	}
	got = append(got, "at "+at)
	events, _, err := c.EventsAfter(t.Context(), client.EventFilter{}, client.AfterStart)
	if diff := cmp.Diff([]string{"evt_1", "evt_2", "evt_3"}, ids(events)); diff != "" || err != nil {
		t.Errorf("another caller, %v (-want +got):\n%s", err, diff)
	}
	expect.NoDiff(t, cmp.Diff([]string{"evt_1", "evt_2", "evt_3", "evt_4", "lost e1 D.", "evt_5", "at e5"}, got), "")
	var asked []string
	for _, query := range e.queries {
		asked = append(asked, query.Get("after"))
	}
	expect.NoDiff(t, cmp.Diff([]string{"start", "c3", "d1", "d3", "d4", "e0", "e1", "start"}, asked), "positions")
}

// TestRecentEventsAreBounded restores a log further back than the client remembers.
func TestRecentEventsAreBounded(t *testing.T) {
	all := make([]int, client.MaxRecentEvents+1)
	for i := range all {
		all[i] = i
	}
	c, _, _ := with(t, eventPage("c1", all...), gone("restored", "d0"), eventPage("d1", all...))
	_, next, err := c.EventsAfter(t.Context(), client.EventFilter{}, client.AfterStart)
	expect.OK(t, err)
	events, _, err := c.EventsAfter(t.Context(), client.EventFilter{}, next)
	if diff := cmp.Diff([]string{"evt_0"}, ids(events)); diff != "" || err != nil {
		t.Errorf("again, %v (-want +got):\n%s", err, diff)
	}
}

// TestPositionsAreBounded follows a log from more positions than the client remembers.
func TestPositionsAreBounded(t *testing.T) {
	const followers = 17
	outcomes := []outcome{}
	for i := range followers {
		outcomes = append(outcomes, eventPage(fmt.Sprint("c", i), i))
	}
	for _, i := range []int{1, 0} {
		outcomes = append(outcomes, gone("restored", "d"), eventPage("d1", i, 99))
	}
	c, _, _ := with(t, outcomes...)
	for range followers {
		expect.Success(t)(c.EventsAfter(t.Context(), client.EventFilter{}, client.AfterStart))
	}
	for want, at := range []string{1: "c1", 2: "c0"} { // events before the first position are forgotten
		if at == "" {
			continue
		}
		events, _, err := c.EventsAfter(t.Context(), client.EventFilter{}, at)
		if len(events) != want || err != nil {
			t.Errorf("from position %s: %v, %v; want %d", at, ids(events), err, want)
		}
	}
}

// TestGoneWithoutEnd has a service that always returns another position, and one that returns no position.
func TestGoneWithoutEnd(t *testing.T) {
	outcomes := []outcome{}
	for i := range 9 {
		outcomes = append(outcomes, gone("restored", fmt.Sprint("d", i)))
	}
	c, e, _ := with(t, append(outcomes, gone("restored", ""))...)
	for _, sent := range []int{9, 10} {
		_, next, err := c.EventsAfter(t.Context(), client.EventFilter{}, "c1")
		if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Code != apitypes.CodeCursorGone || next != "c1" || len(e.queries) != sent {
			t.Errorf("got %q, %v after %d requests", next, err, len(e.queries))
		}
	}
}

// streamOf answers with a stream of the events with these numbers, at positions that begin with a letter.
func streamOf(letter string, numbers ...int) outcome {
	text := "id: " + letter + "\n\n"
	for _, n := range numbers {
		text += fmt.Sprintf("id: %s%d\ndata: %s\n\n", letter, n, strings.Replace(body("invoice.paid", "{}"), "evt_1", fmt.Sprint("evt_", n), 1))
	}
	return answers(http.StatusOK, text)
}

// TestStreamAfterARestore follows a stream over a restore and a removal, and continues in another stream.
func TestStreamAfterARestore(t *testing.T) {
	c, e, _ := with(t, streamOf("c", 1, 2, 3), gone("restored", "d"), streamOf("d", 3, 2, 4), gone("removed", "e"), streamOf("e", 5), problem(401, apitypes.CodeUnauthorized))
	var got []string
	at := client.AfterStart
	for range 2 {
		for event, err := range c.StreamEvents(t.Context(), client.EventFilter{}, at) {
			var lost *client.EventsLostError
			switch {
			case errors.As(err, &lost):
				at = lost.Position
				got = append(got, "lost "+at)
			case err != nil:
				got = append(got, "error")
			default:
				at = event.Position
				got = append(got, at+" "+event.Event.ID)
			}
		}
	}
	expect.NoDiff(t, cmp.Diff([]string{"c1 evt_1", "c2 evt_2", "c3 evt_3", "d4 evt_4", "lost e", "e5 evt_5", "error"}, got), "")
	var asked []string
	for _, query := range e.queries {
		asked = append(asked, query.Get("after"))
	}
	expect.NoDiff(t, cmp.Diff([]string{"start", "c3", "d", "d4", "e", "e5"}, asked), "positions")
}

// TestDeliveriesAfterARestore has an event that happened again, and is then redelivered.
func TestDeliveriesAfterARestore(t *testing.T) {
	message := func(id, more string) string {
		return "id: " + id + "\ndata: {\"event\":" + body("invoice.paid", "{}") + ",\"merchantId\":\"acme\"" + more + "}\n\n"
	}
	c, _, _ := with(t, answers(http.StatusOK, message("c1", "")+message("c2", "")), // not marked by an older service
		gone("restored", "d0"), answers(http.StatusOK, message("d1", "")+message("d2", `,"redelivered":true`)), gone("removed", "e0"))
	var got []string
	at := client.AfterStart
	for range 3 {
		for m, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, at) {
			var lost *client.EventsLostError
			switch {
			case errors.As(err, &lost):
				got = append(got, "lost "+lost.Position)
			case err == nil && m.Record != nil:
				got = append(got, m.Position)
			}
			if err == nil {
				at = m.Position
			}
		}
	}
	expect.NoDiff(t, cmp.Diff([]string{"c1", "c2", "d2", "lost e0"}, got), "")
}

// TestListAfterARestore has a list that begins again, and one with events that are sent again.
func TestListAfterARestore(t *testing.T) {
	c, e, _ := with(t, eventPage("c", 5, 4), gone("restored", "d"), eventPage("d1", 6, 5), answers(http.StatusOK, `{"events":[{"event":{"id":"evt_1"},"merchantId":"acme"}]}`),
		answers(http.StatusOK, `{"redelivered":2,"nextCursor":"c"}`), gone("restored", "d"), answers(http.StatusOK, `{"redelivered":1}`))
	var got []string
	for event, err := range c.Events(t.Context(), client.EventFilter{}) {
		expect.OK(t, err)
		got = append(got, event.ID())
	}
	if diff := cmp.Diff([]string{"evt_5", "evt_4", "evt_6", "evt_1"}, got); diff != "" || e.queries[2].Get("cursor") != "d" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n, err := c.RedeliverEvents(t.Context(), apitypes.RedeliverEventsRequest{FailedOnly: true}); n != 3 || err != nil {
		t.Errorf("sent %d again, %v", n, err)
	}
}
