package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
)

const eventKey = "06ajrm4k5xwqz8v3d0n7c2b9h"

// recorded returns an event in each state of a delivery.
func recorded() []apitypes.EventRecord {
	all := make([]apitypes.EventRecord, 4)
	for i := range all {
		all[i] = apitypes.EventRecord{
			Event:      json.RawMessage(fmt.Sprintf(`{"id":"evt_%s%d","type":"invoice.paid","createdAt":1764000000,"data":{"n":%d}}`, eventKey, i, i)),
			MerchantID: "acme", InvoiceID: "inv_" + eventKey + "0",
			Delivery: &apitypes.Delivery{ID: fmt.Sprint("dlv_", eventKey, i), Status: apitypes.DeliveryDelivered, Attempts: 1, FinishedAt: 1764000001},
		}
	}
	all[1].Delivery.Status, all[1].Delivery.Attempts = apitypes.DeliveryFailed, 12
	all[2].Delivery = &apitypes.Delivery{ID: all[2].Delivery.ID, Status: apitypes.DeliveryPending, NextAttemptAt: 1764000060, Deadline: 1764086400}
	all[3].Delivery = nil
	return all
}

// service answers by path, and records the requests.
func service(t *testing.T, answers map[string]any) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(apitest.Check(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		answer, ok := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if !ok {
			answer = apitypes.Problem{Type: "https://x.example/", Title: "Not found", Status: 404, Detail: "Nothing has this id.", Code: apitypes.CodeNotFound}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
		}
		if made, created := answer.(apitypes.CreateInvoiceResponse); created {
			w.Header().Set("Location", "/api/invoices/"+made.ID)
			w.WriteHeader(http.StatusCreated)
		}
		expect.NoError(t, json.NewEncoder(w).Encode(answer))
	})))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// call runs a command line against a service.
func call(t *testing.T, url string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), environment{stdout: &out, stderr: &errs}, append(args, "--url", url))
	return code, out.String(), errs.String()
}

func TestEventsList(t *testing.T) {
	url, asked := service(t, map[string]any{"/api/events": apitypes.EventList{Events: recorded(), NextCursor: "c"}})
	const want = `EVENT                           HAPPENED              TYPE          MERCHANT  INVOICE                         DELIVERY
evt_06ajrm4k5xwqz8v3d0n7c2b9h0  2025-11-24T16:00:00Z  invoice.paid  acme      inv_06ajrm4k5xwqz8v3d0n7c2b9h0  delivered after 1 attempt
evt_06ajrm4k5xwqz8v3d0n7c2b9h1  2025-11-24T16:00:00Z  invoice.paid  acme      inv_06ajrm4k5xwqz8v3d0n7c2b9h0  failed after 12 attempts
evt_06ajrm4k5xwqz8v3d0n7c2b9h2  2025-11-24T16:00:00Z  invoice.paid  acme      inv_06ajrm4k5xwqz8v3d0n7c2b9h0  pending, next 2025-11-24T16:01:00Z
evt_06ajrm4k5xwqz8v3d0n7c2b9h3  2025-11-24T16:00:00Z  invoice.paid  acme      inv_06ajrm4k5xwqz8v3d0n7c2b9h0  none
`
	code, out, errs := call(t, url, "events", "list", "--limit", "4")
	if diff := cmp.Diff(want, out); diff != "" || code != 0 || errs != "" {
		t.Errorf("%d %s: -want +got\n%s", code, errs, diff)
	}
	code, out, _ = call(t, url, "events", "list", "--merchant=acme", "--type=invoice.paid", "--invoice", "inv_1", "--delivery=failed", "--limit=2", "--json")
	var list apitypes.EventList
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || !cmp.Equal(list, apitypes.EventList{Events: recorded()[:2]}) {
		t.Errorf("%d %v: %s", code, err, out)
	}
	if diff := cmp.Diff([]string{"GET /api/events?limit=4", "GET /api/events?delivery=failed&invoiceId=inv_1&limit=2&merchantId=acme&type=invoice.paid"}, *asked); diff != "" {
		t.Error(diff)
	}
	url, _ = service(t, map[string]any{"/api/events": apitypes.EventList{Events: []apitypes.EventRecord{}}})
	if code, out, _ := call(t, url, "events", "list"); code != 0 || out != "There are no such events.\n" {
		t.Errorf("without events: %d %q", code, out)
	}
	if code, out, _ := call(t, url, "events", "list", "--json"); code != 0 || out != `{"events":[]}`+"\n" {
		t.Errorf("without events, in JSON: %d %q", code, out)
	}
}

