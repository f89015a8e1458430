package deliver_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/deliver"
)

// log is one of 1,200 events: 700 are old, of 500 of them the attempts are.
// It ends the sweep when the secrets' turn is over.
type log struct {
	calls  []string
	before []int64
	fail   error
	end    context.CancelFunc
}

func (l *log) sweep(what string, before, after, old int64, limit int) (int64, bool, error) {
	l.calls = append(l.calls, what)
	l.before = append(l.before, before)
	if l.fail != nil {
		return after, false, l.fail
	}
	done := min(after+int64(limit), old)
	return done, done < old, nil
}

func (l *log) SweepEvents(_ context.Context, before, after int64, limit int) (int64, bool, error) {
	defer func() {
		if l.fail != nil {
			l.end()
		}
	}()
	return l.sweep("events", before, after, 700, limit)
}

func (l *log) SweepAttempts(_ context.Context, before, after int64, limit int) (int64, bool, error) {
	return l.sweep("attempts", before, after, 500, limit)
}

func (l *log) DropRetiredSecrets(_ context.Context, now int64) (int64, error) {
	l.calls = append(l.calls, "secrets")
	l.before = append(l.before, now)
	l.end()
	return 0, nil
}

func TestSweeper(t *testing.T) {
	for name, c := range map[string]struct {
		fail error
		want []string
	}{
		"to the end":             {nil, []string{"events", "events", "attempts", "secrets"}},
		"the database is not up": {errors.New("not up"), []string{"events"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l := &log{fail: c.fail, end: cancel}
			s := deliver.Sweeper{
				Log: l, KeepEvents: 30 * time.Hour, KeepAttempts: 10 * time.Hour,
				Now: func() time.Time { return epoch }, Logger: slog.New(slog.DiscardHandler),
			}
			s.Run(ctx)
			if !slices.Equal(l.calls, c.want) {
				t.Errorf("swept %v, want %v", l.calls, c.want)
			}
			for i, what := range l.calls {
				age := map[string]time.Duration{"events": s.KeepEvents, "attempts": s.KeepAttempts}[what]
				if want := epoch.Add(-age).Unix(); l.before[i] != want {
					t.Errorf("%s from before %d, want %d", what, l.before[i], want)
				}
			}
		})
	}
}
