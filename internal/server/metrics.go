package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/watchdog"
)

// metrics are the numbers of the server itself; its parts add their own.
type metrics struct {
	duration *prometheus.HistogramVec

	connections    prometheus.Gauge
	evicted        prometheus.Counter
	acceptFailures prometheus.Counter
}

func newMetrics(reg *prometheus.Registry) *metrics {
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	register := promauto.With(reg)
	return &metrics{
		connections: register.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_http_connections",
			Help: "Connections of clients that are open.",
		}),
		evicted: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_http_idle_connections_closed_total",
			Help: "Idle connections of clients that were closed to make room for others.",
		}),
		acceptFailures: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_http_accept_failures_total",
			Help: "Connections of clients that could not be accepted.",
		}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "quittance_http_request_duration_seconds",
			Help:    "How long requests took, by route and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route", "status"}),
	}
}

// requests measures every request by the route of ServeMux that took it, or by
// none, so that the number of series is bounded.
func (m *metrics) requests(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now() // a duration needs the monotonic clock
		status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(status, r)
		_, route, found := strings.Cut(r.Pattern, " ")
		if !found {
			route = r.Pattern
		}
		m.duration.WithLabelValues(route, strconv.Itoa(status.status)).Observe(time.Since(begun).Seconds())
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader is http.ResponseWriter's.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer beneath.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// clockOffset measures by how much the schedule's clock is ahead of this
// machine's.
func clockOffset(c *clock.Clock) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_schedule_clock_offset_seconds",
		Help: "By how much the clock of the schedule of deliveries is ahead of this machine's, which may have been set.",
	}, func() float64 { return c.Offset().Seconds() })
}

// stalled measures work that makes no progress.
var stalled = prometheus.NewDesc("quittance_stalled_seconds",
	"How long work has made no progress, for each piece of work that has made none for a minute.", []string{"work"}, nil)

// stallMetrics measures what a watchdog knows, when it is asked to.
type stallMetrics struct{ dog *watchdog.Watchdog }

// Describe is prometheus.Collector's.
func (m stallMetrics) Describe(out chan<- *prometheus.Desc) { out <- stalled }

// Collect is prometheus.Collector's.
func (m stallMetrics) Collect(out chan<- prometheus.Metric) {
	longest := make(map[string]time.Duration) // several tasks may have one name
	for _, s := range m.dog.Stalled() {
		longest[s.Name] = max(longest[s.Name], s.For)
	}
	for name, d := range longest {
		out <- prometheus.MustNewConstMetric(stalled, prometheus.GaugeValue, d.Seconds(), name)
	}
}
