package server

import (
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics of the HTTP server. Other components register their own.
type metrics struct {
	duration *prometheus.HistogramVec

	connections          prometheus.Gauge
	evicted, slowEvicted prometheus.Counter
	connectionsRefused   prometheus.Counter
	acceptFailures       prometheus.Counter
	refused              *prometheus.CounterVec
	unlogged             prometheus.Counter
}

func newMetrics(reg *prometheus.Registry) *metrics {
	cpu := collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/cpu/classes/(gc/total|idle|total):cpu-seconds$")}
	reg.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(cpu)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
		slowEvicted: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_http_slow_connections_closed_total",
			Help: "Connections of clients whose requests were slow to arrive that were closed to make room for others.",
		}),
		connectionsRefused: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_http_connections_refused_total",
			Help: "Connections that were closed at once because the client network had its share.",
		}),
		acceptFailures: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_http_accept_failures_total",
			Help: "Connections of clients that could not be accepted.",
		}),
		refused: register.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_http_refused_total",
			Help: "Requests that were refused by a limit, and wrong keys that were not looked up.",
		}, []string{"limit"}),
		unlogged: register.NewCounter(prometheus.CounterOpts{
			Name: "quittance_http_requests_not_logged_total",
			Help: "Requests that are missing in GET /api/requests, because there were too many or the database did not take them.",
		}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "quittance_http_request_duration_seconds",
			Help:    "How long requests took, by route and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"route", "status"}),
	}
}

var stalledSeconds = prometheus.NewDesc("quittance_stalled_seconds",
	"How long work has made no progress, for each piece of work that has made none for a minute.", []string{"work"}, nil)

// collectStalls collects how long the watchdog's stalled tasks have made no progress.
func (s *Server) collectStalls(send sendValue) {
	longest := make(map[string]time.Duration) // several tasks may have one name
	for _, stall := range s.watchdog.Stalled() {
		longest[stall.Name] = max(longest[stall.Name], stall.For)
	}
	for name, d := range longest {
		send.gauge(stalledSeconds, d.Seconds(), name)
	}
}
