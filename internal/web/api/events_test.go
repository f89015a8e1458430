package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

func eventID(n int) string { return invoice.PrefixEvent + number(n) }

// newEventBackend returns a backend with n events, numbered from 1, in all delivery states.
func newEventBackend(n int) *backend {
	b := &backend{attempts: []webhooks.Attempt{
		{Number: 1, Started: time.Unix(now, 0), Duration: 5 * time.Second, Error: "no answer within 5s", Lookup: 2 * time.Millisecond},
		{Number: 2, Started: time.Unix(now+5, 0), Duration: 12 * time.Millisecond, StatusCode: 200, Excerpt: "ok", Connect: 3 * time.Millisecond, Handshake: 4 * time.Millisecond, Answer: 5 * time.Millisecond},
	}}
	for i := range n {
		b.addEvent()
		e := &b.events[i]
		switch e.Status = []webhooks.Status{webhooks.Pending, webhooks.Delivered, webhooks.Failed, webhooks.None}[i%4]; e.Status {
		case webhooks.Pending:
			e.Attempts, e.Due, e.Deadline = 1, time.UnixMilli((now+60)*1000+999), time.Unix(now+86400, 0)
		case webhooks.None:
			e.DeliveryID = ""
		case webhooks.Delivered, webhooks.Failed:
			e.Attempts, e.Finished = 2, time.Unix(now+7, 0)
		}
	}
	return b
}

// addEvent adds an event.
func (b *backend) addEvent() {
	i := len(b.events)
	typ := invoice.EventTypes[i%5]
	e := webhooks.EventRow{Status: webhooks.Pending, Deadline: time.Unix(now, 0).Add(webhooks.RetryWindow), Event: webhooks.Event{
		ID: eventID(i), Seq: int64(i + 1), Type: typ, MerchantID: []string{"acme", "bean"}[i%2], InvoiceID: invoiceID(i / 3), DeliveryID: invoice.PrefixDelivery + number(i),
		CreatedAt: invoice.Unix(now), Due: time.Unix(now, 0), Body: fmt.Appendf(nil, `{"id":%q,"type":%q,"createdAt":%d,"data":{"note":"\u003cb\u003e & <i>"}}`, eventID(i), typ, now),
	}}
	b.events = append(b.events, e)
}

// numbersOf returns the numbers of the events in a list.
func numbersOf(t *testing.T, list apitypes.EventList) []int {
	t.Helper()
	got := []int{}
	for _, r := range list.Events {
		var e struct{ ID string }
		expect.OK(t, json.Unmarshal(r.Event, &e))
		for i := range 1000 {
			if e.ID == eventID(i) {
				got = append(got, i)
			}
		}
	}
	return got
}

