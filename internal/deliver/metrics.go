package deliver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/store"
)

// Metrics are a worker's numbers.
type Metrics struct {
	attempts *prometheus.CounterVec
	duration prometheus.Histogram
	inFlight prometheus.Gauge
	oldest   prometheus.Gauge
}

// NewMetrics makes the metrics and registers them, unless the registerer is
// nil. It panics when they are registered already.
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
		inFlight: register.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_webhook_in_flight",
			Help: "Deliveries being attempted by this process.",
		}),
		oldest: register.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_webhook_oldest_due_seconds",
			Help: "How long the delivery that waits longest has been due, 0 when none is.",
		}),
	}
}

func (m *Metrics) observeAttempt(outcome store.DeliveryStatus, took time.Duration) {
	m.attempts.WithLabelValues(string(outcome)).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *Metrics) observeOldest(dueMS, nowMS int64) {
	if dueMS == 0 || dueMS > nowMS {
		dueMS = nowMS
	}
	m.oldest.Set((time.Duration(nowMS-dueMS) * time.Millisecond).Seconds())
}
