package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// lockedBackend is a backend that several goroutines use.
type lockedBackend struct {
	*backend
	mu   sync.Mutex
	lost error // if set, returned by Authenticate
}

func (b *lockedBackend) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.Invoice(ctx, id)
}

func (b *lockedBackend) Events(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.Events(ctx, f)
}

func (b *lockedBackend) LastSeq(ctx context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.LastSeq(ctx)
}

func (b *lockedBackend) EventRecord(ctx context.Context, id string) (webhooks.EventRow, []webhooks.Attempt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.EventRecord(ctx, id)
}

func (b *lockedBackend) AuditHead(ctx context.Context) (access.Head, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.AuditHead(ctx)
}

func (b *lockedBackend) Changes(ctx context.Context, after int64, limit int) ([]access.ChangeRow, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.Changes(ctx, after, limit)
}

func (b *lockedBackend) Listen(ctx context.Context, l *webhooks.Listener) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.Listen(ctx, l)
}

func (b *lockedBackend) DeleteListener(ctx context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backend.DeleteListener(ctx, id)
}

func (b *lockedBackend) Authenticate(context.Context, string) (access.Principal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return access.Principal{KeyID: "key_1", Scopes: access.Admin}, b.lost
}

// lose makes Authenticate return an error from now on.
func (b *lockedBackend) lose(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = err
}

// change changes the backend.
func (b *lockedBackend) change(fn func(*backend)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn(b.backend)
}

// live is an API with a feed, in a bubble.
type live struct {
	*lockedBackend
	handler http.Handler
	feed    *webhooks.Feed
	stop    context.CancelFunc // as the service does
	refused map[string]int     // by limit
}

// playLive runs fn in a bubble with an API of n invoices and their events.
func playLive(t *testing.T, n int, fn func(t *testing.T, l live)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &lockedBackend{backend: newEventBackend(n)}
		b.invoices = newListBackend(n).invoices
		logger := slog.New(slog.DiscardHandler)
		feed := webhooks.NewFeed(webhooks.FeedConfig{Log: b, Watchdog: clock.New(0), Logger: logger})
		ctx, cancel := context.WithCancel(t.Context())
		stopping, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		refused := make(map[string]int)
		count := func(limit string) {
			mu.Lock()
			defer mu.Unlock()
			refused[limit]++
		}
		a := api.New(api.Config{Refused: count, Reader: b, Events: b, Feed: feed, Authenticator: b, Stopping: stopping, Now: testClock, Logger: logger})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			feed.Run(ctx)
		}()
		fn(t, live{b, a.Handler(), feed, stop, refused})
		stop()
		cancel()
		<-ended
	})
}

