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
	"github.com/quittance/quittance/internal/ledger"
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

func TestTimeline(t *testing.T) {
	b := newListBackend(1) // paid at now+30
	at := func(n int64) time.Time { return invoice.Unix(now + n) }
	p := b.payments[0]
	p.ObservedAt, p.OrphanedAt, p.ConfirmedAt = at(20), at(25), at(40)
	event := invoice.PrefixEvent + number(1)
	sweep := invoice.Sweep{ID: "swp_1", ObservedAt: at(55), ConfirmedAt: at(70)}
	b.history = ledger.InvoiceHistory{
		Payments: []ledger.SeenPayment{{PaymentRow: p, Confirmations: []ledger.Confirmation{{Number: 1, Time: at(35)}, {Number: 2, Time: at(40)}}}},
		Reported: []ledger.ReportedTransaction{{Hash: p.TxHash, At: at(19)}},
		Signed:   []ledger.Authorization{{ID: "aut_1", CreatedAt: at(18)}},
		Sweeps:   []ledger.SeenSweep{{Sweep: sweep, OrphanedAt: at(60)}},
		Events:   []webhooks.Event{{ID: event, Type: invoice.EventReceived, CreatedAt: at(20)}},
		Attempts: []ledger.EventAttempt{{EventID: event, Number: 1, Started: at(20).Add(5 * time.Millisecond), StatusCode: 500, Error: "500"}, {EventID: event, Number: 2, Started: at(50), StatusCode: 200}},
		Txs:      []ledger.CommitmentTx{{Kind: invoice.IntentOpen, Hash: invoice.Hash{7}, Created: at(2), Cost: ledger.TxCost{Gwei: 52, At: at(3)}}}, OpenedAt: at(2),
	}
	h := newAPI(t, b)
	confirmations := 0
	var got []string
	path, cursor := "/api/invoices/"+invoiceID(0)+"/timeline?limit=3", ""
	for pages := 1; ; pages++ {
		page := decode[apitypes.Timeline](t, do(h, "GET", path+cursor, ""), http.StatusOK)
		for _, e := range page.Entries {
			got = append(got, e.Kind)
			if e.Kind == "payment.confirmation" {
				confirmations++
				if e.Confirmation != confirmations || e.Confirmations != 0 || e.PaymentID != p.ID || e.TxHash == "" {
					t.Errorf("confirmation %d is %+v", confirmations, e)
				}
			}
			if e.Kind == "commitment.open" && e.CostGwei != "52" {
				t.Errorf("the transaction cost %q", e.CostGwei)
			}
		}
		if page.NextCursor == "" {
			if pages != 6 {
				t.Errorf("%d pages, want 6", pages)
			}
			break
		}
		cursor = "&cursor=" + page.NextCursor
	}
	want := []string{
		"invoice.created", "commitment.open", "invoice.opened", "payment.signed", "payment.sent", "payment.seen", "event", "delivery.attempt", "payment.orphaned", "invoice.paid",
		"payment.confirmation", "payment.confirmation", "payment.confirmed", "delivery.attempt",
		"sweep.seen", "sweep.orphaned", "sweep.confirmed",
	}
	expect.NoDiff(t, cmp.Diff(want, got), "")
	wantProblem(t, do(h, "GET", "/api/invoices/"+invoiceID(5)+"/timeline", ""), http.StatusNotFound, "not_found", "")
}

