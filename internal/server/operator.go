package server

import (
	"cmp"
	"context"
	"math/big"
	"runtime"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// costDays is the number of days for which the operator sees the cost of transactions.
	costDays = 7
	// maxShownTxs bounds the transactions of a writer that the operator sees.
	maxShownTxs = 20
)

// operations is the operator's view of the service, and the operator's actions on it.
type operations struct {
	*ledger.Service
	server *Server
}

// VerifyAudit implements api.Operations.
func (o operations) VerifyAudit(ctx context.Context, heads ...access.Head) (access.Head, error) {
	return access.VerifyAudit(ctx, o.server.store, access.AuditSources{Signer: o.server.cfg.Keyring, Heads: heads})
}

// CountMerchant implements api.Operations.
func (o operations) CountMerchant(ctx context.Context, merchantID string, now time.Time) (api.MerchantCounts, error) {
	return api.CountMerchant(ctx, o.server.store, merchantID, now)
}

// ServiceStatus implements api.Operations.
func (o operations) ServiceStatus(ctx context.Context) (apitypes.ServiceStatus, error) {
	s := o.server
	h := s.health(ctx, false)
	out := apitypes.ServiceStatus{
		Version: s.cfg.Build.Version, Commit: s.cfg.Build.Commit, GoVersion: runtime.Version(), Database: s.store.Product(), DatabaseState: h.Database,
		Ready: h.Ready, Isolated: s.cfg.Isolated, Certificate: h.Certificate, Stalled: make([]apitypes.StalledWork, len(h.Stalled)), Limits: s.limitsInForce(), Chains: make([]apitypes.ChainStatus, len(s.chains)),
	}
	for i, stalled := range h.Stalled {
		out.Stalled[i] = apitypes.StalledWork{Work: stalled.Work, Seconds: stalled.Seconds}
	}
	var err error
	if out.SchemaVersion, out.KnownSchemaVersion, err = s.store.SchemaVersions(ctx); err != nil {
		return out, err
	}
	if out.Deliveries, err = s.deliveryQueues(ctx); err != nil {
		return out, err
	}
	if s.cfg.Isolated {
		copied, err := s.store.Recovery(ctx)
		if err != nil {
			return out, err
		}
		out.CopiedAt = copied.Since.Unix()
	}
	for i, run := range s.chains {
		if out.Chains[i], err = s.chainStatus(ctx, run); err != nil {
			return out, err
		}
	}
	return out, nil
}

// deliveryQueues returns the queues of waiting deliveries.
func (s *Server) deliveryQueues(ctx context.Context) (out apitypes.DeliveryQueues, err error) {
	queues, err := webhooks.NewReader(s.store).Queues(ctx)
	if err != nil {
		return out, err
	}
	out.Merchants = int64(len(queues))
	for _, q := range queues {
		if at := s.clock.Wall(q.Head).Unix(); out.DueAt == 0 || at < out.DueAt {
			out.DueAt = at
		}
	}
	counts, err := webhooks.NewReader(s.store).BreakerCounts(ctx)
	out.PausedEndpoints, out.GoneEndpoints = counts[webhooks.BreakerOpen], counts[webhooks.BreakerGone]
	return out, err
}

// limitsInForce returns the limits in the configuration.
func (s *Server) limitsInForce() []apitypes.LimitInForce {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	limits := []apitypes.LimitInForce{
		{Name: "owner", Value: int64(s.cfg.PerOwner), Unit: "requests/s"},
		{Name: "address", Value: int64(s.cfg.PerAddress), Unit: "requests/s"},
	}
	for _, door := range webpage.Doors {
		limits = append(limits, apitypes.LimitInForce{Name: "in flight, " + string(door), Value: maxInFlight[door], Unit: "requests"})
	}
	limits = append(limits,
		apitypes.LimitInForce{Name: "keep events", Value: seconds(s.cfg.KeepEvents), Unit: "s"},
		apitypes.LimitInForce{Name: "keep attempts", Value: seconds(s.cfg.KeepAttempts), Unit: "s"},
		apitypes.LimitInForce{Name: "delay of allowed addresses", Value: seconds(s.cfg.AllowListDelay), Unit: "s"})
	for _, c := range s.cfg.Chains {
		if c.OperatorKey != nil {
			limits = append(limits, apitypes.LimitInForce{Name: "transactions a day, " + c.Key, Value: int64(c.Limits.PerDayGwei), Unit: "gwei"})
		}
	}
	return limits
}

