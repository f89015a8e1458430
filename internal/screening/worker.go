package screening

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// MaxInFlight bounds the calls of the hook at a time: all payments of a lease.
	MaxInFlight = ledger.ScreeningBatch
	// pollInterval is how often waiting payments are read, and offInterval how often if the service screens none.
	pollInterval, offInterval = time.Second, 10 * time.Minute
	// slowFactor is how many times the patience a payment waits if no call about it fails.
	slowFactor = 2
)

// ReasonTurnedOff is the reason why payments are accepted that wait when the screening is turned off.
const ReasonTurnedOff = "screening was turned off"

// Config is the configuration of a Worker. All fields are required, except Hook.
type Config struct {
	Ledger   *ledger.Service
	Hook     *Hook             // nil accepts what waits since the hook was configured
	Patience time.Duration     // how long a payment waits for a verdict while the hook fails
	Fallback invoice.Screening // of a payment without a verdict: accepted or quarantined
	Schedule func() time.Time  // clock of the patience
	Metrics  *Metrics
	Logger   *slog.Logger
}

// Metrics are a worker's metrics.
type Metrics struct {
	waiting  prometheus.Gauge
	verdicts *prometheus.CounterVec
	failures prometheus.Counter
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		waiting: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
			Name: "quittance_screening_waiting",
			Help: "Payments that wait for a verdict of the screening hook, when a replica last looked.",
		}),
		verdicts: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_screening_verdicts_total",
			Help: "Verdicts about payments, by the verdict: accepted, quarantined, or no_answer, after which the mode decides.",
		}, []string{"verdict"}),
		failures: promauto.With(reg).NewCounter(prometheus.CounterOpts{
			Name: "quittance_screening_failures_total",
			Help: "Calls of the screening hook without a valid answer. They are repeated.",
		}),
	}
	for _, verdict := range []string{string(invoice.ScreeningAccepted), string(invoice.ScreeningQuarantined), noAnswer} {
		m.verdicts.WithLabelValues(verdict) // export 0 before the first one
	}
	return m
}

const noAnswer = "no_answer"

// Worker asks the hook about waiting payments, and records its verdicts.
type Worker struct {
	conf  Config
	lease func(context.Context) (due []ledger.PaymentRow, waiting int64, err error)
	// began is since when it works without an error of the database. No payment waits for the hook since earlier.
	began time.Time
	down  bool // no call of the last round had a valid answer
}

// New returns a Worker.
func New(c Config) *Worker {
	return &Worker{conf: c, lease: c.Ledger.LeaseScreenings, began: c.Schedule()}
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	for {
		more, err := w.round(ctx)
		if err != nil && ctx.Err() == nil {
			w.conf.Logger.Error("screening of payments failed, will retry", "err", err)
		}
		pause := pollInterval
		if w.conf.Hook == nil && err == nil {
			pause = offInterval
		}
		if (!more || err != nil) && !clock.Sleep(ctx, pause, nil) || ctx.Err() != nil {
			return
		}
	}
}

// round asks about payments that are due, and decides about those without a verdict. more reports whether some may be
// left, and the hook answers.
func (w *Worker) round(ctx context.Context) (more bool, err error) {
	if w.conf.Hook == nil {
		return w.end(ctx, -time.Minute, invoice.ScreeningAccepted, ReasonTurnedOff)
	}
	due, waiting, err := w.lease(ctx)
	w.conf.Metrics.waiting.Set(float64(waiting))
	if err != nil {
		w.began = w.conf.Schedule()
		return false, err
	}
	if waiting == 0 {
		return false, nil
	}
	more, err = w.screen(ctx, due)
	// A payment about which the hook was not asked in time; screen decides about one of which a call failed.
	longer := slowFactor * w.conf.Patience
	if ctx.Err() != nil || w.conf.Schedule().Sub(w.began) <= longer {
		return more, err
	}
	left, ended := w.end(ctx, longer, w.conf.Fallback, invoice.ReasonNoAnswer)
	return more || left, errors.Join(err, ended)
}

