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
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// restored are the timelines of a database that was restored twice, with 8 events.
var restored = []webhooks.Timeline{
	{Number: 1, ID: "tml_1"},
	{Number: 2, ID: "tml_2", LastSeq: 6, LastAudit: 4, StartedAt: time.Unix(now, 0)},
	{Number: 3, ID: "tml_3", LastSeq: 5, LastAudit: 3, StartedAt: time.Unix(now+1, 0)},
}

const eventScope = "events after merchantId=[] type=[] invoiceId=[]"

// TestCursorGone continues from cursors of all timelines.
func TestCursorGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timelines []webhooks.Timeline
		removed   int64
		key       string
		want      string // number of the first event, or the reason and the key of the member after
	}{
		"the current timeline": {key: "tml_3/tml_1.5:7", want: "8"},
		"its end":              {key: "tml_3/tml_1.5:8", want: "0"},
		"an older one, before the next branched off":        {key: "tml_2/tml_1.6:5", want: "6"},
		"an older one, behind that":                         {key: "tml_2/tml_1.6:6", want: "restored tml_3/tml_1.5:5"},
		"the first one, before both branched off":           {key: "5", want: "6"},
		"the first one, between":                            {key: "6", want: "restored tml_3/tml_1.5:5"},
		"the first one, behind both":                        {key: "99.9", want: "restored tml_3/tml_1.5:5.3"},
		"an unknown one of this installation":               {key: "tml_x/tml_1.4:9", want: "replaced tml_3/tml_1.5:4"},
		"an unknown one that branched off later":            {key: "tml_x/tml_1.7:9", want: "replaced tml_3/tml_1.5:5"},
		"an unknown one, before it branched off":            {key: "tml_x/tml_1.4:3", want: "4"},
		"a restored one of another installation":            {key: "tml_x/tml_y.4:2", want: "replaced tml_3/tml_1.5:0"},
		"a log that lost its end":                           {key: "tml_3/tml_1.5:9", want: "restored tml_3/tml_1.5:5"},
		"a first log that lost its end":                     {timelines: restored[:1], key: "9", want: "restored 0"},
		"an unknown one, of a database that was not marked": {timelines: restored[:1], key: "tml_x/tml_1.4:9.9", want: "replaced 4.0"},
		"the only timeline":                                 {timelines: restored[:1], key: "7", want: "8"},
		"removed events of the only timeline":               {timelines: restored[:1], removed: 7, key: "6", want: "removed 6~7"},
		"removed events of the only timeline, known":        {timelines: restored[:1], removed: 7, key: "6~7", want: "7"},
		"removed events":                                    {removed: 7, key: "tml_3/tml_1.5:6", want: "removed tml_3/tml_1.5:6~7"},
		"removed events, which is known":                    {removed: 7, key: "tml_3/tml_1.5:6~7", want: "7"},
		"more removed events than are known":                {removed: 7, key: "tml_3/tml_1.5:2~6", want: "removed tml_3/tml_1.5:2~7"},
		"behind what was removed":                           {removed: 7, key: "tml_3/tml_1.5:7", want: "8"},
		"what was removed from another timeline":            {removed: 5, key: "2~9", want: "3"},
		"a branch, with removed events":                     {removed: 7, key: "6", want: "restored tml_3/tml_1.5:5"},
		"one of another installation, with removed events":  {removed: 7, key: "tml_x/tml_y.4:2", want: "replaced tml_3/tml_1.5:0~7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newEventBackend(8)
			if b.timelines, b.removed = c.timelines, c.removed; b.timelines == nil {
				b.timelines = restored
			}
			h := newAPI(t, b)
			cursor := api.FormatCursor(eventScope, c.key)
			for _, w := range []func(path string, header ...string) string{
				func(path string, header ...string) string { return answerOf(t, h, path+"?after="+cursor, header...) },
				func(path string, header ...string) string {
					return answerOf(t, h, path, append(header, "Last-Event-ID", cursor)...)
				},
			} {
				if got := w("/api/events/stream"); strings.Contains(c.want, " ") && got != c.want {
					t.Errorf("a stream: got %s, want %s", got, c.want)
				}
			}
			if got := answerOf(t, h, "/api/events?limit=1&after="+cursor); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// answerOf returns the number of the first event in an answer. If the cursor is gone, it returns the
// reason and the key of the cursor from which to continue, which it checks.
func answerOf(t *testing.T, h http.Handler, path string, header ...string) string {
	t.Helper()
	method := "GET"
	if strings.Contains(path, "stream") {
		method = "HEAD" // a stream does not end
	}
	w := do(h, method, path, "", header...)
	switch w.Code {
	case http.StatusOK:
		if method == "HEAD" {
			return ""
		}
		list := decode[apitypes.EventList](t, w, http.StatusOK)
		for _, n := range numbersOf(t, list) {
			return fmt.Sprint(n + 1)
		}
		return "0"
	case http.StatusGone:
		p := decode[apitypes.Problem](t, w, http.StatusGone)
		key, _, ok := api.PositionKey(eventScope, p.After)
		if !ok || p.Code != apitypes.CodeCursorGone {
			t.Errorf("%s: problem %+v", path, p)
		}
		if next := do(h, "GET", "/api/events?limit=1&after="+p.After, ""); next.Code != http.StatusOK && p.Reason != "restored" {
			t.Errorf("%s: after is answered %d %s", path, next.Code, next.Body)
		}
		return p.Reason + " " + key
	}
	return w.Body.String()
}

// TestListCursorGone continues newest-first lists, and the redelivery of events.
func TestListCursorGone(t *testing.T) {
	t.Parallel()
	b := newEventBackend(8)
	for range 7 {
		b.addChange(access.ActionKeyRevoke, "acme", "key_1")
	}
	b.timelines, b.removed = restored, 2
	h := newAPI(t, b)
	gone := func(t *testing.T, w int, p apitypes.Problem, scope, want string) {
		t.Helper()
		if key, _, ok := api.PositionKey(scope, p.After); w != http.StatusGone || !ok || key != want || p.Code != apitypes.CodeCursorGone {
			t.Errorf("answered %d %+v with the key %q, want %q", w, p, key, want)
		}
	}
	for path, scope := range map[string]string{"/api/events": "events merchantId=[] type=[] invoiceId=[] delivery=[]", "/api/audit": "audit merchantId=[] action=[] since=[]"} {
		last, top := 5, 9
		if path == "/api/audit" {
			last, top = 3, 8
		}
		at := func(n int) string { return path + "?limit=1&cursor=" + api.FormatCursor(scope, fmt.Sprintf("%d", n)) }
		if w := do(h, "GET", at(last+1), ""); w.Code != http.StatusOK {
			t.Errorf("%s: before the branch: answered %d %s", path, w.Code, w.Body)
		}
		w := do(h, "GET", at(last+2), "")
		p := decode[apitypes.Problem](t, w, http.StatusGone)
		gone(t, w.Code, p, scope, fmt.Sprintf("tml_3/tml_1.5:%d", top))
		if w := do(h, "GET", path+"?limit=1&cursor="+url.QueryEscape(p.After), ""); w.Code != http.StatusOK {
			t.Errorf("%s: after is answered %d %s", path, w.Code, w.Body)
		}
	}
	const scope = `redeliver "" "" "" 0 0 true`
	again := func(n int) string {
		return fmt.Sprintf(`{"failedOnly":true,"cursor":%q}`, api.FormatCursor(scope, fmt.Sprintf("%d", n)))
	}
	if w := do(h, "POST", "/api/events/redeliver", again(1)); w.Code != http.StatusOK {
		t.Errorf("before the branch: answered %d %s", w.Code, w.Body)
	}
	w := do(h, "POST", "/api/events/redeliver", again(6))
	gone(t, w.Code, decode[apitypes.Problem](t, w, http.StatusGone), scope, "tml_3/tml_1.5:5")
}

// TestPagesEndWhereEventsWereRemoved removes events while a page of them is read.
func TestPagesEndWhereEventsWereRemoved(t *testing.T) {
	t.Parallel()
	for part, want := range map[int]string{1: "410", 2: "4"} { // 4 events are in the first part of a page
		b := newEventBackend(200)
		locked := &removing{backend: b, at: part}
		h := newReaderAPI(t, locked)
		w := do(h, "GET", "/api/events?limit=200&after="+api.FormatCursor(eventScope, "1"), "")
		got := fmt.Sprint(w.Code)
		if w.Code == http.StatusOK {
			list := decode[apitypes.EventList](t, w, http.StatusOK)
			got = fmt.Sprint(len(list.Events))
			if key, _, _ := api.PositionKey(eventScope, list.NextCursor); key != "5" {
				t.Errorf("part %d: the page ends at %s", part, key)
			}
			if w = do(h, "GET", "/api/events?after="+list.NextCursor, ""); w.Code != http.StatusGone {
				t.Errorf("part %d: the next page is answered %d", part, w.Code)
			}
		}
		if got != want {
			t.Errorf("part %d: got %s, want %s", part, got, want)
		}
	}
}

// TestFilteredCursorsAdvance follows a filter that no event matches while the others are removed.
func TestFilteredCursorsAdvance(t *testing.T) {
	t.Parallel()
	b := newEventBackend(8)
	h := newAPI(t, b)
	const query = "/api/events?merchantId=nobody&after="
	cursor := decode[apitypes.EventList](t, do(h, "GET", query+"start", ""), http.StatusOK).NextCursor
	for range 3 {
		b.removed = int64(len(b.events))
		b.addEvent()
		cursor = decode[apitypes.EventList](t, do(h, "GET", query+url.QueryEscape(cursor), ""), http.StatusOK).NextCursor
	}
}

// removing is a backend on which events are removed while one part of a page is read.
type removing struct {
	*backend
	at, reads int
}

func (r *removing) Events(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
	if r.reads++; r.reads == r.at {
		r.removed = 100
	}
	return r.backend.Events(ctx, f)
}

func newReaderAPI(t *testing.T, r *removing) http.Handler {
	return api.New(api.Config{Reader: r.backend, Events: r, Now: testClock, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}).Handler()
}

// TestQuietMerchantsLoseNothing follows a merchant from before the events that were removed. All of
// them belong to other merchants.
func TestQuietMerchantsLoseNothing(t *testing.T) {
	t.Parallel()
	b := newEventBackend(8)
	b.removed, b.removedOf = 7, map[string]int64{"bean": 6}
	h := newAPI(t, b)
	for merchant, want := range map[string]string{"acme": "5", "bean": "removed 3~6"} {
		scope := fmt.Sprintf("events after merchantId=[%q] type=[] invoiceId=[]", merchant)
		w := do(h, "GET", "/api/events?limit=1&merchantId="+merchant+"&after="+api.FormatCursor(scope, "3"), "")
		got := ""
		if w.Code == http.StatusOK {
			for _, n := range numbersOf(t, decode[apitypes.EventList](t, w, http.StatusOK)) {
				got = fmt.Sprint(n + 1)
			}
		} else {
			p := decode[apitypes.Problem](t, w, http.StatusGone)
			key, _, _ := api.PositionKey(scope, p.After)
			got = p.Reason + " " + key
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", merchant, got, want)
		}
	}
}

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