// TestWaitForInvoice waits for changes of an invoice.
func TestWaitForInvoice(t *testing.T) {
	paid := func(b *backend) {
		b.invoices[0].Status = invoice.Paid
		b.addEvent()
		b.events[len(b.events)-1].InvoiceID = invoiceID(0)
	}
	for name, c := range map[string]struct {
		query    string
		change   func(l live) // after 10 seconds
		from, to time.Duration
		status   string
	}{
		"another status": {"wait=60&status=expired", nil, 0, 0, "open"},
		"no time":        {"wait=0", nil, 0, 0, "open"},
		"no change":      {"wait=60", nil, time.Minute, time.Minute, "open"},
		"paid":           {"wait=60", func(l live) { l.change(paid); l.feed.Wake() }, 10 * time.Second, 10*time.Second + 50*time.Millisecond, "paid"},
		"paid elsewhere": {"wait=60", func(l live) { l.change(paid) }, 10 * time.Second, 11 * time.Second, "paid"},
		"part is seen": {"wait=60&status=open", func(l live) {
			l.change(func(b *backend) { paid(b); b.invoices[0].Status, b.invoices[0].Sums.Payments = invoice.Open, 1 })
		}, 10 * time.Second, 11 * time.Second, "open"},
		"an event without a change": {"wait=60", func(l live) {
			l.change(func(b *backend) { paid(b); b.invoices[0].Status = invoice.Open })
		}, time.Minute, time.Minute, "open"},
		"another invoice": {"wait=60", func(l live) {
			l.change(func(b *backend) {
				paid(b)
				b.invoices[0].Status, b.events[len(b.events)-1].InvoiceID = invoice.Open, invoiceID(1)
			})
		}, time.Minute, time.Minute, "open"},
		"void, which has no event": {"wait=60", func(l live) {
			l.change(func(b *backend) {
				b.invoices[0].Status = invoice.Void
				b.addChange(access.ActionInvoiceVoid, b.invoices[0].MerchantID, b.invoices[0].ID)
			})
		}, 10 * time.Second, 10*time.Second + 600*time.Millisecond, "void"},
		"a change of another merchant": {"wait=60", func(l live) {
			l.change(func(b *backend) { b.addChange(access.ActionInvoiceVoid, "another", invoiceID(1)) })
		}, time.Minute, time.Minute, "open"},
		"neither event nor audit entry": {"wait=60", func(l live) {
			l.change(func(b *backend) { b.invoices[0].Sums.Payments = 1 })
		}, 10 * time.Second, 12 * time.Second, "open"},
		"stop": {"wait=60", func(l live) { l.stop() }, 10 * time.Second, 10 * time.Second, "open"},
	} {
		t.Run(name, func(t *testing.T) {
			playLive(t, 2, func(t *testing.T, l live) {
				l.change(func(b *backend) { b.invoices[0].Status = invoice.Open })
				if c.change != nil {
					time.AfterFunc(10*time.Second, func() { c.change(l) })
				}
				begun := time.Now()
				w := do(l.handler, "GET", "/api/invoices/"+invoiceID(0)+"?"+c.query, "")
				if took := time.Since(begun); took < c.from || took > c.to {
					t.Errorf("took %v, want %v to %v", took, c.from, c.to)
				}
				if w.Code != http.StatusOK || !bytes.Contains(w.Body.Bytes(), []byte(`"status":"`+c.status+`"`)) {
					t.Errorf("answered %d %s", w.Code, w.Body)
				}
			})
		})
	}
}

func TestWaitRefusesParameters(t *testing.T) {
	h := newAPI(t, newListBackend(1))
	for query, field := range map[string]string{
		"wait=61": "wait", "wait=-1": "wait", "wait=": "wait", "wait=1.5": "wait", "wait=05": "wait", "wait=1&wait=2": "wait", "status=open": "wait",
	} {
		wantProblem(t, do(h, "GET", "/api/invoices/"+invoiceID(0)+"?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(h, "GET", "/api/invoices/"+invoiceID(0)+"?wait=1&status=done", ""), http.StatusBadRequest, "invalid_status", "")
	wantProblem(t, do(h, "GET", "/api/invoices/inv_x?wait=1", ""), http.StatusNotFound, "not_found", "")
}

// TestWaitingIsBounded sends as many waiting requests as permitted for several owners, each with
// another key. The last owners get a share of the free slots, and a new owner may still wait.
func TestWaitingIsBounded(t *testing.T) {
	playLive(t, 1, func(t *testing.T, l live) {
		l.change(func(b *backend) { b.invoices[0].Status, b.invoices[0].MerchantID = invoice.Open, "" })
		var keys atomic.Int64
		ask := func(owner string) *httptest.ResponseRecorder {
			r := newRequest("GET", "/api/invoices/"+invoiceID(0)+"?wait=60", "")
			w := httptest.NewRecorder()
			l.handler.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), access.Principal{MerchantID: owner, KeyID: fmt.Sprint("key_", keys.Add(1)), Scopes: access.Admin})))
			return w
		}
		var group sync.WaitGroup
		wait := func(owner string, times int) {
			l.change(func(b *backend) { b.invoices[0].MerchantID = owner })
			for range times {
				group.Go(func() { ask(owner) })
			}
			synctest.Wait()
		}
		for _, owner := range []string{"a", "b", "c", "d", "e"} {
			times := api.MaxOwnWaiting
			if owner == "e" { // with 100 free
				times /= 2
			}
			wait(owner, times)
			w := ask(owner)
			wantProblem(t, w, http.StatusTooManyRequests, "rate_limited", "")
			if w.Header().Get("Retry-After") != "5" {
				t.Errorf("headers %v", w.Header())
			}
		}
		for i := range api.MaxWaiting - 9*api.MaxOwnWaiting/2 {
			wait(fmt.Sprint("f", i), 1)
		}
		wantProblem(t, ask("g"), http.StatusServiceUnavailable, "unavailable", "")
		group.Wait()
		expect.NoDiff(t, cmp.Diff(map[string]int{"waiting": 5, "all_waiting": 1}, l.refused), "refused")
		l.change(func(b *backend) { b.invoices[0].MerchantID, b.invoices[0].Status = "a", invoice.Paid })
		if w := ask("a"); w.Code != http.StatusOK {
			t.Errorf("after the others it answers %d", w.Code)
		}
	})
}

