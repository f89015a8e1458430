package server

import (
	"math"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
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

// freeSpace returns a collector of the free bytes on the disk of a SQLite database.
func freeSpace(path string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_database_free_bytes",
		Help: "What the disk of the SQLite database has left, in bytes. NaN where the system does not say.",
	}, func() float64 {
		n, err := db.FreeBytes(path)
		if err != nil {
			return math.NaN()
		}
		return float64(n)
	})
}

// clockOffset returns a collector of the schedule's clock offset.
func clockOffset(c *db.Clock) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_schedule_clock_offset_seconds",
		Help: "By how much the clock of the schedule of deliveries is ahead of this machine's, which may have been set.",
	}, func() float64 { return c.Offset().Seconds() })
}

// databaseRestored shows whether the process has evidence that its database was restored.
func (s *Server) databaseRestored() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_database_restored",
		Help: "1 once this process has found that its database was restored from a backup; it sends nothing out then.",
	}, func() float64 {
		if s.restored.Load() != nil {
			return 1
		}
		return 0
	})
}

var stalledSeconds = prometheus.NewDesc("quittance_stalled_seconds",
	"How long work has made no progress, for each piece of work that has made none for a minute.", []string{"work"}, nil)

// stallCollector collects how long the watchdog's stalled tasks have made no
// progress.
type stallCollector struct{ watchdog *clock.Watchdog }

// Describe implements prometheus.Collector.
func (m stallCollector) Describe(out chan<- *prometheus.Desc) { out <- stalledSeconds }

// Collect implements prometheus.Collector.
func (m stallCollector) Collect(out chan<- prometheus.Metric) {
	longest := make(map[string]time.Duration) // several tasks may have one name
	for _, s := range m.watchdog.Stalled() {
		longest[s.Name] = max(longest[s.Name], s.For)
	}
	for name, d := range longest {
		out <- prometheus.MustNewConstMetric(stalledSeconds, prometheus.GaugeValue, d.Seconds(), name)
	}
}