// TestTimelineOfStates reads the timelines of invoices with different outcomes.
func TestTimelineOfStates(t *testing.T) {
	finalized := ledger.InvoiceTransition{Status: invoice.Open, At: invoice.Unix(now + 5)}
	void := ledger.InvoiceTransition{Status: invoice.Void, At: invoice.Unix(now + 9)}
	for name, c := range map[string]struct {
		status      invoice.Status
		transitions []ledger.InvoiceTransition
		want        []string
	}{
		"draft":                {invoice.Drafted, nil, []string{"invoice.created"}},
		"open":                 {invoice.Open, nil, []string{"invoice.created"}},
		"finalized":            {invoice.Open, []ledger.InvoiceTransition{finalized}, []string{"invoice.created", "invoice.finalized"}},
		"finalized and void":   {invoice.Void, []ledger.InvoiceTransition{void, finalized}, []string{"invoice.created", "invoice.finalized", "invoice.void"}},
		"finalized, expired":   {invoice.Expired, []ledger.InvoiceTransition{finalized}, []string{"invoice.created", "invoice.finalized", "invoice.expired"}},
		"a draft that is void": {invoice.Void, []ledger.InvoiceTransition{void}, []string{"invoice.created", "invoice.void"}},
	} {
		b := newListBackend(2)
		b.invoices[1].Status = c.status
		for _, truncated := range []bool{false, true} {
			b.history = ledger.InvoiceHistory{Transitions: c.transitions, Truncated: truncated}
			w := do(newAPI(t, b), "GET", "/api/invoices/"+invoiceID(1)+"/timeline", "")
			if strings.Contains(w.Body.String(), "truncated") != truncated {
				t.Errorf("%s: %s", name, w.Body)
			}
			page := decode[apitypes.Timeline](t, w, http.StatusOK)
			var got []string
			for _, e := range page.Entries {
				got = append(got, e.Kind)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || page.Truncated != truncated {
				t.Errorf("%s: truncated %t (-want +got):\n%s", name, page.Truncated, diff)
			}
		}
	}
}

// TestTimelineOfDecisions names who decided about an invoice, and why.
func TestTimelineOfDecisions(t *testing.T) {
	b := newListBackend(2)
	b.history = ledger.InvoiceHistory{Decisions: []invoice.Decision{{
		ID: "dec_1", Outcome: invoice.Accepted, By: "maria", Reason: "A good customer", At: invoice.Unix(now + 3), UndoneBy: "nadia", UndoneAt: invoice.Unix(now + 4),
	}}}
	page := decode[apitypes.Timeline](t, do(newAPI(t, b), "GET", "/api/invoices/"+invoiceID(1)+"/timeline", ""), http.StatusOK)
	var got []string
	for _, e := range page.Entries {
		got = append(got, e.Kind+" "+e.By+" "+e.Reason)
	}
	expect.NoDiff(t, cmp.Diff([]string{"invoice.created  ", "decision.accepted maria A good customer", "decision.undone nadia "}, got), "")
}

func TestPaymentsOfInvoice(t *testing.T) {
	b := newListBackend(8)
	h := newAPI(t, b)
	list := decode[apitypes.PaymentList](t, do(h, "GET", "/api/invoices/"+invoiceID(3)+"/payments", ""), http.StatusOK).Payments
	if len(list) != 1 || list[0].InvoiceID != invoiceID(3) || list[0].Status != apitypes.PaymentPending {
		t.Errorf("%+v", list)
	}
	wantProblem(t, do(h, "GET", "/api/invoices/inv_x/payments", ""), http.StatusNotFound, "not_found", "")
}

func TestFindInvoices(t *testing.T) {
	h := newAPI(t, newListBackend(8))
	list := decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices?q=inv_&limit=5&merchantId=acme", ""), http.StatusOK)
	if len(list.Invoices) != 4 || list.Invoices[0].ID != invoiceID(6) || list.NextCursor != "" {
		t.Errorf("found %d, the cursor is %q", len(list.Invoices), list.NextCursor)
	}
	longest := strings.Repeat("é", invoice.MaxLabel)
	decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices?q="+url.QueryEscape(longest), ""), http.StatusOK)
	wantProblem(t, do(h, "GET", "/api/invoices?q="+url.QueryEscape(longest+"é"), ""), http.StatusBadRequest, "invalid_field", "q")
	for query, field := range map[string]string{"q=": "q", "q=x&status=open": "q", "q=x&cursor=y": "q", "q=%00": "q", "q=x&limit=0": "limit", "q=%20": "q"} {
		wantProblem(t, do(h, "GET", "/api/invoices?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
}

// A chain's testClock may be behind or ahead of the service's. A recovery sees a payment again after it was confirmed.
func TestConfirmationsFollowThePayment(t *testing.T) {
	for confirmed, want := range map[int64][]string{
		40: {"payment.seen 20", "payment.confirmation 20", "payment.confirmation 30", "payment.confirmation 40", "payment.confirmed 40"},
		10: {"payment.seen 10", "payment.confirmation 10", "payment.confirmation 10", "payment.confirmation 10", "payment.confirmed 10"},
	} {
		expect.NoDiff(t, cmp.Diff(want, confirmations(t, confirmed)), "confirmed at %d", confirmed)
	}
}

// confirmations returns the timeline of a payment that was seen at 20 and confirmed at a time.
func confirmations(t *testing.T, confirmed int64) (got []string) {
	t.Helper()
	b := newListBackend(1)
	p := b.payments[0]
	p.ObservedAt, p.ConfirmedAt = invoice.Unix(now+20), invoice.Unix(now+confirmed)
	b.history = ledger.InvoiceHistory{Payments: []ledger.SeenPayment{{PaymentRow: p, Confirmations: []ledger.Confirmation{
		{Number: 1, Time: invoice.Unix(now + 15)}, {Number: 2, Time: invoice.Unix(now + 30)}, {Number: 3, Time: invoice.Unix(now + 45)},
	}}}}
	for _, e := range decode[apitypes.Timeline](t, do(newAPI(t, b), "GET", "/api/invoices/"+invoiceID(0)+"/timeline", ""), http.StatusOK).Entries {
		if e.PaymentID != "" {
			got = append(got, fmt.Sprintf("%s %d", e.Kind, e.At-now))
		}
	}
	return got
}