// TestWaitChecksItsKey revokes a key, and ends a session, while a request waits.
func TestWaitChecksItsKey(t *testing.T) {
	for name, let := range map[string]func(ctx context.Context, l live) context.Context{
		"key": func(ctx context.Context, _ live) context.Context { return ctx },
		"session": func(ctx context.Context, l live) context.Context {
			return access.WithRecheck(ctx, func(ctx context.Context) error {
				_, err := l.Authenticate(ctx, "")
				return err
			})
		},
	} {
		playLive(t, 1, func(t *testing.T, l live) {
			l.change(func(b *backend) { b.invoices[0].Status = invoice.Open })
			time.AfterFunc(time.Second, func() { l.lose(access.ErrRevoked) })
			w := httptest.NewRecorder()
			r := newRequest("GET", "/api/invoices/"+invoiceID(0)+"?wait=60", "")
			if name == "key" {
				r.Header.Set("Authorization", "Bearer x")
			}
			begun := time.Now()
			l.handler.ServeHTTP(w, r.WithContext(let(access.WithPrincipal(r.Context(), access.Principal{KeyID: "key_1", Scopes: access.Admin}), l)))
			if took := time.Since(begun); w.Code != http.StatusUnauthorized || took > 2*time.Second {
				t.Errorf("%s: answered %d after %v: %s", name, w.Code, took, w.Body)
			}
		})
	}
}

// streamWriter records a response that is written while it is read.
type streamWriter struct {
	mu     sync.Mutex
	text   strings.Builder
	header http.Header
	broken bool // writes fail
	// longest is the length of the longest write.
	longest int
}

func (w *streamWriter) Header() http.Header { return w.header }
func (w *streamWriter) WriteHeader(int)     {}
func (w *streamWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return 0, errors.New("write: deadline exceeded")
	}
	w.longest = max(w.longest, len(p))
	return w.text.Write(p)
}

// take returns what was written since the last call.
func (w *streamWriter) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text.String()
	w.text.Reset()
	return text
}

// openStream opens a stream of a key in a bubble. ended is closed when it ends.
func openStream(t *testing.T, l live, query string) (w *streamWriter, ended <-chan struct{}) {
	t.Helper()
	w, done := &streamWriter{header: http.Header{}}, make(chan struct{})
	r := newRequest("GET", "/api/events/stream?"+query, "")
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Set("Accept-Encoding", "gzip") // ignored: events must not wait in a compressor
	r = r.WithContext(access.WithPrincipal(r.Context(), access.Principal{KeyID: "key_1", Scopes: access.Admin}))
	go func() {
		defer close(done)
		l.handler.ServeHTTP(w, r)
	}()
	synctest.Wait()
	return w, done
}

// TestStreamHeartbeats leaves a stream without events.
func TestStreamHeartbeats(t *testing.T) {
	playLive(t, 3, func(t *testing.T, l live) {
		w, ended := openStream(t, l, "")
		if text := w.take(); !strings.HasPrefix(text, "retry: 2000\nid: ") || !strings.HasSuffix(text, "\n\n") {
			t.Errorf("it begins with %q", text)
		}
		if coding := w.header.Get("Content-Encoding"); coding != "" {
			t.Errorf("it is compressed: %s", coding)
		}
		clock.Sleep(t.Context(), time.Minute+time.Second, nil)
		if text := w.take(); text != strings.Repeat(":\n\n", 4) {
			t.Errorf("in a minute it sent %q", text)
		}
		l.stop()
		<-ended
	})
}

