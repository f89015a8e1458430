package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
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
