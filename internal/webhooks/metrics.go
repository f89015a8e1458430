package webhooks

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are a worker's metrics.
type Metrics struct {
	attempts *prometheus.CounterVec
	duration prometheus.Histogram
	failed   prometheus.Counter
	inFlight *prometheus.GaugeVec
	breakers *prometheus.GaugeVec
	oldest   prometheus.Gauge
	stalled  prometheus.Counter
	putBack  prometheus.Counter
	waiting  prometheus.Gauge
}

// NewMetrics makes the metrics and registers them, unless the registerer is nil. It panics if they are registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	register := promauto.With(reg)
	return &Metrics{
		attempts: register.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_webhook_attempts_total",
			Help: "Attempts to deliver an event, by what became of the delivery: delivered, pending (to be tried again) or failed.",
		}, []string{"outcome"}),
		duration: register.NewHistogram(prometheus.HistogramOpts{
			Name:    "quittance_webhook_attempt_duration_seconds",
			Help:    "How long an attempt to deliver an event took.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		failed: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_webhook_failed_total",
			Help: "Deliveries that ran out of time, and can be sent again by hand.",
		}),
		inFlight: register.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_webhook_in_flight",
			Help: "Deliveries being attempted by this process: first attempts and retries.",
		}, []string{"lane"}),
		breakers: register.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_webhook_endpoints",
			Help: "Endpoints that something was sent to, by the state of their breaker: closed, and with events that wait open (left alone after failures) or gone (answered 410).",
		}, []string{"breaker"}),
		waiting: register.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_webhook_waiting_merchants",
			Help: "Merchants whose events wait, since this process knows no endpoint of theirs.",
		}),
		putBack: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_webhook_put_back_total",
			Help: "Deliveries put back without an attempt, since this process had run out of a resource such as file descriptors, or had not run for a while.",
		}),
		stalled: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_webhook_stalled_total",
			Help: "Attempts that made no progress for a minute, so that their slots went to others.",
		}),
		oldest: register.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_webhook_oldest_due_seconds",
			Help: "How long the delivery that waits longest has been due, 0 when none is. Those whose endpoint is left alone do not count.",
		}),
	}
}

func (m *Metrics) observeAttempt(outcome Status, took time.Duration) {
	m.attempts.WithLabelValues(string(outcome)).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *Metrics) observeBreakers(counts map[BreakerState]int64) {
	for state, n := range counts {
		m.breakers.WithLabelValues(string(state)).Set(float64(n))
	}
}
