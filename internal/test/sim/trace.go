package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// trace writes what happens in a world, one line for each event: the simulated time, the place and what happened.
type trace struct {
	mu    sync.Mutex
	to    io.Writer
	began time.Time
}

func (t *trace) say(place, format string, args ...any) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.to, "%12s  %-14s %s\n", time.Since(t.began).Truncate(time.Millisecond), place, fmt.Sprintf(format, args...))
}

// handler is a slog.Handler that writes the service's log into the trace.
type handler struct {
	t     *trace
	place string
	attrs []slog.Attr
}

func (h handler) Enabled(context.Context, slog.Level) bool { return h.t != nil }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Level, r.Message)
	add := func(a slog.Attr) bool { fmt.Fprintf(&b, " %s=%v", a.Key, a.Value); return true }
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.t.say(h.place, "%s", b.String())
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return h
}

func (h handler) WithGroup(string) slog.Handler { return h }
