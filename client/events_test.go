package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

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
		if err != nil {
			t.Error(err)
		}
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
