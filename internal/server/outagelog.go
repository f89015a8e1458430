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

// outageHandler is a slog.Handler that logs messages about a database outage at most once per
// outageInterval, because many workers and requests meet one outage many times a second.
type outageHandler struct {
	slog.Handler
	outages *outages // shared by all handlers made from one
}

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

// limitOutageLogs returns a logger that writes to logger through an outageHandler.
func limitOutageLogs(logger *slog.Logger) *slog.Logger {
	return slog.New(outageHandler{logger.Handler(), &outages{last: make(map[string]*outage)}})
}

// Handle implements slog.Handler.
func (h outageHandler) Handle(ctx context.Context, r slog.Record) error {
	if !hasOutage(r) {
		return h.Handler.Handle(ctx, r)
	}
	omitted, ok := h.outages.allow(r.Message, r.Time)
	if !ok {
		return nil
	}
	if omitted > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("omitted", omitted))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h outageHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return outageHandler{h.Handler.WithAttrs(attrs), h.outages}
}

// WithGroup implements slog.Handler.
func (h outageHandler) WithGroup(name string) slog.Handler {
	return outageHandler{h.Handler.WithGroup(name), h.outages}
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
