package api_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// storeEvents is the log of a store, without redelivery.
type storeEvents struct {
	webhooks.Tables
	storedAudit
}

type storedAudit struct{ access.Reader }

func (storeEvents) Listen(context.Context, *webhooks.Listener) error   { return nil }
func (storeEvents) Redeliver(context.Context, string, time.Time) error { return nil }
func (storeEvents) RedeliverMany(context.Context, webhooks.RedeliverFilter, time.Time, int) (int64, int64, error) {
	return 0, 0, nil
}

// logFollower follows the log of a service that is restored from backups.
type logFollower struct {
	filter client.EventFilter
	fresh  bool // it starts again each time, with its stored position
	client *client.Client
	at     string
	got    map[string]bool
	lost   bool
}

// savedLog is a copy of the database, and the ids of the events up to then.
type savedLog struct {
	path    string
	history []string
}

// restoredWorld is a service, the facts on its chain, and its followers.
type restoredWorld struct {
	t         *rapid.T
	path      string // of the database
	store     *db.DB
	handler   http.Handler
	url       string
	history   []string // ids of the events of the current log, removed ones too
	facts     []string // ids of the events of the chain, which come again after a restore
	cleaned   bool
	made      int // events, timelines and copies so far
	copies    []savedLog
	followers []*logFollower
}

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "10"); err != nil { // make cases plays more
		panic(err)
	}
	m.Run()
}

// TestFollowersOverRestores restores a service from copies of its database at random points, and
// removes old events. No follower misses an event of the final log without an error, and a follower
// with a client that continues gets no event twice.
func TestFollowersOverRestores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &restoredWorld{t: rt, path: strings.TrimPrefix(dbtest.Migrated(t), "sqlite:")}
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.handler.ServeHTTP(rw, r) }))
		defer server.Close()
		w.url = server.URL
		w.open()
		defer func() { w.must(w.store.Close()) }()
		w.must(webhooks.BeginFirstTimeline(context.Background(), w.store, "tml_first", time.Unix(0, 0)))
		for _, e := range dbtest.Schedule(t, w.store, "acme", 0, 1, 1) { // with its invoice
			w.history = append(w.history, e.ID)
		}
		for _, f := range []client.EventFilter{{}, {Type: "payment.received"}, {}} {
			w.followers = append(w.followers, &logFollower{filter: f, at: client.AfterStart, got: make(map[string]bool), client: w.newClient(), fresh: len(w.followers) == 2})
			w.poll(w.followers[len(w.followers)-1]) // before anything is removed
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {}, "facts": func(*rapid.T) { w.record(true) }, "other events": func(*rapid.T) { w.record(false) },
			"copy": func(*rapid.T) { w.copy() }, "restore": func(*rapid.T) { w.restore() }, "clean": func(*rapid.T) { w.clean() },
			"poll": func(*rapid.T) { w.poll(rapid.SampledFrom(w.followers).Draw(rt, "follower")) },
		})
		w.check()
	})
}

func (w *restoredWorld) must(err error) {
	w.t.Helper()
	expect.OK(w.t, err)
}

func (w *restoredWorld) update(fn func(ctx context.Context, tx *db.Tx) error) {
	w.t.Helper()
	w.must(w.store.Update(context.Background(), func(tx *db.Tx) error { return fn(context.Background(), tx) }))
}

// open opens the database, and serves it.
func (w *restoredWorld) open() {
	w.t.Helper()
	s, err := db.Open(context.Background(), "sqlite:"+w.path)
	w.must(err)
	w.store = s
	w.handler = api.New(api.Config{Reader: api.NewReader(s), Events: storeEvents{webhooks.NewTables(s), storedAudit{access.NewReader(s)}}, Now: testClock, Logger: slog.New(slog.DiscardHandler)}).Handler()
}

func (w *restoredWorld) newClient() *client.Client {
	c, err := client.New(w.url, client.WithRetries(0))
	w.must(err)
	return c
}

// record adds events, with or without a fact on the chain.
func (w *restoredWorld) record(facts bool) {
	var ids []string
	for range rapid.IntRange(1, 4).Draw(w.t, "events") {
		w.made++
		ids = append(ids, fmt.Sprintf("evt_%026d", w.made))
	}
	if facts {
		w.facts = append(w.facts, ids...)
	}
	w.insert(ids)
}

