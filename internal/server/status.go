package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/indexer"
)

// status answers /status with the state of each chain, its nodes and its transaction
// manager. It makes no requests, so it answers during any outage.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	st := admin.Status{Chains: make([]admin.Chain, len(s.chains))}
	for i, run := range s.chains {
		st.Chains[i] = run.status(s.cfg.Now())
	}
	s.writeJSON(w, http.StatusOK, st)
}

// writeJSON answers with body as JSON.
func (s *Server) writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.cfg.Logger.Debug("write health response", "err", err)
	}
}

func (r *chainWorkers) status(now time.Time) admin.Chain {
	st := r.indexer.Status()
	out := admin.Chain{
		ChainKey: r.Key, ChainID: r.ID, Finality: r.Finality.String(), Quorum: max(1, r.Quorum),
		Reading: st.Reading, Head: st.Head, Indexed: st.Indexed, Confirmed: st.Confirmed, Lag: admin.LagOf(st.Head, st.Indexed, st.IndexedTime, now),
		CatchUp: progress(st.CatchUp), Backfill: progress(st.Backfill),
		Halted: st.Halted, Error: st.Error, Providers: admin.Providers(r.pool),
		Checks: admin.Checks(r.Chain, string(st.Blooms), string(st.Comparison)), Unread: st.Unread,
	}
	if a := st.Audit; a != nil {
		out.Audit = &admin.Audit{
			Next: a.Next, Behind: a.Behind, Older: a.Older,
			ByHeader: a.Counted.Header, ByReceipts: a.Counted.Receipts, ByNode: a.Counted.Node, Unverified: a.Counted.Unverified,
		}
	}
	if st.Skew != nil {
		seconds := int64(st.Skew.Round(time.Second) / time.Second)
		out.SkewSeconds, out.Skewed = &seconds, st.Skewed
	}
	// A chain without a successful sync is not ready.
	out.Ready = st.Halted == "" && !st.Succeeded.IsZero() && now.Sub(st.Succeeded) <= stallLimit
	if r.writer != nil {
		out.Writer = r.writerStatus() // payments do not depend on it, so it does not affect Ready
	}
	return out
}

func (r *chainWorkers) writerStatus() *admin.Writer {
	st := r.writer.Status()
	out := &admin.Writer{
		Account: st.Sender.Hex(), Working: st.Leader, Due: st.Due, Elsewhere: st.Elsewhere, InFlight: st.InFlight,
		NextNonce: st.Nonce, Balance: st.Balance, Needed: st.Needed, Spent: st.Spent, Budget: st.Budget, Error: st.Err,
	}
	if st.Err != "" {
		out.Since = st.Since.Unix()
	}
	if !r.DepositFactory.IsZero() {
		n := st.Sweeps.Queue
		out.Sweeps = &admin.Sweeps{Policy: string(r.Sweep.Time()), Queued: n.Waiting, InFlight: n.InFlight, Failing: n.Failing, Waiting: st.Sweeps.Waiting}
	}
	return out
}

func progress(p *indexer.Progress) *admin.Progress {
	if p == nil {
		return nil
	}
	out := admin.NewProgress(p.From, p.To, p.At, p.BlocksPerSecond)
	out.SecondsLeft = int64(p.Left.Round(time.Second) / time.Second)
	return out
}
