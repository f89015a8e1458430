package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// healthTimeout bounds what a health check waits for the database.
const healthTimeout = 2 * time.Second

// stallLimit is how long a chain may go without a round of reading that went
// well before the service calls itself not ready.
const stallLimit = time.Minute

// chainHealth is a chain as /readyz shows it.
type chainHealth struct {
	ChainKey  string `json:"chainKey"`
	Ready     bool   `json:"ready"`
	Head      uint64 `json:"head"`
	Indexed   uint64 `json:"indexed"`
	Confirmed uint64 `json:"confirmed"`
	Error     string `json:"error,omitempty"`
	Writer    string `json:"writer,omitempty"` // what keeps the on-chain writer from its work
}

// health is the body of /readyz.
type health struct {
	Ready    bool          `json:"ready"`
	Database string        `json:"database"`
	Chains   []chainHealth `json:"chains"`
}

// live answers /healthz: the process serves requests.
func live(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // an error means that the caller has gone
}

// ready answers /readyz: the database answers and every chain is read. It
// says what is wrong, and answers 503 when something is.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	h := health{Ready: true, Database: "ok"}
	if err := s.store.Ping(ctx); err != nil {
		h.Ready, h.Database = false, "unreachable"
		s.Logger.Error("health check: the database does not answer", "err", err)
	}
	for _, run := range s.chains {
		c := run.health(s.Now())
		h.Ready = h.Ready && c.Ready
		h.Chains = append(h.Chains, c)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !h.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		s.Logger.Debug("health check: the caller has gone", "err", err)
	}
}
