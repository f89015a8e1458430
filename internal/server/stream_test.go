package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// message is a message of an event stream.
type message struct{ id, event, data string }

// stream is an open event stream.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	close context.CancelFunc
	last  string // id of the last message
}

// openStream opens an event stream, after the message with an id unless that is empty.
func openStream(t *testing.T, url, authorization, last string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r := expect.Must(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	expect.OK(t, err)
	t.Cleanup(func() {
		cancel()
		_ = response.Body.Close() // it was cancelled
	})
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%s: %s %s", url, response.Status, got)
	}
	s := &stream{t: t, lines: bufio.NewScanner(response.Body), close: cancel}
	s.lines.Buffer(nil, 1<<20)
	if first, ok := s.read(); !ok || first.id == "" || first.event != "" {
		t.Fatalf("it begins with %+v", first)
	}
	return s
}

// read reads up to an empty line. ok is false at the end of the stream.
func (s *stream) read() (m message, ok bool) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "":
			if m.id == "" { // a comment
				continue
			}
			s.last = m.id
			return m, true
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data += value
		}
	}
	return m, false
}

// next returns the next message, which must come.
func (s *stream) next() message {
	s.t.Helper()
	m, ok := s.read()
	if !ok {
		s.t.Fatalf("the stream ended: %v", s.lines.Err())
	}
	return m
}

// wantInvoices wants messages about invoices in order.
func (s *stream) wantInvoices(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		if m := s.next(); m.event != "invoice.created" || !strings.Contains(m.data, id) {
			s.t.Fatalf("got %+v, want the event of %s", m, id)
		}
	}
}

// create creates invoices of a merchant, and returns their ids.
func (w *matrixWorld) create(merchant string, n int) (ids []string) {
	w.t.Helper()
	for range n {
		var made struct{ ID string }
		w.decode(w.call("POST /api/invoices", merchant, "", w.key(merchant, access.Admin)), &made)
		ids = append(ids, made.ID)
	}
	return ids
}

// TestEventStream follows the events of a merchant, with interruptions.
func TestEventStream(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMatrixWorld(t, database(t))
			key := w.key("acme", access.NewScopes(access.EventsRead))
			s := openStream(t, w.url+"/api/events/stream", key, "")
			before := s.last
			w.create("globex", 2)
			first := w.create("acme", 3)
			s.wantInvoices(first[:2]...)
			s.close()
			w.create("globex", 1)
			second := w.create("acme", 100) // more than a page
			s = openStream(t, w.url+"/api/events/stream", key, s.last)
			s.wantInvoices(append(first[2:], second...)...)
			third := w.create("acme", 2)
			s.wantInvoices(third...)
			openStream(t, w.url+"/api/events/stream", key, before).wantInvoices(slices.Concat(first, second, third)...)
			openStream(t, w.url+"/api/events/stream?after=start&type=invoice.created", key, "").wantInvoices(w.ids["acme"]["invoices"], first[0])
			w.wantListed(s.last, key)
			w.wantRefused(key)
		})
	}
}

// wantListed expects the id of a stream to be a cursor of the list of events, and the stream's data to
// be the list's events.
func (w *matrixWorld) wantListed(last, key string) {
	w.t.Helper()
	var list struct {
		Events []struct{ Event json.RawMessage }
	}
	made := w.create("acme", 1)
	w.decode(ask(w.t, http.MethodGet, w.url+"/api/events?after="+last, "", authorized(key)), &list)
	m := openStream(w.t, w.url+"/api/events/stream", key, last).next()
	if len(list.Events) != 1 || string(list.Events[0].Event) != m.data || !strings.Contains(m.data, made[0]) {
		w.t.Errorf("listed %s, streamed %+v", list.Events, m)
	}
}

// authorized returns a change that adds a key to a request.
func authorized(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", key) }
}

