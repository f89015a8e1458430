package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// outageInterval is how often a message about a database outage is logged at most.
const outageInterval = time.Minute

// outages holds when each message was logged last. The messages are constants, so
// the map is bounded.
type outages struct {
	mu   sync.Mutex
	last map[string]*outage
}

type outage struct {
	at      time.Time
	omitted int // since then
}

// limitOutageLogs returns a logger that writes messages about a database outage at most once per outageInterval, because
// many workers and requests meet one outage many times a second.
func limitOutageLogs(logger *slog.Logger) *slog.Logger {
	return slog.New(logFilter{logger.Handler(), (&outages{last: make(map[string]*outage)}).filter})
}

// logFilter is a slog.Handler that changes records, or drops them.
type logFilter struct {
	slog.Handler
	filter func(context.Context, slog.Record) (_ slog.Record, keep bool)
}

// Handle implements slog.Handler.
func (h logFilter) Handle(ctx context.Context, r slog.Record) error {
	if r, keep := h.filter(ctx, r); keep {
		return h.Handler.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h logFilter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logFilter{h.Handler.WithAttrs(attrs), h.filter}
}

// WithGroup implements slog.Handler.
func (h logFilter) WithGroup(name string) slog.Handler {
	return logFilter{h.Handler.WithGroup(name), h.filter}
}

// filter drops a record about an outage if its message was logged shortly before. The next one names how many were
// dropped.
func (o *outages) filter(_ context.Context, r slog.Record) (_ slog.Record, keep bool) {
	if !hasOutage(r) {
		return r, true
	}
	omitted, ok := o.allow(r.Message, r.Time)
	if omitted > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("omitted", omitted))
	}
	return r, ok
}

// hasOutage reports whether an attribute of r is an outage error.
func hasOutage(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Value.Kind() != slog.KindAny { // Any would allocate
			return true
		}
		err, ok := a.Value.Any().(error)
		found = ok && db.Unavailable(err)
		return !found
	})
	return found
}

// allow reports whether a message is logged, and how many equal ones were omitted
// before it.
func (o *outages) allow(message string, at time.Time) (omitted int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := o.last[message]
	if last == nil {
		last = new(outage)
		o.last[message] = last
	} else if since := at.Sub(last.at); since >= 0 && since < outageInterval {
		last.omitted++
		return 0, false
	}
	omitted = last.omitted
	last.at, last.omitted = at, 0
	return omitted, true
}
