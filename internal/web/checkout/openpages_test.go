package checkout

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// feed is a Feed that returns what tests put into it.
type feed struct {
	news chan webhooks.News
	errs chan error
}

func newFeed() *feed { return &feed{make(chan webhooks.News), make(chan error)} }

func (f *feed) Head(context.Context) (webhooks.Position, error) { return webhooks.Position{}, nil }

func (f *feed) Next(ctx context.Context, _ webhooks.Position) (webhooks.News, error) {
	select {
	case news := <-f.news:
		return news, nil
	case err := <-f.errs:
		return webhooks.News{}, err
	case <-ctx.Done():
		return webhooks.News{}, ctx.Err()
	}
}

// about returns news about an invoice.
func about(id string) webhooks.News {
	return webhooks.News{Events: []webhooks.EventRow{{Event: webhooks.Event{InvoiceID: id}}}}
}

// liveWorld is a world with an open page. change changes the world.
type liveWorld struct {
	*world
	t     *testing.T
	mu    sync.Mutex
	reads atomic.Int64 // of the invoice
	feed  *feed
	page  *Checkout
	began time.Time
}

// Invoice implements Reader.
func (w *liveWorld) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads.Add(1)
	return w.world.Invoice(ctx, id)
}

// Cursor implements Reader.
func (w *liveWorld) Cursor(ctx context.Context, key string) (ledger.Cursor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.world.Cursor(ctx, key)
}

func (w *liveWorld) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// live runs a test with an open page in a bubble of synctest, on the bubble's clock.
func live(t *testing.T, set func(*Config), test func(t *testing.T, w *liveWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &liveWorld{world: newWorld(), t: t, feed: newFeed(), began: time.Now()}
		conf := w.config()
		conf.Reader, conf.Feed = w, w.feed
		conf.Now = func() time.Time { return time.Unix(defaultNow, 0).Add(time.Since(w.began)) }
		if set != nil {
			set(&conf)
		}
		w.page = New(conf)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			w.page.Run(ctx)
			close(done)
		}()
		test(t, w)
		stop()
		<-done
	})
}

// pass lets time pass.
func (w *liveWorld) pass(d time.Duration) {
	clock.Sleep(w.t.Context(), d, nil)
	synctest.Wait()
}

// tab is a page that is open in a browser.
type tab struct {
	t      *testing.T
	answer *streamRecorder
	close  func()
}

// streamRecorder is a response with events that can be read while it is written.
type streamRecorder struct {
	*httptest.ResponseRecorder
	mu     sync.Mutex
	events []statusData
}

func (r *streamRecorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for lines := bufio.NewScanner(strings.NewReader(string(p))); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var s statusData
			if err := json.Unmarshal([]byte(data), &s); err != nil {
				return 0, err
			}
			r.events = append(r.events, s)
		}
	}
	return r.ResponseRecorder.Write(p)
}

// openAs opens the page of an invoice from a client address, and returns the status of the answer.
func (w *liveWorld) openAs(id, from string) (*tab, int) {
	ctx, cancel := context.WithCancel(w.t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://pay.example/checkout/"+id+"/events", nil)
	r.RemoteAddr = from
	r = r.WithContext(limits.NewContext(webpage.WithConnection(ctx, ctx), limits.Proxies{}.Client(r)))
	tab := &tab{t: w.t, answer: &streamRecorder{ResponseRecorder: httptest.NewRecorder()}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		handlerOf(w.page).ServeHTTP(tab.answer, r)
	}()
	tab.close = func() {
		cancel()
		<-ended
	}
	synctest.Wait()
	return tab, tab.answer.Code
}

func (w *liveWorld) open() *tab {
	w.t.Helper()
	tab, status := w.openAs(testID, "127.0.0.1:9")
	if status != http.StatusOK || tab.answer.Header().Get("Content-Type") != webpage.MediaType {
		w.t.Fatalf("answered %d: %s", status, tab.answer.Body)
	}
	return tab
}

// take returns the events since the last call.
func (b *tab) take() []statusData {
	synctest.Wait()
	b.answer.mu.Lock()
	defer b.answer.mu.Unlock()
	events := b.answer.events
	b.answer.events = nil
	return events
}

// want wants one event, and returns it.
func (b *tab) want(st state) statusData {
	b.t.Helper()
	events := b.take()
	if len(events) != 1 || events[0].State != st {
		b.t.Fatalf("the page got %+v, want one of state %s", events, st)
	}
	return events[0]
}

func (b *tab) wantNothing() {
	b.t.Helper()
	if events := b.take(); len(events) != 0 {
		b.t.Fatalf("the page got %+v, want nothing", events)
	}
}

// TestOpenPage follows an invoice from its creation until its payment is final.
func TestOpenPage(t *testing.T) {
	live(t, nil, func(t *testing.T, w *liveWorld) {
		page := w.open()
		if first := page.want(waiting); first.Left != expires-defaultNow+1 {
			t.Errorf("%d seconds are left", first.Left)
		}
		w.pass(2 * observeInterval) // the page is read once more after the feed's first position
		w.feed.news <- about("inv_other")
		page.wantNothing()

		w.change(func() { w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)} })
		w.feed.news <- about(testID)
		if s := page.want(seen); *s.Confirmations != (progress{Have: 2, Need: 3}) {
			t.Errorf("the confirmations are %+v", s.Confirmations)
		}
		reads := w.reads.Load()
		w.change(func() { w.cursor.Indexed.Number++ })
		w.pass(2 * observeInterval)
		if s := page.want(seen); *s.Confirmations != (progress{Have: 3, Need: 3}) {
			t.Errorf("the confirmations are %+v", s.Confirmations)
		}
		if again := w.reads.Load(); again != reads {
			t.Errorf("a block cost %d reads of the invoice", again-reads)
		}

		w.change(func() { w.payments = nil; w.settle("", 4_900_123) })
		w.feed.news <- about(testID)
		page.want(paid)
		page.close()
	})
}