// wantRefused makes invalid requests for streams.
func (w *matrixWorld) wantRefused(key string) {
	w.t.Helper()
	for query, field := range map[string]string{
		"after=x": "after", "after=": "after", "type=x": "type", "limit=1": "limit", "cursor=x": "cursor", "delivery=failed": "delivery",
	} {
		a := ask(w.t, http.MethodGet, w.url+"/api/events/stream?"+query, "", authorized(key))
		if a.code != "invalid_field" || !strings.Contains(a.body, fmt.Sprintf(`"field":%q`, field)) {
			w.t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	for _, last := range []string{"x", "W1nJ0pQd7cQxMjQ", strings.Repeat("A", 201)} {
		a := ask(w.t, http.MethodGet, w.url+"/api/events/stream", "", authorized(key), func(r *http.Request) { r.Header.Set("Last-Event-ID", last) })
		if a.code != "invalid_field" || !strings.Contains(a.body, "Last-Event-ID") {
			w.t.Errorf("%s: %d %s", last, a.status, a.body)
		}
	}
}

// TestRefusedStreamsAreCounted opens more streams than an owner may have.
func TestRefusedStreamsAreCounted(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	url := startServer(t, Config{Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}}).url
	for range api.MaxOwnWaiting {
		openStream(t, url+"/api/events/stream", "", "")
	}
	for range 2 {
		if a := ask(t, http.MethodGet, url+"/api/events/stream", ""); a.status != http.StatusTooManyRequests || a.code != "rate_limited" {
			t.Errorf("answered %d %s", a.status, a.body)
		}
	}
	const want = `quittance_http_refused_total{limit="waiting"} 2`
	if a := ask(t, http.MethodGet, url+"/metrics", ""); !strings.Contains(a.body, want+"\n") {
		t.Errorf("the metrics lack %s", want)
	}
}

// TestOpenPages opens a page. Its stream is counted, shows that the merchant makes the invoice void, and ends with the
// service.
func TestOpenPages(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	running := startServer(t, Config{Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
	await(t, running.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	var made struct{ ID string }
	expect.OK(t, json.Unmarshal([]byte(createFor(t, running.url, "acme", "house").body), &made))
	r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, running.url+"/checkout/"+made.ID+"/events", nil))
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	expect.OK(t, err)
	defer response.Body.Close() //nolint:errcheck // it was read
	lines := bufio.NewScanner(response.Body)
	for _, state := range []string{"waiting", "void"} {
		for want := fmt.Sprintf(`"state":%q`, state); !strings.Contains(lines.Text(), want); {
			if !lines.Scan() {
				t.Fatalf("the stream ended before %s: %v", state, lines.Err())
			}
		}
		if metrics := ask(t, http.MethodGet, running.url+"/metrics", "").body; !strings.Contains(metrics, "\nquittance_checkout_streams 1\n") {
			t.Error("the metrics lack the stream")
		}
		ask(t, http.MethodPost, running.url+"/api/invoices/"+made.ID+"/void", "")
	}
	running.stop()
	for lines.Scan() { // until the stream has ended
	}
	expect.OK(t, <-running.ended)
}

// TestStreamsEndWithTheService stops a service with an open stream.
func TestStreamsEndWithTheService(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	running := startServer(t, Config{Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}, StopDelay: 10 * time.Millisecond})
	await(t, running.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	s := openStream(t, running.url+"/api/events/stream", "", "")
	var made struct{ ID string }
	a := ask(t, http.MethodPost, running.url+"/api/invoices", fmt.Sprintf(`{"merchantId":"acme","merchantAddress":"0x%040x","amount":"1000000","currency":"USDC","chainKey":"house","expiresAt":%d}`, 1, time.Now().Unix()+3600))
	expect.OK(t, json.Unmarshal([]byte(a.body), &made))
	s.wantInvoices(made.ID)
	s.close()
	s = openStream(t, running.url+"/api/events/stream", "", s.last)
	running.stop()
	if m, ok := s.read(); ok || s.lines.Err() != nil {
		t.Errorf("the stream continued with %+v, %v", m, s.lines.Err())
	}
	if err := <-running.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestRedeliverToTerminals redelivers an event of a merchant without an endpoint. The request succeeds
// while a stream of deliveries gets the event, also one of another process, and is refused otherwise.
func TestRedeliverToTerminals(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := database(t)
			start := func() string {
				c, _ := scripted(t, "house", 7)
				url := startServer(t, Config{Database: conn, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}}).url
				await(t, url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
				return url
			}
			here := start()
			there := here
			if name == "postgres" {
				there = start()
			}
			if a := create(t, here, "house"); a.status != http.StatusCreated {
				t.Fatalf("create: %d %s", a.status, a.body)
			}
			var list apitypes.EventList
			expect.OK(t, json.Unmarshal([]byte(ask(t, http.MethodGet, here+"/api/events", "").body), &list))
			event := list.Events[0]
			redeliver := func() answer {
				return ask(t, http.MethodPost, here+"/api/events/"+event.ID()+"/redeliver", "")
			}
			if a := redeliver(); a.status != http.StatusConflict || !strings.Contains(a.body, "quittance listen") {
				t.Errorf("while nobody listens: %d %s", a.status, a.body)
			}
			path := "/api/events/stream?include=deliveries&merchantId="
			other, typed := openStream(t, there+path+"another", "", ""), openStream(t, there+path+event.MerchantID+"&type=invoice.paid", "", "")
			if a := redeliver(); a.status != http.StatusConflict {
				t.Errorf("while others listen: %d %s", a.status, a.body)
			}
			s := openStream(t, there+path+event.MerchantID, "", "")
			if a := redeliver(); a.status != http.StatusOK {
				t.Fatalf("while a terminal listens: %d %s", a.status, a.body)
			}
			wantSame(t, s.next(), event)
			last := s.last
			s.close()
			if a := redeliver(); a.status != http.StatusOK && a.status != http.StatusConflict { // it may not be noticed yet
				t.Errorf("%d %s", a.status, a.body)
			}
			s = openStream(t, there+path+event.MerchantID, "", last) // as after a restart
			if a := redeliver(); a.status != http.StatusOK {
				t.Fatalf("while it listens again: %d %s", a.status, a.body)
			}
			wantSame(t, s.next(), event)
			for _, one := range []*stream{s, other, typed} {
				one.close()
			}
			for redeliver().status != http.StatusConflict {
				if !clock.Sleep(t.Context(), 20*time.Millisecond, nil) {
					t.Fatal("the terminals have left, and an event is redelivered to them")
				}
			}
			entries, err := access.NewReader(dbtest.Open(t, conn)).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionEventRedeliver, Limit: 100})
			if err != nil || len(entries) < 2 || entries[0].Object != event.ID() || entries[0].MerchantID != event.MerchantID {
				t.Errorf("the audit log has %+v, %v", entries, err)
			}
		})
	}
}

