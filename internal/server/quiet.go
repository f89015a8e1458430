package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/store"
)

// outageInterval is how often the log repeats a message about a database that is
// away or takes no work.
const outageInterval = time.Minute

// quietHandler passes on what is logged, but repeats a message whose error is an
// outage of the database at most every outageInterval. Many workers and
// requests meet the same outage many times a second.
type quietHandler struct {
	slog.Handler
	outages *outages // shared by all handlers made from one
}

// outages holds when each message was passed on last. The messages are
// constants, so it is bounded.
type outages struct {
	mu   sync.Mutex
	last map[string]*outage
}

type outage struct {
	at      time.Time
	omitted int // since then
}

// quieted returns a logger that passes on to logger as a quietHandler does.
func quieted(logger *slog.Logger) *slog.Logger {
	return slog.New(quietHandler{logger.Handler(), &outages{last: make(map[string]*outage)}})
}

// Handle is slog.Handler's.
func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	if !hasOutage(r) {
		return h.Handler.Handle(ctx, r)
	}
	omitted, pass := h.outages.pass(r.Message, r.Time)
	if !pass {
		return nil
	}
	if omitted > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("omitted", omitted))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs is slog.Handler's.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs), h.outages}
}

// WithGroup is slog.Handler's.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name), h.outages}
}

// hasOutage reports whether an attribute is an error of an outage.
func hasOutage(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		found = ok && store.Unavailable(err)
		return !found
	})
	return found
}

// pass reports whether a message is passed on, and how many like it were
// omitted before.
func (o *outages) pass(message string, at time.Time) (omitted int, pass bool) {
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