// Pages of one invoice share their reads, and a page without news is not read.
func TestPagesShareReads(t *testing.T) {
	live(t, nil, func(t *testing.T, w *liveWorld) {
		w.open()
		w.pass(2 * observeInterval)
		before := w.reads.Load()
		pages := make([]*tab, StreamsOfInvoice-1)
		for i := range pages {
			pages[i] = w.open()
			pages[i].want(waiting)
		}
		w.pass(10 * observeInterval)
		if reads := w.reads.Load(); reads != before {
			t.Errorf("%d more pages of an invoice cost %d reads", len(pages), reads-before)
		}
		w.change(func() { w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)} })
		w.feed.news <- about(testID)
		for _, page := range pages {
			page.want(partial)
		}
		if reads := w.reads.Load(); reads != before+1 {
			t.Errorf("an event cost %d reads for %d pages", reads-before, len(pages)+1)
		}
	})
}

// A status is repeated, so that proxies keep the connection and the countdown stays right.
func TestHeartbeat(t *testing.T) {
	live(t, nil, func(t *testing.T, w *liveWorld) {
		page := w.open()
		first := page.want(waiting)
		w.pass(Heartbeat * 4 / 5)
		page.wantNothing()
		w.pass(Heartbeat*2/5 + observeInterval)
		if again := page.want(waiting); again.Left >= first.Left-int64(Heartbeat/time.Second)*3/4 || again.Version != first.Version {
			t.Errorf("the status %+v is repeated as %+v", first, again)
		}
	})
}

// An open page of a payment that is held, which may take days, is not read more often than at its heartbeat.
func TestHeldPaymentIsNotReadAgain(t *testing.T) {
	live(t, nil, func(t *testing.T, w *liveWorld) {
		w.payments, w.cursor.Confirmed.Number = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Held)}, 11
		w.open().want(seen)
		w.pass(2 * observeInterval)
		before := w.reads.Load()
		w.pass(2 * Heartbeat)
		if reads := w.reads.Load() - before; reads < 1 || reads > 3 {
			t.Errorf("the page was read %d times", reads)
		}
	})
}

// A page with payments is read again at its heartbeat, since some changes of what is due make neither an event nor a
// change: a refund that ends, and the transfer amount of the rest.
func TestPageIsReadAtItsHeartbeat(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*liveWorld)
		to     state
	}{
		"a refund is mined":        {func(w *liveWorld) { w.payments[0].Returned = w.payments[0].Amount }, waiting},
		"the rest gets its amount": {func(w *liveWorld) { w.invoice.RemainingTransfer = invoice.NewAmount(2_900_456) }, partial},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, nil, func(t *testing.T, w *liveWorld) {
				w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
				page := w.open()
				first := page.want(partial)
				w.pass(2 * observeInterval)
				w.change(func() { test.change(w) })
				w.pass(Heartbeat*6/5 + 2*observeInterval)
				events := page.take()
				if last := events[len(events)-1]; last.State != test.to || last.Version == first.Version {
					t.Errorf("the page got %+v after %+v", events, first)
				}
			})
		})
	}
}

