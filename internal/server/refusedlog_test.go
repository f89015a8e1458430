package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestRefusedLog expects one line for each client and limit, not for each request.
func TestRefusedLog(t *testing.T) {
	s, log := newObserved(slog.LevelInfo)
	s.refused = &refusedLog{logger: s.cfg.Logger}
	g := newGuessed()
	h := s.observeRequests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := g.auth.Authenticate(r.Context(), r.Header.Get("Authorization")); err != nil {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	ask := func(client, key string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil)
		r.RemoteAddr = client + ":1234"
		r.Header.Set("Authorization", key)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	for range maxLookups + 7 {
		ask(guesser, g.newKey(t, false))
	}
	if n := len(logLines(t, log)); n != maxLookups {
		t.Errorf("%d lines of requests before the limit, want %d", n, maxLookups)
	}
	before := len(logLines(t, log))
	for range 3 {
		s.refused.flush(t.Context())
	}
	lines := logLines(t, log)[before:]
	if len(lines) != 1 || lines[0]["msg"] != "keys refused" || lines[0]["client"] != guesser || lines[0]["limit"] != "lookup" || lines[0]["requests"] != 7.0 || lines[0]["status"] != 429.0 {
		t.Errorf("refused keys are logged as %v", lines)
	}
	ask(guesser, g.newKey(t, true))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.refused.run(ctx); err != nil || len(logLines(t, log)) != before+2 {
		t.Errorf("at the end, %v and the lines %v", err, logLines(t, log)[before:])
	}
}

// TestRefusedLogIsBounded refuses keys from more clients than are logged.
func TestRefusedLogIsBounded(t *testing.T) {
	s, log := newObserved(slog.LevelInfo)
	l := &refusedLog{logger: s.cfg.Logger}
	for i := range maxRefusedClients + 5 {
		l.add(refusal{"lookup", fmt.Sprint("client ", i)})
	}
	l.flush(t.Context())
	lines, requests := logLines(t, log), 0.0
	for _, line := range lines {
		requests += line["requests"].(float64)
	}
	if len(lines) != maxRefusedClients+1 || requests != maxRefusedClients+5 {
		t.Errorf("%d lines of %v requests", len(lines), requests)
	}
}
