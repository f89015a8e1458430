package webhooks_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// eventLog is a log in memory.
type eventLog struct {
	mu      sync.Mutex
	rows    []webhooks.EventRow
	changes int64  // entries of the audit log
	between func() // called before changes are listed
	reads   int    // calls of LastSeq
	err     error
}

func (l *eventLog) Changes(_ context.Context, after int64, limit int) (rows []access.ChangeRow, err error) {
	if l.between != nil {
		l.between()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for after++; after <= l.changes && len(rows) < limit; after++ {
		rows = append(rows, access.ChangeRow{Seq: after})
	}
	return rows, l.err
}

func (l *eventLog) AuditHead(context.Context) (access.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return access.Head{Seq: l.changes}, l.err
}

// change adds entries to the audit log.
func (l *eventLog) change(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes += n
}

// add appends events with bodies of a size.
func (l *eventLog) add(n, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.rows = append(l.rows, webhooks.EventRow{Event: webhooks.Event{Seq: int64(len(l.rows) + 1), Body: bytes.Repeat([]byte("x"), size)}})
	}
}

func (l *eventLog) Events(_ context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.rows[*f.After:]
	return rest[:min(len(rest), f.Limit)], l.err
}

func (l *eventLog) LastSeq(context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	return int64(len(l.rows)), l.err
}

// takeReads returns the number of reads since the last call.
func (l *eventLog) takeReads() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.reads
	l.reads = 0
	return n
}

func (l *eventLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// play runs fn in a synctest bubble with a feed of the log.
func play(t *testing.T, fn func(t *testing.T, l *eventLog, f *webhooks.Feed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &eventLog{}
		f := webhooks.NewFeed(webhooks.FeedConfig{Log: l, Watchdog: clock.New(0), Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.Run(ctx)
		}()
		fn(t, l, f)
		cancel()
		<-ended
	})
}

// next returns the numbers of the next events behind a position.
func next(t *testing.T, f *webhooks.Feed, after int64) (seqs []int64, through int64) {
	t.Helper()
	news, err := f.Next(t.Context(), webhooks.Position{Event: after})
	expect.OK(t, err)
	for _, e := range news.Events {
		seqs = append(seqs, e.Seq)
	}
	return seqs, news.Through.Event
}

// head returns the number of the newest event.
func head(t *testing.T, f *webhooks.Feed) int64 {
	t.Helper()
	p, err := f.Head(t.Context())
	expect.OK(t, err)
	return p.Event
}

// TestOrder has several readers follow a log that grows, partly without wake-ups. Each sees all events in order.
func TestOrder(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		l.add(3, 1)
		head := head(t, f)
		if head != 3 {
			t.Fatalf("Head returned %d", head)
		}
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				for after := head; after < 1003; {
					seqs, through := next(t, f, after)
					for _, seq := range seqs {
						if after++; seq != after {
							t.Errorf("event %d came after event %d", seq, after-1)
						}
					}
					if through != after {
						t.Errorf("through is %d after event %d", through, after)
					}
				}
			})
		}
		for i := range 100 {
			l.add(10, 1)
			if i%2 == 0 {
				f.Wake()
			}
			clock.Sleep(t.Context(), 10*time.Millisecond, nil)
		}
		group.Wait()
	})
}

// TestWakeIsQuick expects an event of this process immediately when it commits, and an event of another process at the
// next poll.
func TestWakeIsQuick(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		head := head(t, f)
		for _, woken := range []bool{true, false} {
			clock.Sleep(t.Context(), time.Second, nil) // no request waits
			begun := time.Now()
			time.AfterFunc(time.Millisecond, func() {
				l.add(1, 1)
				if woken {
					f.Wake()
				}
			})
			_, head = next(t, f, head)
			if took := time.Since(begun); woken && took > 50*time.Millisecond || took > time.Second {
				t.Errorf("took %v (woken: %v)", took, woken)
			}
		}
	})
}

// TestNoReaderNoRead expects no read of the log while no request waits, and few reads while many wait.
func TestNoReaderNoRead(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		for range 100 {
			l.add(1, 1)
			f.Wake()
			clock.Sleep(t.Context(), time.Second, nil)
		}
		expect.Equal(t, l.takeReads(), 0, "reads without a reader:")
		head := head(t, f)
		l.takeReads()
		var group sync.WaitGroup
		for range 200 {
			group.Go(func() {
				for range 20 { // as a stream does
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					expect.Error(t, context.DeadlineExceeded, "Next returned")(f.Next(ctx, webhooks.Position{Event: head}))
					cancel()
				}
			})
		}
		group.Wait()
		if n := l.takeReads(); n > 40 {
			t.Errorf("200 readers made %d reads in 10 seconds", n)
		}
	})
}