// TestStreamReadsTheLog begins with more events than a page. Few of them match.
func TestStreamReadsTheLog(t *testing.T) {
	playLive(t, 300, func(t *testing.T, l live) {
		for query, want := range map[string]int{"after=start": 300, "after=start&invoiceId=" + invoiceID(7): 3, "after=start&merchantId=nobody": 0, "after=start&merchantId=no%00body": 0, "": 0} {
			w, ended := openStream(t, l, query)
			clock.Sleep(t.Context(), 2*time.Second, nil)
			if text := w.take(); strings.Count(text, "data: ") != want {
				t.Errorf("%s: sent %d events, want %d", query, strings.Count(text, "data: "), want)
			}
			w.mu.Lock()
			w.broken = true // the client does not read
			w.mu.Unlock()
			l.change(func(b *backend) { b.addEvent(); b.events = b.events[:300] })
			<-ended // at the next heartbeat
		}
	})
}

// TestStreamReadsLargeEvents begins with large events in the log, which are then redelivered. No more than
// webhooks.MaxNext bytes are written at once.
func TestStreamReadsLargeEvents(t *testing.T) {
	const events, size = 70, 60 << 10
	playLive(t, events, func(t *testing.T, l live) {
		l.change(func(b *backend) {
			for i := range b.events {
				b.events[i].Body = append(append(fmt.Appendf(nil, `{"id":%q,"note":"`, b.events[i].ID), bytes.Repeat([]byte("x"), size)...), `"}`...)
			}
		})
		w, ended := openStream(t, l, "after=start&include=deliveries")
		for _, what := range []string{"read", "redelivered"} {
			clock.Sleep(t.Context(), 2*time.Second, nil)
			text := w.take()
			for _, e := range l.events {
				if strings.Count(text, e.ID) != 1 {
					t.Errorf("%s: %s was sent %d times", what, e.ID, strings.Count(text, e.ID))
				}
			}
			l.change(func(b *backend) {
				for _, e := range b.events {
					b.addChange(access.ActionEventRedeliver, e.MerchantID, e.ID)
				}
			})
			l.feed.Wake()
		}
		if w.longest > webhooks.MaxNext {
			t.Errorf("the longest write has %d bytes", w.longest)
		}
		l.stop()
		<-ended
	})
}

// TestStreamRepeatsNoEvent reads events from the log that the feed does not have yet: those
// that another process recorded since the feed's last read.
func TestStreamRepeatsNoEvent(t *testing.T) {
	playLive(t, 3, func(t *testing.T, l live) {
		expect.Success(t)(l.feed.Head(t.Context()))
		l.change(func(b *backend) { b.addEvent(); b.addEvent() })
		for _, query := range []string{"after=start", "after=start&type=" + string(l.events[4].Type)} {
			w, ended := openStream(t, l, query)
			clock.Sleep(t.Context(), 2*time.Second, nil)
			text := w.take()
			for i, e := range l.events {
				want := 1
				if query != "after=start" && e.Type != l.events[4].Type {
					want = 0
				}
				if n := strings.Count(text, "data: "+string(e.Body)+"\n"); n != want {
					t.Errorf("%s: event %d was sent %d times, want %d", query, i+1, n, want)
				}
			}
			w.mu.Lock()
			w.broken = true
			w.mu.Unlock()
			<-ended
		}
	})
}

