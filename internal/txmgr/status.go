package txmgr

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

// Status is a writer's status, for health checks.
type Status struct {
	ChainKey          string
	Sender            common.Address // the account that pays for the gas
	Leader            bool           // this writer works; otherwise another writer has the lease
	Due               int64          // waiting intents, when they were last counted
	Elsewhere         int64          // intents for another registry than the configured one, at the same count
	InFlight          int            // transactions that were sent and are not mined
	Nonce             uint64         // of the next transaction, as of the last query
	Balance           *big.Int       // of Sender in wei, as last read; nil before
	Needed            *big.Int       // maximum cost of that transaction, in wei
	Spent             *big.Int       // cost of the last 24 hours' transactions in wei, as last added up; nil before
	Budget            *big.Int       // allowed cost of 24 hours in wei; nil before
	InsufficientFunds bool           // no transaction is sent until Sender has Needed
	Sweeps            SweepStatus    // as of the last count
	Err               string         // why the last round did not finish; empty if it did
	Since             time.Time      // time of the last change of Err, ignoring its figures
}

// SweepStatus is the status of the sweeps of deposits.
type SweepStatus struct {
	Queue   ledger.SweepCounts
	Waiting string // why the policy sweeps no queued deposit; empty without a reason
}

// Status returns the writer's status. It is safe for concurrent use.
func (w *Writer) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

func (w *Writer) update(change func(*Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.status)
}

// report records the outcome of a tick. An error that stays the same, ignoring its figures, is logged once.
func (w *Writer) report(err error) {
	text, met := "", blockerOf(err)
	if err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	before, waited := w.Status().Err, w.waits
	if text == before {
		return
	}
	w.waits = errors.Is(err, errFirstNonce)
	same := met != nil && errors.Is(met, w.reported)
	w.reported = met
	w.update(func(s *Status) {
		s.Err, s.InsufficientFunds = text, errors.Is(err, errInsufficientFunds)
		if !same {
			s.Since = w.conf.Now()
		}
	})
	if same {
		return
	}
	for _, o := range blockers {
		blocked := 0.0
		if errors.Is(err, o.err) {
			blocked = 1
		}
		w.conf.Metrics.blocked.WithLabelValues(w.conf.Chain.Key, o.reason).Set(blocked)
	}
	if errors.Is(err, errBudget) {
		w.conf.Logger.Error("daily budget is used up", "err", err)
		return
	}
	switch {
	case w.waits:
		w.conf.Logger.Info("transaction manager waits", "reason", err)
	case err != nil:
		w.conf.Logger.Warn("transaction manager failed, will retry", "err", err)
	case waited:
		w.conf.Logger.Info("transaction manager waits no longer")
	default:
		w.conf.Logger.Info("transaction manager succeeds again")
	}
}

// count counts the due items, every countEvery.
func (w *Writer) count(ctx context.Context) error {
	now := w.conf.Schedule()
	if now.Sub(w.countedAt) < countEvery {
		return nil
	}
	for _, k := range w.works {
		if err := k.count(ctx); err != nil {
			return err
		}
	}
	w.countedAt = now
	return nil
}

// Metrics are the measurements of all writers of a process.
type Metrics struct {
	due *prometheus.GaugeVec

	authorizations *prometheus.GaugeVec // number of due authorizations

	elsewhere *prometheus.GaugeVec
	balance   *prometheus.GaugeVec
	spent     *prometheus.GaugeVec
	budget    *prometheus.GaugeVec
	blocked   *prometheus.GaugeVec
	txs       *prometheus.CounterVec
	costs     *prometheus.CounterVec
	bumps     *prometheus.CounterVec
	sweeps    sweepMetrics
}

// sweepMetrics are the measurements of sweeps.
type sweepMetrics struct {
	queued  *prometheus.GaugeVec
	failing *prometheus.GaugeVec
	stalled *prometheus.GaugeVec
	results *prometheus.CounterVec
	amount  *prometheus.CounterVec
}

func newSweepMetrics() sweepMetrics {
	return sweepMetrics{
		queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_sweeps_queued", Help: "Deposits that are to be swept and that no transaction carries.",
		}, []string{"chain"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_sweeps_failing", Help: "Deposits that wait after a transaction that did not sweep them.",
		}, []string{"chain"}),
		stalled: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_sweeps_stalled_seconds", Help: "How long deposits that are due have not been swept.",
		}, []string{"chain"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_sweeps_total", Help: "Deposits in mined transactions of the writer, by result: swept or failed.",
		}, []string{"chain", "result"}),
		amount: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_swept_units_total", Help: "What mined transactions of the writer swept, in units of the currency.",
		}, []string{"chain", "currency"}),
	}
}

// begin exports 0 for what has not happened yet on a chain.
func (m *Metrics) begin(c chain.Chain) {
	for _, kind := range []TxKind{TxOpen, TxClose, TxSweep, TxAuthorization} {
		m.costs.WithLabelValues(c.Key, string(kind))
		for _, status := range []TxStatus{TxSent, TxMined, TxFailed} {
			m.txs.WithLabelValues(c.Key, string(kind), string(status))
		}
	}
	for _, b := range blockers {
		m.blocked.WithLabelValues(c.Key, b.reason)
	}
	for _, result := range []string{"swept", "failed"} {
		m.sweeps.results.WithLabelValues(c.Key, result)
	}
	for _, token := range c.Tokens {
		m.sweeps.amount.WithLabelValues(c.Key, token.Currency)
	}
	m.bumps.WithLabelValues(c.Key)
}

// NewMetrics returns metrics and registers them with reg, unless that is nil. Registering them twice panics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		due: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_writer_due_intents", Help: "Changes that the chain's registry has not been sent.",
		}, []string{"chain"}),
		authorizations: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_writer_due_authorizations", Help: "Payers' authorizations that were accepted and are to be sent.",
		}, []string{"chain"}),
		elsewhere: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_writer_other_registry_intents", Help: "Changes that another registry than the configured one was not sent.",
		}, []string{"chain"}),
		balance: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_writer_balance_wei", Help: "What the operator's account had for gas when the writer began to work or sent its last transaction.",
		}, []string{"chain"}),
		spent: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_writer_spent_wei", Help: "What the transactions of the last 24 hours cost.",
		}, []string{"chain"}),
		budget: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_writer_budget_wei", Help: "What the transactions of any 24 hours may cost.",
		}, []string{"chain"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_writer_blocked", Help: "1 while a kind of work is kept back, by the reason: funds, fees, budget, stuck or role.",
		}, []string{"chain", "reason"}),
		txs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_writer_transactions_total", Help: "Transactions by their kind (open, close, sweep or authorization) and by what became of them.",
		}, []string{"chain", "kind", "status"}),
		costs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_writer_cost_wei_total", Help: "What mined transactions cost, by their kind.",
		}, []string{"chain", "kind"}),
		sweeps: newSweepMetrics(),
		bumps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_writer_fee_bumps_total", Help: "Stuck transactions replaced by one with a higher fee.",
		}, []string{"chain"}),
	}
	if reg != nil {
		reg.MustRegister(m.due, m.authorizations, m.elsewhere, m.balance, m.spent, m.budget, m.blocked, m.txs, m.costs, m.bumps,
			m.sweeps.queued, m.sweeps.failing, m.sweeps.stalled, m.sweeps.results, m.sweeps.amount)
	}
	return m
}
