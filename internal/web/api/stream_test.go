package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

// streamWriter records a response that is written while it is read.
type streamWriter struct {
	mu     sync.Mutex
	text   strings.Builder
	header http.Header
	broken bool // writes fail
}

func (w *streamWriter) Header() http.Header { return w.header }
func (w *streamWriter) WriteHeader(int)     {}
func (w *streamWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return 0, errors.New("write: deadline exceeded")
	}
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
