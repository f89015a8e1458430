package webhooks_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// log is a fake event log with 700 old events, and old attempts of 500 events. It ends the cleaner after space was
// returned twice, which is the last step of a round.
type log struct {
	calls  []string
	spaces int
	before []time.Time
	fail   error
	end    context.CancelFunc
}

func (l *log) clean(what string, before time.Time, after, old int64, limit int) (int64, bool, error) {
	l.calls = append(l.calls, what)
	l.before = append(l.before, before)
	if l.fail != nil {
		return after, false, l.fail
	}
	done := min(after+int64(limit), old)
	return done, done < old, nil
}

func (l *log) CleanEvents(_ context.Context, before time.Time, after int64, limit int) (int64, bool, error) {
	defer func() {
		if l.fail != nil {
			l.end()
		}
	}()
	return l.clean("events", before, after, 700, limit)
}

func (l *log) CleanAttempts(_ context.Context, before time.Time, after int64, limit int) (int64, bool, error) {
	return l.clean("attempts", before, after, 500, limit)
}

func (l *log) MaintainPartitions(_ context.Context, _, before time.Time) (time.Time, error) {
	return before, nil
}

func (l *log) DropRetiredSecrets(_ context.Context, now time.Time) (int64, error) {
	l.calls = append(l.calls, "secrets")
	l.before = append(l.before, now)
	return 0, nil
}

func (l *log) ReturnSpace(context.Context, int) (more bool, err error) {
	l.calls = append(l.calls, "space")
	l.before = append(l.before, epoch)
	if l.spaces++; l.spaces == 2 {
		l.end()
	}
	return l.spaces < 2, nil
}

func TestCleaner(t *testing.T) {
	for name, c := range map[string]struct {
		fail error
		want []string
	}{
		"to the end":             {nil, []string{"events", "events", "attempts", "secrets", "space", "space"}},
		"the database is not up": {errors.New("not up"), []string{"events"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l := &log{fail: c.fail, end: cancel}
			conf := webhooks.CleanerConfig{
				Log: l, KeepEvents: 30 * time.Hour, KeepAttempts: 10 * time.Hour,
				Now: func() time.Time { return epoch }, Logger: slog.New(slog.DiscardHandler),
			}
			webhooks.NewCleaner(conf).Run(ctx)
			if !slices.Equal(l.calls, c.want) {
				t.Errorf("cleaned %v, want %v", l.calls, c.want)
			}
			for i, what := range l.calls {
				age := map[string]time.Duration{"events": conf.KeepEvents, "attempts": conf.KeepAttempts}[what]
				if want := epoch.Add(-age); !l.before[i].Equal(want) {
					t.Errorf("%s from before %v, want %v", what, l.before[i], want)
				}
			}
		})
	}
}

// rounds is a fake event log with old attempts of 1,200 events. It records where each round starts, and ends the
// cleaner after a number of rounds.
type rounds struct {
	log
	began []int64
	left  int
}

func (r *rounds) CleanAttempts(_ context.Context, _ time.Time, after int64, limit int) (int64, bool, error) {
	r.began = append(r.began, after)
	done := min(after+int64(limit), 1200)
	return done, done < 1200, nil
}

func (r *rounds) ReturnSpace(context.Context, int) (more bool, err error) {
	if r.left--; r.left == 0 {
		r.end()
	}
	return false, nil
}

// TestCleanerContinues checks that a round of the attempts continues where the last one ended, and that one round a day
// starts at the first event, because pending events may have finished.
func TestCleanerContinues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rounds{log: log{end: cancel}, left: 50}
		s := webhooks.NewCleaner(webhooks.CleanerConfig{Log: r, KeepEvents: 48 * time.Hour, KeepAttempts: 24 * time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		s.Run(ctx)
		var want []int64
		for i := range 50 { // one round an hour
			if i%24 == 0 {
				want = append(want, 0, 500, 1000)
			} else {
				want = append(want, 1200)
			}
		}
		expect.NoDiff(t, cmp.Diff(want, r.began), "the sweeps of the attempts began at")
	})
}

// backlog is a fake event log with batches that take a second. It ends the cleaner after a time.
type backlog struct {
	log

	began time.Time
	ends  []time.Duration // ends of the batches
}

func (b *backlog) CleanEvents(ctx context.Context, _ time.Time, after int64, limit int) (int64, bool, error) {
	clock.Sleep(ctx, time.Second, nil)
	if b.ends = append(b.ends, time.Since(b.began)); b.ends[len(b.ends)-1] >= 4*time.Hour {
		b.end()
	}
	return after + int64(limit), true, nil
}

// TestCleanerCatchesUp expects the cleaner to rest for less time the longer a round lasts.
func TestCleanerCatchesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &backlog{log: log{end: cancel}, began: time.Now()}
		webhooks.NewCleaner(webhooks.CleanerConfig{Log: b, KeepEvents: time.Hour, KeepAttempts: time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
		batches := make([]int, 4)
		for _, end := range b.ends[:len(b.ends)-1] {
			batches[end/time.Hour]++
		}
		for hour, want := range []int{3600 / 11, 3600 / 6, 3600 / 3, 3600 / 2} {
			if got := batches[hour]; got < want-1 || got > want+1 {
				t.Errorf("%d batches in hour %d of a round; want about %d", got, hour, want)
			}
		}
	})
}