// insert adds the events with the ids. Some have a delivery that stays pending.
func (w *restoredWorld) insert(ids []string) {
	w.made++
	events := make([]webhooks.Event, len(ids))
	for i, id := range ids {
		typ := invoice.EventReceived
		if rapid.Bool().Draw(w.t, "refunded") {
			typ = invoice.EventRefunded
		}
		if n := slices.Index(w.facts, id); n >= 0 { // a fact is always the same
			typ = []invoice.EventType{invoice.EventReceived, invoice.EventRefunded}[n%2]
		}
		events[i] = webhooks.Event{
			ID: id, Type: typ, Subject: id, MerchantID: "acme", InvoiceID: "inv_acme_0", CreatedAt: invoice.Unix(int64(w.made)),
			Body: fmt.Appendf(nil, `{"id":%q,"type":%q,"createdAt":1,"data":{}}`, id, typ),
		}
		if rapid.IntRange(0, 4).Draw(w.t, "pending") == 0 {
			events[i].DeliveryID, events[i].Due = "dlv_"+id, time.Unix(1, 0)
		}
	}
	w.update(func(ctx context.Context, tx *db.Tx) error { return webhooks.InsertEvents(ctx, tx, events) })
	w.history = append(w.history, ids...)
}

// clean removes events up to a time.
func (w *restoredWorld) clean() {
	w.cleaned = true
	before := rapid.IntRange(0, w.made).Draw(w.t, "before")
	_, _, err := webhooks.NewTables(w.store).CleanEvents(context.Background(), time.Unix(int64(before), 0), 0, 1000)
	w.must(err)
}

// copy copies the database.
func (w *restoredWorld) copy() {
	w.made++
	to := savedLog{fmt.Sprint(w.path, ".", w.made), slices.Clone(w.history)}
	w.must(w.store.Close())
	w.copyFile(w.path, to.path)
	w.open()
	w.copies = append(w.copies, to)
}

func (w *restoredWorld) copyFile(from, to string) {
	w.t.Helper()
	text, err := os.ReadFile(from)
	w.must(err)
	w.must(os.WriteFile(to, text, 0o600))
}

// restore replaces the database by a copy, starts a timeline, and records the facts on the chain.
func (w *restoredWorld) restore() {
	if len(w.copies) == 0 {
		return
	}
	from := rapid.SampledFrom(w.copies).Draw(w.t, "copy")
	w.must(w.store.Close())
	w.copyFile(from.path, w.path)
	w.open()
	w.made++
	id := fmt.Sprint("tml_", w.made)
	w.update(func(ctx context.Context, tx *db.Tx) error {
		_, err := webhooks.StartTimeline(ctx, tx, id, time.Unix(int64(w.made), 0))
		return err
	})
	w.history = slices.Clone(from.history)
	again := slices.DeleteFunc(slices.Clone(w.facts), func(id string) bool { return slices.Contains(from.history, id) })
	if len(again) > 0 {
		w.insert(rapid.Permutation(again).Draw(w.t, "again"))
	}
}

// poll asks for the next page of a follower.
func (w *restoredWorld) poll(f *logFollower) (more bool) {
	if f.fresh {
		f.client = w.newClient()
	}
	f.filter.PageSize = rapid.IntRange(1, 5).Draw(w.t, "page")
	events, next, err := f.client.EventsAfter(context.Background(), f.filter, f.at)
	var lost *client.EventsLostError
	if errors.As(err, &lost) {
		f.lost = true
	} else {
		w.must(err)
	}
	for _, e := range events {
		if f.got[e.ID()] && !f.fresh {
			w.t.Errorf("the event %s came twice", e.ID())
		}
		f.got[e.ID()] = true
	}
	f.at = next
	return len(events) > 0 || lost != nil
}

// check lets all followers catch up, and compares what they got with the log.
func (w *restoredWorld) check() {
	var start int64
	rows, err := webhooks.NewReader(w.store).Events(context.Background(), webhooks.EventFilter{After: &start, Limit: 10_000})
	w.must(err)
	stored := make(map[string]invoice.EventType)
	for _, r := range rows {
		stored[r.ID] = r.Type
	}
	for i, f := range w.followers {
		for w.poll(f) {
		}
		for id, typ := range maps.All(stored) {
			if (f.filter.Type == "" || string(f.filter.Type) == string(typ)) && !f.got[id] && !f.lost { // a restore may bring back what was lost
				w.t.Errorf("follower %d misses the event %s", i, id)
			}
		}
		if f.lost && !w.cleaned {
			w.t.Errorf("follower %d lost events, and none was removed", i)
		}
		for _, id := range w.history {
			if _, kept := stored[id]; !kept && f.filter.Type == "" && !f.got[id] && !f.lost {
				w.t.Errorf("follower %d does not know that it misses the removed event %s", i, id)
			}
		}
	}
}