// TestBounds fills the feed beyond both limits: positions that it dropped return ErrBehind.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct{ events, size, kept int }{
		"events": {webhooks.MaxEvents + 10, 1, webhooks.MaxEvents},
		"bytes":  {20, webhooks.MaxBytes / 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
				if n := head(t, f); n != 0 {
					t.Fatal(n)
				}
				for _, n := range []int{c.events / 2, c.events} {
					l.add(n-len(l.rows), c.size)
					expect.Success(t)(f.Next(t.Context(), webhooks.Position{Event: int64(n - 1)}))
				}
				oldest := int64(c.events - c.kept)
				kept := 0
				for after := oldest; after < int64(c.events); {
					var seqs []int64
					seqs, after = next(t, f, after)
					kept += len(seqs)
				}
				expect.Equal(t, kept, c.kept, "events that are kept:")
				if news, err := f.Next(t.Context(), webhooks.Position{Event: oldest - 1}); !errors.Is(err, webhooks.ErrBehind) || news.Through.Event != int64(c.events) {
					t.Errorf("returned %+v, %v", news, err)
				}
			})
		})
	}
}

// TestFarBehind leaves more events unread than the feed keeps: the feed does not read them.
func TestFarBehind(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		head(t, f)
		l.add(webhooks.MaxEvents+1, 1)
		if news, err := f.Next(t.Context(), webhooks.Position{}); !errors.Is(err, webhooks.ErrBehind) || news.Through.Event != webhooks.MaxEvents+1 {
			t.Errorf("returned %+v, %v", news, err)
		}
	})
}

// TestErrors makes reads fail for a while.
func TestErrors(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		l.fail(errors.New("away"))
		time.AfterFunc(time.Minute, func() {
			l.add(1, 1)
			l.fail(nil)
		})
		expect.Equal(t, head(t, f), 1, "Head returned")
	})
}

// TestNextIsBounded has a reader fall behind by much more than one call of Next returns.
func TestNextIsBounded(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		head(t, f)
		l.add(200, 1000)
		l.add(1, 2*webhooks.MaxNext)
		l.add(1, 1)
		var got []int64
		for after := int64(0); after < 202; {
			news, err := f.Next(t.Context(), webhooks.Position{Event: after})
			expect.OK(t, err)
			bytes := 0
			for _, e := range news.Events {
				got, bytes = append(got, e.Seq), bytes+len(e.Body)
			}
			if bytes > webhooks.MaxNext && len(news.Events) > 1 {
				t.Errorf("returned %d bytes behind event %d", bytes, after)
			}
			after = news.Through.Event
		}
		for i, seq := range got {
			if seq != int64(i+1) {
				t.Fatalf("returned %v", got)
			}
		}
		expect.Len(t, got, 202, "returned events:")
	})
}

// TestChanges follows the audit log in addition to the events.
func TestChanges(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		l.change(7)
		at, err := f.Head(t.Context())
		if want := (webhooks.Position{Change: 7}); at != want || err != nil {
			t.Fatalf("Head returned %+v, %v", at, err)
		}
		l.add(1, 1)
		l.change(300)
		var changes []int64
		for at.Change < 307 {
			news, err := f.Next(t.Context(), at)
			expect.OK(t, err)
			for _, c := range news.Changes {
				changes = append(changes, c.Seq)
			}
			at = news.Through
		}
		if at.Event != 1 || len(changes) != 300 || changes[0] != 8 || changes[299] != 307 {
			t.Errorf("at %+v after %v", at, changes)
		}
		if news, err := f.Next(t.Context(), webhooks.Position{Event: 1, Change: 6}); !errors.Is(err, webhooks.ErrBehind) || news.Through.Change != 307 {
			t.Errorf("behind: %+v, %v", news, err)
		}
	})
}

// Records of one transaction in both logs are returned together.
func TestBothLogsAtOnce(t *testing.T) {
	play(t, func(t *testing.T, l *eventLog, f *webhooks.Feed) {
		after, err := f.Head(t.Context())
		expect.OK(t, err)
		l.between = synctest.Wait // the test continues if Next returns only the event
		l.add(1, 1)
		l.change(1)
		news, err := f.Next(t.Context(), after)
		if err != nil || len(news.Events) != 1 || len(news.Changes) != 1 {
			t.Errorf("the first news are %+v, %v, want an event and a change", news, err)
		}
	})
}
