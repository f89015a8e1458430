package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
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

// logger returns a log that is written into the trace.
func (t *trace) logger(place string) *slog.Logger {
	if t == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(traced{t, place}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// traced writes lines into a trace.
type traced struct {
	t     *trace
	place string
}

// Write writes a line.
func (w traced) Write(line []byte) (int, error) {
	w.t.say(w.place, "%s", bytes.TrimSpace(line))
	return len(line), nil
}