// Changes without an event are found by the clock and by the chain.
func TestPageChangesWithoutEvents(t *testing.T) {
	for name, test := range map[string]struct {
		set, change func(*liveWorld)
		pass        time.Duration
		from, to    state
	}{
		"the time is up": {func(w *liveWorld) { w.invoice.ExpiresAt = invoice.Unix(defaultNow + 5) }, func(*liveWorld) {}, 7 * time.Second, waiting, checking},
		"a reorg": {func(w *liveWorld) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
		}, func(w *liveWorld) {
			w.payments[0].Status = invoice.Orphaned
			w.cursor.Revision++
		}, 2 * time.Second, seen, unknown},
		"a payment is not mined again": {func(w *liveWorld) {
			w.orphanedAt = defaultNow + 5 - int64(awaitOrphans/time.Second)
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned)}
		}, func(*liveWorld) {}, 7 * time.Second, unknown, waiting},
		"a payment is mined again": {func(w *liveWorld) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned)}
		}, func(w *liveWorld) {
			w.payments[0].Status = invoice.Pending
			w.payments[0].BlockNumber = 13
			w.cursor.Indexed.Number = 13
		}, 2 * time.Second, unknown, seen},
		"a part is final": {func(w *liveWorld) {
			w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
		}, func(w *liveWorld) {
			w.payments[0].Status = invoice.Confirmed
			w.cursor.Confirmed.Number = 11
		}, 2 * time.Second, partial, partial},
		"a payment of another amount": {func(*liveWorld) {}, func(w *liveWorld) {
			w.others = []invoice.Payment{unattributed(4_100_000, defaultNow)}
			w.cursor.Indexed.Number = 13
		}, 4 * time.Second, waiting, waiting},
		"the chain is halted":  {func(*liveWorld) {}, func(w *liveWorld) { w.cursor.Halted = "look" }, 2 * time.Second, waiting, unknown},
		"the chain is resumed": {func(w *liveWorld) { w.cursor.Halted = "look" }, func(w *liveWorld) { w.cursor.Halted = "" }, 2 * time.Second, unknown, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, nil, func(_ *testing.T, w *liveWorld) {
				test.set(w)
				page := w.open()
				page.want(test.from)
				w.pass(2 * observeInterval)
				w.change(func() { test.change(w) })
				w.pass(test.pass)
				page.want(test.to)
			})
		})
	}
}

// A page shows that payments cannot be seen once BlindAfter has passed without a proof that new blocks
// are read, and no sooner.
func TestPageOfABlindChain(t *testing.T) {
	var synced time.Time
	set := func(c *Config) {
		synced = c.Now()
		c.Progress = func(string) Progress { return Progress{Synced: synced} }
	}
	live(t, set, func(_ *testing.T, w *liveWorld) {
		page := w.open()
		w.pass(BlindAfter)
		for _, s := range page.take() {
			expect.Equal(w.t, s.State, waiting, "within the time the state is")
		}
		w.pass(2*time.Second + observeInterval)
		page.want(unknown)
		w.change(func() { w.cursor.Indexed.Time = w.page.conf.Now() })
		w.pass(2 * observeInterval)
		page.want(waiting)
	})
}

// The audit log has changes that write no event.
func TestPageFollowsTheAuditLog(t *testing.T) {
	for _, change := range []access.ChangeRow{
		{Action: access.ActionInvoiceVoid, Object: testID}, {Action: access.ActionAttributionAssign, MerchantID: "corner-cafe", Object: "pay_1"},
		{Action: access.ActionRefundPrepare, MerchantID: "corner-cafe", Object: "ref_1"}, {Action: access.ActionRefundCancel, MerchantID: "corner-cafe", Object: "ref_1"},
		{Action: access.ActionInboxDecide, MerchantID: "corner-cafe", Object: "dec_1"}, {Action: access.ActionInboxUndo, MerchantID: "corner-cafe", Object: "dec_1"},
	} {
		live(t, nil, func(_ *testing.T, w *liveWorld) {
			page := w.open()
			page.want(waiting)
			w.pass(2 * observeInterval)
			w.change(func() { w.invoice.Status = invoice.Void })
			w.feed.news <- webhooks.News{Changes: []access.ChangeRow{{Action: access.ActionInvoiceVoid, Object: "inv_other"}}}
			page.wantNothing()
			w.feed.news <- webhooks.News{Changes: []access.ChangeRow{change}}
			page.want(void)
		})
	}
}

// If the feed has dropped news, every page is read again.
func TestPageIsReadAgainBehindTheFeed(t *testing.T) {
	live(t, nil, func(_ *testing.T, w *liveWorld) {
		page := w.open()
		page.want(waiting)
		w.pass(2 * observeInterval)
		w.change(func() { w.invoice.Status = invoice.Void })
		w.feed.errs <- webhooks.ErrBehind
		page.want(void)
	})
}