// screen asks the hook about payments, and records the verdicts. If the call about a payment fails, the mode decides
// once the patience is over. answered reports whether a call had a valid answer.
func (w *Worker) screen(ctx context.Context, due []ledger.PaymentRow) (answered bool, err error) {
	type answer struct {
		verdict invoice.Screening
		reason  string
		err     error
	}
	answers := make([]answer, len(due))
	var group sync.WaitGroup
	for i, p := range due { // not more than MaxInFlight
		group.Go(func() {
			a := &answers[i]
			a.verdict, a.reason, a.err = w.conf.Hook.ask(ctx, p)
		})
	}
	group.Wait()
	if ctx.Err() != nil || len(due) == 0 {
		return false, ctx.Err() // the service stops
	}
	var failed []error
	var verdicts, without []ledger.Verdict
	for i, a := range answers {
		if a.err == nil {
			verdicts = append(verdicts, ledger.Verdict{Payment: due[i], To: a.verdict, Reason: a.reason})
			continue
		}
		failed = append(failed, a.err)
		w.conf.Metrics.failures.Inc()
		if w.hasWaited(due[i]) >= w.conf.Patience {
			without = append(without, ledger.Verdict{Payment: due[i], To: w.conf.Fallback, Reason: invoice.ReasonNoAnswer})
		}
	}
	answered = len(failed) < len(due)
	w.report(!answered, failed)
	return answered, errors.Join(w.record(ctx, verdicts, ""), w.record(ctx, without, noAnswer))
}

// report logs failures of the hook, while none of its calls succeeds only the first ones.
func (w *Worker) report(down bool, failed []error) {
	if len(failed) > 0 && !(down && w.down) {
		w.conf.Logger.Warn("screening hook failed, will retry", "calls", len(failed), "down", down, "err", failed[0])
	}
	if w.down && !down {
		w.conf.Logger.Info("screening hook answers again")
	}
	w.down = down
}

// hasWaited returns how long a payment has waited while the service worked.
func (w *Worker) hasWaited(p ledger.PaymentRow) time.Duration {
	since := p.ScreeningSince
	if since.Before(w.began) {
		since = w.began
	}
	return w.conf.Schedule().Sub(since)
}

// end records a verdict about payments that have waited longer than a time. more reports whether some may be left.
func (w *Worker) end(ctx context.Context, longer time.Duration, verdict invoice.Screening, reason string) (more bool, err error) {
	overdue, err := w.conf.Ledger.OverdueScreenings(ctx, w.conf.Schedule().Add(-longer))
	var verdicts []ledger.Verdict
	for _, p := range overdue {
		verdicts = append(verdicts, ledger.Verdict{Payment: p, To: verdict, Reason: reason})
	}
	return len(overdue) > 0, errors.Join(err, w.record(ctx, verdicts, noAnswer))
}

// record records verdicts, all of a chain in one transaction and in the chain's order, which costs the ledger least. If that
// fails, it records each in a separate transaction. counted is the verdict in the metrics, if it is not the verdict
// itself.
func (w *Worker) record(ctx context.Context, verdicts []ledger.Verdict, counted string) (err error) {
	chains := make(map[string][]ledger.Verdict)
	for _, v := range verdicts {
		chains[v.Payment.ChainKey] = append(chains[v.Payment.ChainKey], v)
	}
	for _, key := range slices.Sorted(maps.Keys(chains)) {
		all := chains[key]
		slices.SortFunc(all, func(a, b ledger.Verdict) int { return a.Payment.Compare(b.Payment.Position) })
		recorded, failed := w.conf.Ledger.Screen(ctx, key, all)
		if failed != nil && len(all) > 1 {
			failed = nil
			for i := range all {
				one, err := w.conf.Ledger.Screen(ctx, key, all[i:i+1])
				recorded, failed = append(recorded, one...), errors.Join(failed, err)
			}
		}
		err = errors.Join(err, failed)
		for _, v := range recorded {
			w.conf.Metrics.verdicts.WithLabelValues(cmp.Or(counted, string(v.To))).Inc()
		}
	}
	return err
}