func TestListEventsFilters(t *testing.T) {
	h := newAPI(t, newEventBackend(12))
	for query, want := range map[string][]int{
		"":                                   {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
		"?merchantId=acme":                   {10, 8, 6, 4, 2, 0},
		"?type=invoice.paid":                 {11, 6, 1},
		"?type=invoice.paid&merchantId=bean": {11, 1},
		"?invoiceId=" + invoiceID(1):         {5, 4, 3},
		"?delivery=failed":                   {10, 6, 2},
		"?delivery=none&merchantId=bean":     {11, 7, 3},
		"?delivery=pending":                  {8, 4, 0},
		"?delivery=delivered":                {9, 5, 1},
		"?merchantId=no%00body":              {},
		"?invoiceId=no%00invoice":            {},
		"?invoiceId=inv_%ff":                 {},
		"?limit=2":                           {11, 10},
	} {
		list := decode[apitypes.EventList](t, do(h, "GET", "/api/events"+query, ""), http.StatusOK)
		expect.NoDiff(t, cmp.Diff(want, numbersOf(t, list)), "%s", query)
		if (list.NextCursor != "") != (query == "?limit=2") {
			t.Errorf("%s: nextCursor is %q", query, list.NextCursor)
		}
	}
	for query, field := range map[string]string{
		"type=invoice": "type", "type=": "type", "delivery=lost": "delivery", "cursor=x": "cursor", "after=x": "after", "after=": "after",
		"after=start&cursor=x": "after", "after=start&delivery=failed": "after", "after=start&after=end": "after", "limit=201": "limit",
		"type=invoice.paid&type=invoice.paid": "type",
	} {
		wantProblem(t, do(h, "GET", "/api/events?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
}

// TestListEventsPages follows the cursors of each filter to the end.
func TestListEventsPages(t *testing.T) {
	h := newAPI(t, newEventBackend(12))
	for _, filter := range []string{"", "&merchantId=bean", "&delivery=pending"} {
		all := numbersOf(t, decode[apitypes.EventList](t, do(h, "GET", "/api/events?limit=200"+filter, ""), http.StatusOK))
		var got []int
		for cursor := ""; ; {
			list := decode[apitypes.EventList](t, do(h, "GET", "/api/events?limit=1"+filter+cursor, ""), http.StatusOK)
			got = append(got, numbersOf(t, list)...)
			if list.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(list.NextCursor)
			wantProblem(t, do(h, "GET", "/api/events?type=invoice.paid"+cursor, ""), http.StatusBadRequest, "invalid_field", "cursor")
			wantProblem(t, do(h, "GET", "/api/events?after="+url.QueryEscape(list.NextCursor), ""), http.StatusBadRequest, "invalid_field", "after")
		}
		if !slices.Equal(got, all) {
			t.Errorf("%s: the pages hold %v, want %v", filter, got, all)
		}
	}
}

// TestCatchUp follows a growing log.
func TestCatchUp(t *testing.T) {
	b := newEventBackend(5)
	h := newAPI(t, b)
	ask := func(after, filter string) ([]int, string) {
		list := decode[apitypes.EventList](t, do(h, "GET", "/api/events?limit=2&after="+url.QueryEscape(after)+filter, ""), http.StatusOK)
		if list.NextCursor == "" {
			t.Fatalf("after %q: no nextCursor", after)
		}
		return numbersOf(t, list), list.NextCursor
	}
	from := map[string]string{"": "start", "&merchantId=bean": "start", "&type=invoice.created": "end", "&merchantId=no%00body": "start"}
	got := make(map[string][]int)
	for range 4 {
		for filter, after := range from {
			for {
				found, next := ask(after, filter)
				after = next
				got[filter] = append(got[filter], found...)
				if len(found) == 0 {
					break
				}
			}
			from[filter] = after
		}
		for range 3 {
			b.addEvent()
		}
	}
	want := map[string][]int{"": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, "&merchantId=bean": {1, 3, 5, 7, 9, 11, 13},
		"&type=invoice.created": {5, 10}, "&merchantId=no%00body": nil}
	expect.NoDiff(t, cmp.Diff(want, got), "")
	wantProblem(t, do(h, "GET", "/api/events?after="+from[""]+"&merchantId=acme", ""), http.StatusBadRequest, "invalid_field", "after")
	wantProblem(t, do(h, "GET", "/api/events?cursor="+from[""], ""), http.StatusBadRequest, "invalid_field", "cursor")
}

func TestGetEvent(t *testing.T) {
	b := newEventBackend(4)
	h := newAPI(t, b)
	attempts := []apitypes.Attempt{
		{Number: 1, StartedAt: now, DurationMs: 5000, Error: "no answer within 5s", LookupMs: 2},
		{Number: 2, StartedAt: now + 5, DurationMs: 12, StatusCode: 200, Excerpt: "ok", ConnectMs: 3, HandshakeMs: 4, AnswerMs: 5},
	}
	for i, delivery := range []*apitypes.Delivery{
		{ID: "dlv_" + number(0), Status: apitypes.DeliveryPending, Attempts: 1, NextAttemptAt: now + 60, Deadline: now + 86400},
		{ID: "dlv_" + number(1), Status: apitypes.DeliveryDelivered, Attempts: 2, FinishedAt: now + 7},
		{ID: "dlv_" + number(2), Status: apitypes.DeliveryFailed, Attempts: 2, FinishedAt: now + 7},
		nil,
	} {
		w := do(h, "GET", "/api/events/"+eventID(i), "")
		if body := string(b.events[i].Body); !strings.Contains(w.Body.String(), body) {
			t.Errorf("the answer does not hold the event as it is sent, %s: %s", body, w.Body)
		}
		got := decode[apitypes.EventRecord](t, w, http.StatusOK)
		want := apitypes.EventRecord{Event: b.events[i].Body, MerchantID: b.events[i].MerchantID, InvoiceID: invoiceID(i / 3), Delivery: delivery, Attempts: attempts}
		expect.NoDiff(t, cmp.Diff(want, got), "event %d", i)
	}
	for _, none := range []string{eventID(4), "evt_", "x", "evt_%00", "evt_%ff", invoiceID(0)} {
		wantProblem(t, do(h, "GET", "/api/events/"+none, ""), http.StatusNotFound, "not_found", "")
		wantProblem(t, do(h, "POST", "/api/events/"+none+"/redeliver", ""), http.StatusNotFound, "not_found", "")
	}
}

func TestRedeliver(t *testing.T) {
	h := newAPI(t, newEventBackend(4))
	for i, code := range []string{"delivery_pending", "", "", "no_delivery"} {
		w := do(h, "POST", "/api/events/"+eventID(i)+"/redeliver", "", "Content-Type", "")
		if code != "" {
			wantProblem(t, w, http.StatusConflict, code, "")
			continue
		}
		got := decode[apitypes.EventRecord](t, w, http.StatusOK)
		want := &apitypes.Delivery{ID: "dlv_" + number(i), Status: apitypes.DeliveryPending, Attempts: 2, NextAttemptAt: now, Deadline: now + 86400}
		if diff := cmp.Diff(want, got.Delivery); diff != "" || got.Attempts != nil {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
		wantProblem(t, do(h, "POST", "/api/events/"+eventID(i)+"/redeliver", ""), http.StatusConflict, "delivery_pending", "")
	}
}

func TestRedeliverMany(t *testing.T) {
	all := fmt.Sprintf(`{"merchantId":"acme","type":"invoice.paid","invoiceId":%q,"from":%d,"to":%d,"failedOnly":true`, invoiceID(1), now-60, now)
	want := webhooks.RedeliverFilter{
		MerchantID: "acme", Type: invoice.EventPaid, InvoiceID: invoiceID(1), CreatedFrom: invoice.Unix(now - 60), CreatedTo: invoice.Unix(now), OnlyFailed: true,
	}
	for name, test := range map[string]struct {
		tick     time.Duration
		requests int
	}{"quick": {0, 1}, "slow": {api.RedeliverTime, 3}} {
		b := newEventBackend(3 * api.RedeliverBatch)
		b.tick = test.tick
		h := newAPI(t, b)
		requests, total := 0, int64(0)
		for cursor := ""; ; {
			answer := decode[apitypes.RedeliverEventsResponse](t, do(h, "POST", "/api/events/redeliver", all+cursor+"}"), http.StatusOK)
			requests++
			total += answer.Redelivered
			if answer.NextCursor == "" {
				break
			}
			cursor = fmt.Sprintf(`,"cursor":%q`, answer.NextCursor)
			wantProblem(t, do(h, "POST", "/api/events/redeliver", `{"failedOnly":true`+cursor+"}"), http.StatusBadRequest, "invalid_field", "cursor")
		}
		if requests != test.requests || total != 3*api.RedeliverBatch {
			t.Errorf("%s: %d events in %d requests", name, total, requests)
		}
		for i, f := range b.redone {
			want.After = int64(i * api.RedeliverBatch)
			expect.NoDiff(t, cmp.Diff(want, f), "%s, %d", name, i)
		}
	}
}

func TestRedeliverManyRefusals(t *testing.T) {
	b := new(backend)
	h := newAPI(t, b)
	for body, field := range map[string]string{
		`{}`: "from", `{"merchantId":"acme","to":5}`: "from", `{"failedOnly":false}`: "from",
		`{"failedOnly":"yes"}`: "failedOnly", `{"failedOnly":null}`: "failedOnly", `{"from":5,"merchantId":"a b"}`: "merchantId", `{"from":5,"merchantId":1}`: "merchantId",
		`{"from":5,"type":"invoice"}`: "type", `{"from":5,"invoiceId":"x"}`: "invoiceId", `{"from":5,"invoiceId":"inv_\u0000"}`: "invoiceId",
		`{"from":5,"to":4}`: "to", `{"from":0,"to":0}`: "to", `{"failedOnly":true,"to":0}`: "to", `{"from":-1}`: "from", `{"from":1.5}`: "from", `{"from":"5"}`: "from",
		`{"from":5,"cursor":"x"}`: "cursor", `{"from":5,"cursor":5}`: "cursor",
	} {
		wantProblem(t, do(h, "POST", "/api/events/redeliver", body), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(h, "POST", "/api/events/redeliver", `{"from":5`), http.StatusBadRequest, "invalid_json", "")
	wantProblem(t, do(h, "POST", "/api/events/redeliver", `{"from":5}`, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	if b.redone != nil {
		t.Errorf("a request that was refused had %v sent again", b.redone)
	}
	for _, body := range []string{`{"from":0}`, `{"from":5,"to":5,"unknown":1}`, `{"failedOnly":true}`} {
		decode[apitypes.RedeliverEventsResponse](t, do(h, "POST", "/api/events/redeliver", body), http.StatusOK)
	}
}