// While the database is away, the page keeps its stream.
func TestPageOutlivesTheDatabase(t *testing.T) {
	live(t, nil, func(_ *testing.T, w *liveWorld) {
		page := w.open()
		page.want(waiting)
		w.pass(2 * observeInterval)
		w.change(func() { w.err = errors.New("the database is away") })
		w.feed.news <- about(testID)
		w.pass(3 * observeInterval)
		page.wantNothing()
		w.change(func() { w.err, w.invoice.Status = nil, invoice.Void })
		w.pass(2 * observeInterval)
		page.want(void)
	})
}

func TestDeletedInvoiceEndsItsStreams(t *testing.T) {
	live(t, nil, func(t *testing.T, w *liveWorld) {
		w.invoice.Status = invoice.Drafted
		w.open().want(draft)
		w.change(func() { w.invoice.ID = "inv_another" })
		w.feed.news <- webhooks.News{Changes: []access.ChangeRow{{Action: access.ActionInvoiceDelete, Object: testID}}}
		synctest.Wait()
		expect.Equal(t, w.page.OpenStreams(), 0, "streams are open:")
	})
}

func TestStreamsAreLimited(t *testing.T) {
	live(t, nil, func(t *testing.T, w *liveWorld) {
		tabs := make([]*tab, StreamsOfInvoice)
		for i := range tabs {
			tabs[i] = w.open()
		}
		if tab, status := w.openAs(testID, "127.0.0.1:9"); status != http.StatusTooManyRequests || tab.answer.Header().Get("Retry-After") != "60" {
			t.Errorf("beyond the invoice's limit: answered %d with %v", status, tab.answer.Header())
		}
		tabs[0].close()
		w.open()
	})
}

// TestStreamsAreShared opens the pages of one merchant from one client network, and then
// from many. Streams remain for others in both cases.
func TestStreamsAreShared(t *testing.T) {
	var refused []string
	c := newWorld().config()
	c.Feed, c.MaxStreams = newFeed(), 4*StreamsOfClient
	c.Refused = func(limit string) { refused = append(refused, limit) }
	p := New(c).open
	pages := 0
	open := func(merchant, client string) bool {
		id, networks := fmt.Sprint("inv_", pages), streamsFrom(from(client))
		pages++
		if _, err := p.join(id, networks); err != nil {
			return false
		}
		err := p.Charge(limits.AtMerchant(merchant, networks)...)
		if err != nil {
			p.leave(id, networks, nil)
		}
		return err == nil
	}
	fill := func(merchant string, clients ...string) (n int) {
		for _, client := range clients {
			for open(merchant, client) {
				n++
			}
		}
		return n
	}
	total := fill("acme", "203.0.113.7:1")
	expect.Equal(t, total, StreamsOfClient, "one client has … streams:")
	expect.Equal(t, strings.Join(refused, " "), "streams", "the refusals are counted as")
	total += fill("acme", hosts(100)...)
	if total != c.MaxStreams/2 || p.Count() != total {
		t.Errorf("one merchant's pages have %d streams of %d, want %d", total, p.Count(), c.MaxStreams/2)
	}
	if !open("globex", "203.0.113.7:1") == !open("globex", "192.0.2.1:1") {
		t.Error("the client that has its share gets more at another merchant, or another client gets none")
	}
	for m := range 100 {
		fill(fmt.Sprint("merchant", m), hosts(300)...)
	}
	expect.Equal(t, p.Count(), c.MaxStreams, "streams are open:")
	_, err := p.join("inv_x", nil)
	expect.Error(t, limits.ErrBusy, "beyond the limit of all")(err)
	expect.Equal(t, refused[len(refused)-1], "all_streams", "that is counted as")
}

func TestStreamsEndWithTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &liveWorld{world: newWorld(), t: t, feed: newFeed(), began: time.Now()}
		conf := w.config()
		conf.Reader, conf.Feed = w, w.feed
		w.page = New(conf)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			w.page.Run(ctx)
			close(done)
		}()
		w.open()
		stop()
		<-done
		synctest.Wait()
		expect.Equal(t, w.page.OpenStreams(), 0, "streams are open:")
		if _, status := w.openAs(testID, "127.0.0.1:9"); status != http.StatusServiceUnavailable {
			t.Errorf("a stopped service answers %d", status)
		}
	})
}

func TestNoStreamOfAnUnknownInvoice(t *testing.T) {
	live(t, nil, func(t *testing.T, w *liveWorld) {
		for _, id := range []string{"inv_none", "x", "inv_%00"} {
			if _, status := w.openAs(id, "127.0.0.1:9"); status != http.StatusNotFound {
				t.Errorf("%s: answered %d", id, status)
			}
		}
		expect.Equal(t, len(w.page.open.pages), 0, "pages are kept:")
	})
}