// wantSame wants a message with an event and its delivery.
func wantSame(t *testing.T, m message, want apitypes.EventRecord) {
	t.Helper()
	var got apitypes.EventRecord
	expect.OK(t, json.Unmarshal([]byte(m.data), &got))
	if string(got.Event) != string(want.Event) || (got.Delivery == nil) != (want.Delivery == nil) || got.Delivery != nil && got.Delivery.ID != want.Delivery.ID {
		t.Errorf("got %s, want %+v", m.data, want)
	}
}

// TestRedeliveryIsAudited expects an audit entry for each redelivered event, and no entry for a request without effect.
func TestRedeliveryIsAudited(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		now := time.Unix(1_764_000_000, 0)
		dbtest.Schedule(t, store, "m", 0, 3, 1)
		if n, _, err := webhooks.NewTables(store).FailOverdueDeliveries(t.Context(), webhooks.OverdueRequest{
			MerchantIDs: []string{"m"}, Unreachable: map[string]bool{"m": true}, Now: now, Limit: 9,
		}); err != nil || n["m"] != 3 {
			t.Fatalf("expired %v, %v", n, err)
		}
		schedule, err := db.OpenClock(t.Context(), db.ClockConfig{Store: store, Wall: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
		expect.OK(t, err)
		l := eventLog{webhooks.NewTables(store), auditLog{access.NewReader(store)}, nil, schedule, func() time.Time { return now }, make(chan struct{}, 1), func() {}}
		expect.OK(t, l.Redeliver(t.Context(), "evt_m_000001", time.Time{}))
		if err := l.Redeliver(t.Context(), "evt_m_000001", time.Time{}); err == nil {
			t.Error("a pending event is sent again")
		}
		for range 2 {
			expect.Success(t)(l.RedeliverMany(t.Context(), webhooks.RedeliverFilter{OnlyFailed: true}, time.Time{}, 9))
		}
		entries, err := access.NewReader(store).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionEventRedeliver, Limit: 9})
		if err != nil || len(entries) != 2 {
			t.Fatalf("%+v, %v; want 2 entries", entries, err)
		}
		many, one := entries[0], entries[1]
		if one.MerchantID != "m" || one.Object != "evt_m_000001" || one.Before != `{"delivery":"`+string(webhooks.Failed)+`","attempts":0}` {
			t.Errorf("of one event: %+v", one)
		}
		if many.MerchantID != "" || many.After != `{"redelivered":2,"failedOnly":true}` || !many.At.Equal(now) {
			t.Errorf("of several: %+v", many)
		}
	})
}