func TestEventsShow(t *testing.T) {
	failed, untold := recorded()[1], recorded()[3]
	failed.Attempts = []apitypes.Attempt{
		{Number: 1, StartedAt: 1764000000, DurationMs: 5001, LookupMs: 2, ConnectMs: 11, HandshakeMs: 30, Error: "no answer within 5s"},
		{Number: 2, StartedAt: 1764000005, DurationMs: 20, AnswerMs: 18, StatusCode: 500, Error: "answered 500, expected 2xx", Excerpt: "<p>\x1b[31mno\u202e\tway\n"},
	}
	url, asked := service(t, map[string]any{"/api/events/" + failed.ID(): failed, "/api/events/" + untold.ID(): untold})
	const want = `evt_06ajrm4k5xwqz8v3d0n7c2b9h1  invoice.paid of merchant acme, invoice inv_06ajrm4k5xwqz8v3d0n7c2b9h0, 2025-11-24T16:00:00Z

  {
    "id": "evt_06ajrm4k5xwqz8v3d0n7c2b9h1",
    "type": "invoice.paid",
    "createdAt": 1764000000,
    "data": {
      "n": 1
    }
  }

Its delivery dlv_06ajrm4k5xwqz8v3d0n7c2b9h1: failed after 12 attempts.

ATTEMPT  STARTED                                TOOK     LOOKUP  CONNECT  TLS    FIRST BYTE  STATUS  REMARK
1        2025-11-24T16:00:00Z                   5001 ms  2 ms    11 ms    30 ms  -           -       no answer within 5s
2        2025-11-24T16:00:05Z                   20 ms    -       -        -      18 ms       500     answered 500, expected 2xx
`
	code, out, errs := call(t, url, "events", "show", failed.ID())
	answered := "         answered: <p>\ufffd[31mno\ufffd way\n"
	if code != 0 || errs != "" || !strings.HasSuffix(out, answered) || strings.ContainsRune(out, '\x1b') {
		t.Errorf("%d %s: %q", code, errs, out)
	}
	if diff := cmp.Diff(fields(want), fields(strings.TrimSuffix(out, answered))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, out, _ := call(t, url, "events", "show", untold.ID()); !strings.Contains(out, "It has no delivery") {
		t.Errorf("an event without a delivery is shown as %s", out)
	}
	var r apitypes.EventRecord
	if code, out, _ := call(t, url, "events", "show", "--json", failed.ID()); code != 0 || json.Unmarshal([]byte(out), &r) != nil || !cmp.Equal(r, failed) {
		t.Errorf("%d %s", code, out)
	}
	if code, _, errs := call(t, url, "events", "show", "evt_none"); code != 1 || !strings.Contains(errs, "Nothing has this id") {
		t.Errorf("an event that is not there: %d %s", code, errs)
	}
	if len(*asked) != 4 {
		t.Errorf("asked %q", *asked)
	}
}

// fields are the words of a text, and where its lines end.
func fields(text string) (words [][]string) {
	for line := range strings.Lines(text) {
		words = append(words, strings.Fields(line))
	}
	return words
}

func TestEventsRedeliver(t *testing.T) {
	one, two := recorded()[0], recorded()[1]
	url, asked := service(t, map[string]any{
		"/api/events/" + one.ID() + "/redeliver": one, "/api/events/" + two.ID() + "/redeliver": two,
		"/api/events/redeliver": apitypes.RedeliverEventsResponse{Redelivered: 3},
	})
	for _, test := range []struct {
		args, asked []string
		code        int
		want        string
	}{
		{[]string{one.ID()}, []string{"POST /api/events/" + one.ID() + "/redeliver"}, 0, "1 event is sent again.\n"},
		{[]string{one.ID(), "--json", "evt_none", two.ID()}, []string{
			"POST /api/events/" + one.ID() + "/redeliver", "POST /api/events/evt_none/redeliver", "POST /api/events/" + two.ID() + "/redeliver",
		}, 1, `{"redelivered":2}` + "\n"},
		{[]string{"--failed", "--merchant", "acme"}, []string{`POST /api/events/redeliver {"merchantId":"acme","failedOnly":true}`}, 0, "3 events are sent again.\n"},
		{[]string{"--from=1970-01-01T00:00:05Z", "--to=1970-01-01T01:00:09+01:00", "--type=invoice.paid", "--invoice=inv_1"},
			[]string{`POST /api/events/redeliver {"type":"invoice.paid","invoiceId":"inv_1","from":5,"to":9}`}, 0, "3 events are sent again.\n"},
		{nil, nil, 2, ""},
		{[]string{"--merchant", "acme", "--to=5m"}, nil, 2, ""},
		{[]string{one.ID(), "--failed"}, nil, 2, ""},
		{[]string{"--from", "yesterday"}, nil, 2, ""},
		{[]string{"--from", "-5m"}, nil, 2, ""},
	} {
		*asked = nil
		code, out, errs := call(t, url, append([]string{"events", "redeliver"}, test.args...)...)
		if code != test.code || out != test.want || (code == 0) != (errs == "") {
			t.Errorf("%q: %d %q %q; want %d %q", test.args, code, out, errs, test.code, test.want)
		}
		if diff := cmp.Diff(test.asked, *asked); diff != "" {
			t.Errorf("%q: %s", test.args, diff)
		}
	}
}

// TestMoment parses ages and times.
func TestMoment(t *testing.T) {
	var at *int64
	before := time.Now().Add(-90 * time.Minute).Unix()
	if err := moment(&at)("90m"); err != nil || *at < before || *at > before+5 {
		t.Errorf("90m is %v, %v; want about %d", at, err, before)
	}
	for _, bad := range []string{"", "5", "1969-12-31T23:59:59Z", "2026-01-31", "+5m", "-5m"} {
		if err := moment(&at)(bad); err == nil || !strings.HasPrefix(err.Error(), "want a time") {
			t.Errorf("%q is taken as %d, %v", bad, *at, err)
		}
	}
}

func TestNoService(t *testing.T) {
	code, _, errs := call(t, "127.0.0.1:8080", "events", "list")
	if code != 2 || !strings.Contains(errs, "--url \"127.0.0.1:8080\" is no address of a service; want one such as http://127.0.0.1:8080") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := call(t, "http://127.0.0.1:1", "events", "show", "evt_1"); code != 1 || !strings.Contains(errs, "connection refused") {
		t.Errorf("%d %s", code, errs)
	}
}