// TestStreamChecksItsKey checks streams with a refused key, and with a check of the key that fails.
func TestStreamChecksItsKey(t *testing.T) {
	exceeded := &limits.ExceededError{Limit: "authentication", RetryAfter: "1"}
	for name, refusal := range map[string]error{"revoked": access.ErrRevoked, "beyond the limit of refusals": errors.Join(exceeded, access.ErrRevoked)} {
		playLive(t, 1, func(t *testing.T, l live) {
			_, ended := openStream(t, l, "")
			lose := func(err error) {
				l.lose(err)
				clock.Sleep(t.Context(), time.Second, nil)
				synctest.Wait()
			}
			lose(db.ErrTimeout)
			lose(context.DeadlineExceeded)
			lose(exceeded)
			select {
			case <-ended:
				t.Error("it ended while its key could not be checked")
			default:
			}
			lose(refusal)
			select {
			case <-ended:
			default:
				t.Errorf("%s: it did not end a second after the revocation", name)
			}
		})
	}
}

// TestStreamOfDeliveries follows the deliveries of a merchant's events, some of them redelivered, and
// continues after an interruption.
func TestStreamOfDeliveries(t *testing.T) {
	playLive(t, 8, func(t *testing.T, l live) {
		sent := func(w *streamWriter) (all []string, last string) {
			t.Helper()
			clock.Sleep(t.Context(), 2*time.Second, nil)
			for line := range strings.Lines(w.take()) {
				if id, ok := strings.CutPrefix(line, "id: "); ok {
					last = strings.TrimSpace(id)
				}
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					var record apitypes.EventRecord
					if err := json.Unmarshal([]byte(data), &record); err != nil || record.MerchantID != "acme" {
						t.Errorf("%s: %v", data, err)
					}
					all = append(all, record.ID())
				}
			}
			return all, last
		}
		want := func(what string, got []string, events ...int) {
			t.Helper()
			var ids []string
			for _, n := range events {
				ids = append(ids, eventID(n))
			}
			expect.NoDiff(t, cmp.Diff(ids, got), "%s", what)
		}
		again := func(n int) {
			l.change(func(b *backend) { b.addChange(access.ActionEventRedeliver, b.events[n].MerchantID, b.events[n].ID) })
		}
		wantListeners := func(want int) {
			t.Helper()
			l.change(func(b *backend) {
				if n := len(b.listeners); n != want {
					t.Errorf("%d listeners are noted, want %d", n, want)
				}
			})
		}
		again(0) // before anybody listens
		w, ended := openStream(t, l, "merchantId=acme&include=deliveries")
		plain, plainEnded := openStream(t, l, "merchantId=acme")
		got, first := sent(w)
		want("at first", got)
		wantListeners(1)
		again(2)
		again(3) // of another merchant
		l.change(func(b *backend) {
			b.addChange(access.ActionEventRedeliver, "acme", "") // several
			b.addChange(access.ActionInvoiceVoid, "acme", invoiceID(0))
			b.addEvent()
		})
		again(4)
		got, last := sent(w)
		want("redelivered", got, 8, 2, 4)
		if text := plain.take(); strings.Count(text, "data: ") != 1 {
			t.Errorf("a stream without deliveries has %s", text)
		}
		for _, stream := range []*streamWriter{w, plain} {
			stream.mu.Lock()
			stream.broken = true
			stream.mu.Unlock()
		}
		l.change(func(b *backend) { b.addEvent(); b.addEvent() })
		<-ended
		<-plainEnded
		wantListeners(0)
		again(6)
		w, ended = openStream(t, l, "merchantId=acme&include=deliveries&after="+last)
		got, _ = sent(w)
		want("continued", got, 10, 6)
		later, laterEnded := openStream(t, l, "merchantId=acme&type="+string(l.events[2].Type)+"&include=deliveries&after=start")
		got, _ = sent(later)
		want("another filter", got, 2)
		for range 5000 { // more than the feed keeps
			l.change(func(b *backend) { b.addChange(access.ActionInvoiceVoid, "acme", invoiceID(0)) })
		}
		clock.Sleep(t.Context(), time.Second, nil)
		old, oldEnded := openStream(t, l, "merchantId=acme&include=deliveries&after="+first)
		got, _ = sent(old)
		want("far behind", got, 8, 10, 2, 4, 6)
		l.stop()
		for _, end := range []<-chan struct{}{ended, laterEnded, oldEnded} {
			<-end
		}
		wantListeners(3) // they come back after the service's restart
	})
}
