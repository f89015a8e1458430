package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

const (
	// refusedLogInterval is how often refused keys are logged.
	refusedLogInterval = time.Second
	// maxRefusedClients bounds the clients that are logged at a time, each with a line.
	maxRefusedClients = 1000
)

// refusal is the common part of the log lines of refused keys.
type refusal struct{ limit, client string }

// refusedLog logs requests that were answered 429 because of their key: one line for each client
// address, limit and interval, with their number. A line for each would cost more than the refusal.
type refusedLog struct {
	logger *slog.Logger

	mu     sync.Mutex
	counts map[refusal]int
}

// add counts a request.
func (l *refusedLog) add(r refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = make(map[refusal]int)
	}
	if l.counts[r] == 0 && len(l.counts) >= maxRefusedClients {
		r.client = "others"
	}
	l.counts[r]++
}

// flush logs what was counted since the last call.
func (l *refusedLog) flush(ctx context.Context) {
	l.mu.Lock()
	counts := l.counts
	l.counts = nil
	l.mu.Unlock()
	for r, n := range counts {
		l.logger.LogAttrs(ctx, slog.LevelInfo, "keys refused", slog.Int("requests", n), slog.Int("status", http.StatusTooManyRequests),
			slog.String("limit", r.limit), slog.String("client", r.client))
	}
}

// run logs at an interval until ctx ends, and then the rest.
func (l *refusedLog) run(ctx context.Context) error {
	defer l.flush(context.WithoutCancel(ctx))
	return every(ctx, refusedLogInterval, l.flush)
}