// nodeStatus returns the state of a node.
func nodeStatus(p admin.Provider) apitypes.NodeStatus {
	out := apitypes.NodeStatus{
		Node: p.Provider, State: string(p.State), Reason: p.Reason, Until: p.Until, Head: number(p.Head), LatencyMs: float32(p.LatencyMs), Calls: number(p.Calls), Errors: number(p.Errors),
		CallsPerDay: number(p.PerDay), CallsPerSecond: p.Pace, LeadingZeros: p.LeadingZeros,
		Health: p.Health, FailingSince: p.FailingSince, LastError: p.LastError, LastErrorAt: p.LastErrorAt,
	}
	for _, l := range p.Limits {
		out.Limits = append(out.Limits, apitypes.NodeLimit{Kind: string(l.Kind), Size: number(l.Size), Refused: number(l.Refused), At: l.At})
	}
	return out
}

// chainStatus returns the state of a chain.
func (s *Server) chainStatus(ctx context.Context, run *chainWorkers) (apitypes.ChainStatus, error) {
	st := run.status(s.cfg.Now())
	out := apitypes.ChainStatus{
		ChainKey: st.ChainKey, ChainID: number(st.ChainID), Finality: st.Finality, Quorum: st.Quorum, Ready: st.Ready, Head: number(st.Head), Indexed: number(st.Indexed),
		Confirmed: number(st.Confirmed), LagBlocks: number(st.Lag.Blocks), LagSeconds: st.Lag.Seconds, CatchUp: blockProgress(st.CatchUp), Backfill: blockProgress(st.Backfill),
		Halted: st.Halted, Error: st.Error, Nodes: make([]apitypes.NodeStatus, len(st.Providers)),
	}
	if st.Skewed {
		out.ClockSkewSeconds = *st.SkewSeconds
	}
	for i, p := range st.Providers {
		out.Nodes[i] = nodeStatus(p)
	}
	if st.Writer == nil {
		return out, nil
	}
	var err error
	out.Writer, err = s.writerDetails(ctx, run, st.Writer)
	return out, err
}

// writerDetails returns the state of a chain's writer, with its transactions and their cost.
func (s *Server) writerDetails(ctx context.Context, run *chainWorkers, w *admin.Writer) (*apitypes.WriterStatus, error) {
	out := &apitypes.WriterStatus{
		Account: w.Account, Working: w.Working, Due: w.Due, Elsewhere: w.Elsewhere, InFlight: w.InFlight, NextNonce: number(w.NextNonce),
		Balance: weiText(w.Balance), Needed: weiText(w.Needed), Spent: weiText(w.Spent), Budget: weiText(w.Budget), Error: w.Error, Since: w.Since,
		Costs: []apitypes.WriterCost{}, Transactions: []apitypes.WriterTransaction{},
	}
	if w.Sweeps != nil {
		out.SweepsQueued, out.SweepsFailing = w.Sweeps.Queued, w.Sweeps.Failing
	}
	today := s.cfg.Now().UTC().Truncate(24 * time.Hour)
	costs, err := txmgr.DailyCosts(ctx, s.store, run.Key, today.AddDate(0, 0, 1-costDays))
	if err != nil {
		return nil, err
	}
	for _, c := range costs {
		out.Costs = append(out.Costs, apitypes.WriterCost{Date: clock.Format(c.Day, time.UTC, time.DateOnly), Gwei: big.NewInt(c.Gwei).String()})
	}
	txs, err := txmgr.UnsettledTxs(ctx, s.store, run.Key)
	if err != nil {
		return nil, err
	}
	for _, tx := range txs[:min(len(txs), maxShownTxs)] {
		out.Transactions = append(out.Transactions, apitypes.WriterTransaction{
			Nonce: number(tx.Nonce), Kind: kindName(tx.Kind), TxHash: tx.Attempts[len(tx.Attempts)-1].TxHash.String(), Attempts: len(tx.Attempts), CreatedAt: tx.CreatedAt.Unix(),
		})
	}
	return out, nil
}

// kindName returns the name of a kind of transactions in the interface.
func kindName(kind txmgr.TxKind) string {
	names := map[txmgr.TxKind]string{txmgr.TxOpen: "commitment.open", txmgr.TxClose: "commitment.close"}
	return cmp.Or(names[kind], string(kind))
}

// blockProgress returns the progress in a range of blocks, or nil.
func blockProgress(p *admin.Progress) *apitypes.BlockProgress {
	if p == nil {
		return nil
	}
	return &apitypes.BlockProgress{From: number(p.From), To: number(p.To), Next: number(p.Next), Percent: float32(p.Percent), SecondsLeft: p.SecondsLeft}
}

// number returns a number of a chain, which is far below the bound.
func number(n uint64) int64 { return int64(n) }

// weiText returns an amount of wei, or "" if it is not known.
func weiText(n *big.Int) string {
	if n == nil {
		return ""
	}
	return n.String()
}