// TestEventsWaitForAnEndpoint creates an invoice for a merchant without an
// endpoint. The event is shown as waiting, and is delivered once an endpoint is set.
func TestEventsWaitForAnEndpoint(t *testing.T) {
	receiver, arrived := newReceiver(t)
	c, _ := scripted(t, "house", 7)
	base := startServer(t, Config{
		Chains: []Chain{c}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}},
		Keyring: keyringtest.New(t), WebhookAllow: webhooks.Loopback(),
	}).url
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	a := ask(t, http.MethodGet, base+"/api/events", "")
	if !strings.Contains(a.body, `"waitingFor":"endpoint"`) || strings.Contains(a.body, "nextAttemptAt") || !strings.Contains(a.body, `"attempts":0`) {
		t.Errorf("while it waits the events are %s", a.body)
	}
	if a := ask(t, http.MethodPut, base+"/api/merchants/m/webhook", `{"url":"`+receiver+`"}`); a.status != http.StatusOK && a.status != http.StatusCreated {
		t.Fatalf("set the endpoint: %d %s", a.status, a.body)
	}
	select {
	case typ := <-arrived:
		if typ != "invoice.created" {
			t.Errorf("received %s", typ)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("no event was delivered")
	}
	if a := ask(t, http.MethodGet, base+"/api/events", ""); strings.Contains(a.body, "waitingFor") {
		t.Errorf("afterwards the events are %s", a.body)
	}
}

// TestPausedEndpoint lists events of an endpoint that is paused until 2:00. An event that was due before is due then.
func TestPausedEndpoint(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		now, until := time.UnixMilli(3_600_000), time.UnixMilli(7_200_000)
		dbtest.Schedule(t, store, "m", 0, 1, 1000)
		dbtest.Schedule(t, store, "m", 1, 1, 9_000_000)
		expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO breakers (merchant_id, state, steady, allowed, failures, timeouts, pauses, since_ms, until_ms)
				VALUES ('m', 'open', 0, 1, 9, 0, 1, 1, $1)`, until.UnixMilli())
			return err
		}))
		schedule, err := db.OpenClock(t.Context(), db.ClockConfig{Store: store, Wall: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
		expect.OK(t, err)
		directory, err := webhooks.OpenDirectory(t.Context(), webhooks.DirectoryConfig{Store: store, Fallback: webhooks.Endpoint{URL: "https://m.example"}})
		expect.OK(t, err)
		l := eventLog{webhooks.NewTables(store), auditLog{access.NewReader(store)}, directory, schedule, func() time.Time { return now }, nil, nil}
		rows, err := l.Events(t.Context(), webhooks.EventFilter{Limit: 9})
		if err != nil || len(rows) != 2 || rows[0].Due.Sub(rows[1].Due).Round(time.Second) != 30*time.Minute { // of times that are converted
			t.Errorf("%+v, %v", rows, err)
		}
	})
}
