package screening

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// MaxInFlight bounds the calls of the hook at a time. A lease has no more payments.
	MaxInFlight = 8
	// pollInterval is how often waiting payments are read, and offInterval how often if the service screens none.
	pollInterval, offInterval = time.Second, 10 * time.Minute
	// slowFactor is how many times the patience a payment waits for a hook that answers about others.
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
	conf    Config
	failing atomic.Bool // the last call had no valid answer
}

// New returns a Worker.
func New(c Config) *Worker { return &Worker{conf: c} }

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	pause := pollInterval
	if w.conf.Hook == nil {
		pause = offInterval
	}
	for {
		more, err := w.round(ctx)
		if err != nil && ctx.Err() == nil {
			w.conf.Logger.Error("screening of payments failed, will retry", "err", err)
		}
		if (!more || err != nil) && !clock.Sleep(ctx, pause, nil) || ctx.Err() != nil {
			return
		}
	}
}

// round decides about payments without a verdict, and asks about those that are due. more reports whether some may be
// left.
func (w *Worker) round(ctx context.Context) (more bool, err error) {
	if w.conf.Hook == nil {
		return w.end(ctx, -time.Minute, invoice.ScreeningAccepted, ReasonTurnedOff)
	}
	due, waiting, err := w.conf.Ledger.LeaseScreenings(ctx)
	w.conf.Metrics.waiting.Set(float64(waiting))
	if err != nil || waiting == 0 {
		return false, err
	}
	var group errgroup.Group
	group.SetLimit(MaxInFlight)
	for _, p := range due {
		group.Go(func() error { return w.screen(ctx, p) })
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	patience := w.conf.Patience
	if !w.failing.Load() {
		patience *= slowFactor
	}
	more, err = w.end(ctx, patience, w.conf.Fallback, invoice.ReasonNoAnswer)
	return more || len(due) > 0, err
}

// screen asks the hook about a payment, and records the verdict. Without a valid answer, the mode decides once the
// patience is over.
func (w *Worker) screen(ctx context.Context, p ledger.PaymentRow) error {
	verdict, reason, err := w.conf.Hook.ask(ctx, p)
	if ctx.Err() != nil {
		return ctx.Err() // the service stops
	}
	w.failing.Store(err != nil)
	if err == nil {
		return w.record(ctx, p, verdict, reason, string(verdict))
	}
	w.conf.Metrics.failures.Inc()
	w.conf.Logger.Warn("screening hook failed, will retry", "payment", p.ID, "err", err)
	if w.conf.Schedule().Sub(p.ScreeningSince) < w.conf.Patience {
		return nil
	}
	return w.record(ctx, p, w.conf.Fallback, invoice.ReasonNoAnswer, noAnswer)
}

// end records a verdict about payments that have waited longer than a time. more reports whether some may be left.
func (w *Worker) end(ctx context.Context, longer time.Duration, verdict invoice.Screening, reason string) (more bool, err error) {
	overdue, err := w.conf.Ledger.OverdueScreenings(ctx, w.conf.Schedule().Add(-longer))
	for _, p := range overdue {
		if err == nil {
			err = w.record(ctx, p, verdict, reason, noAnswer)
		}
	}
	return len(overdue) > 0, err
}

// record ends the screening of a payment, unless the payment has changed.
func (w *Worker) record(ctx context.Context, p ledger.PaymentRow, verdict invoice.Screening, reason, counted string) error {
	ok, err := w.conf.Ledger.Screen(ctx, p, verdict, reason)
	if ok {
		w.conf.Metrics.verdicts.WithLabelValues(counted).Inc()
	}
	return err
}
