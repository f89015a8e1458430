package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/admin"
)

// healthTimeout bounds a health check's request to the database.
const healthTimeout = 2 * time.Second

// databaseOK is the state of a database that answers and takes writes.
const databaseOK = "ok"

// stallLimit is how long a chain may go without a successful sync before it is not
// ready.
const stallLimit = time.Minute

// chainHealth is a chain as /readyz shows it.
type chainHealth struct {
	ChainKey  string          `json:"chainKey"`
	Ready     bool            `json:"ready"`
	Head      uint64          `json:"head"`
	Indexed   uint64          `json:"indexed"`
	Confirmed uint64          `json:"confirmed"`
	Lag       uint64          `json:"lag"`               // blocks between the head and the newest one read
	CatchUp   *admin.Progress `json:"catchUp,omitempty"` // as in /status, like Backfill
	Backfill  *admin.Progress `json:"backfill,omitempty"`
	Error     string          `json:"error,omitempty"`
	// SkewSeconds is how far this machine's clock is ahead of the chain's new blocks,
	// if that exceeds the limit. It does not affect readiness.
	SkewSeconds int64  `json:"skewSeconds,omitempty"`
	Writer      string `json:"writer,omitempty"` // what blocks the transaction manager
}

func healthOf(c admin.Chain) chainHealth {
	h := chainHealth{
		ChainKey: c.ChainKey, Ready: c.Ready, Head: c.Head, Indexed: c.Indexed, Confirmed: c.Confirmed, Lag: c.Lag.Blocks,
		CatchUp: c.CatchUp, Backfill: c.Backfill, Error: cmp.Or(c.Halted, c.Error),
	}
	if c.Skewed {
		h.SkewSeconds = *c.SkewSeconds
	}
	if c.Writer != nil {
		h.Writer = c.Writer.Error
	}
	return h
}

// health is the body of /readyz.
type health struct {
	Ready    bool          `json:"ready"`
	Stopping bool          `json:"stopping,omitempty"`
	Database string        `json:"database"`
	Restored string        `json:"restored,omitempty"` // why the database counts as restored from a backup
	Chains   []chainHealth `json:"chains"`
	Stalled  []stalledWork `json:"stalled,omitempty"`
	Isolated bool          `json:"isolated,omitempty"` // this is a copy that sends nothing out
	// Certificate describes a problem of the TLS certificate. It does not affect readiness.
	Certificate string `json:"certificate,omitempty"`
	// Revision is why this replica does not work: others run a newer configuration.
	Revision string `json:"revision,omitempty"`
}

// hiddenReason replaces reasons for everybody except the operator: errors of nodes contain their
// addresses, and errors of the certificate contain paths.
const hiddenReason = "ask with a key of the operator for the reason"

// hideReasons replaces the reasons that may name nodes and files.
func (h *health) hideReasons() {
	reasons := []*string{&h.Certificate, &h.Restored}
	for i := range h.Chains {
		reasons = append(reasons, &h.Chains[i].Error, &h.Chains[i].Writer)
	}
	for _, reason := range reasons {
		if *reason != "" {
			*reason = hiddenReason
		}
	}
}

type detailsKey struct{}

// withDetails returns a handler that answers with the details that are for the operator.
func withDetails(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), detailsKey{}, true)))
	})
}

// stalledWork is a task without progress.
type stalledWork struct {
	Work    string `json:"work"`
	Seconds int64  `json:"seconds"` // since its last progress
	// Replaced is set if another task took the work over. Then the service can be ready.
	Replaced bool `json:"replaced,omitempty"`
}

// live answers /healthz with 200.
func live(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // it fails only if the client has disconnected
}

// ready answers /readyz. The service is ready if it is not stopping, the database
// accepts writes, every chain is indexed, and no work is stalled; otherwise ready
// answers 503. With ?exclude=chains the chains are reported but do not count: load
// balancers ask so, since the API needs no chain.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	h := s.health(r.Context(), slices.Contains(r.URL.Query()["exclude"], "chains"))
	if r.Context().Value(detailsKey{}) == nil {
		h.hideReasons()
	}
	status := http.StatusOK
	if !h.Ready {
		status = http.StatusServiceUnavailable
	}
	s.writeJSON(w, status, h)
}

// health checks the service. Without chains they are reported but do not count.
func (s *Server) health(ctx context.Context, withoutChains bool) health {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	stopping := s.stopping.Load()
	h := health{Ready: !stopping, Stopping: stopping, Database: databaseOK, Isolated: s.cfg.Isolated}
	if err := s.store.Ping(ctx); err != nil {
		h.Ready, h.Database = false, "unreachable"
		s.cfg.Logger.Error("health check of the database failed", "err", err)
	} else if s.clock.Err() != nil { // the clock logs it
		h.Ready, h.Database = false, "takes no writes"
	} else if err := s.store.CheckWritable(ctx); err != nil {
		h.Ready, h.Database = false, "takes no writes"
		s.cfg.Logger.Error("check of writes to the database failed", "err", err)
	}
	for _, run := range s.chains {
		c := healthOf(run.status(s.cfg.Now()))
		h.Ready = h.Ready && (c.Ready || withoutChains)
		h.Chains = append(h.Chains, c)
	}
	for _, stall := range s.watchdog.Stalled() {
		h.Ready = h.Ready && stall.Replaced
		h.Stalled = append(h.Stalled, stalledWork{stall.Name, int64(stall.For / time.Second), stall.Replaced})
	}
	if r := s.restored.Load(); r != nil {
		h.Ready, h.Restored = false, r.Reason
	}
	if stale := s.stale.Load(); stale != nil {
		h.Ready, h.Revision = false, stale.Error()
	}
	if s.certs != nil {
		h.Certificate = s.certs.Status().Problem
	}
	return h
}
