package server

import (
	"context"
	"math"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Build describes the program for metrics and traces.
type Build struct {
	Version string // tag, or a pseudo-version
	Commit  string // of git; empty if it is not known
}

// buildInfo returns a collector of the program's build.
func buildInfo(b Build) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "quittance_build_info",
		Help: "1, with the version and the commit of the program, and the version of Go that built it.",
	}, []string{"version", "commit", "goversion"})
	info.WithLabelValues(b.Version, b.Commit, runtime.Version()).Set(1)
	return info
}

// Metrics of the service's health.
var (
	readyDesc = prometheus.NewDesc("quittance_ready",
		"1 while the service is ready, as /readyz reports it.", nil, nil)
	databaseUp = prometheus.NewDesc("quittance_database_up",
		"1 while the database answers and takes writes.", nil, nil)
)

// collectHealth collects the health of the service.
func (s *Server) collectHealth(send sendValue) {
	h := s.health(context.Background(), false)
	send.state(readyDesc, h.Ready)
	send.state(databaseUp, h.Database == databaseOK)
}

// registerMetrics registers the metrics that are collected from the service's state.
func (s *Server) registerMetrics() {
	s.registry.MustRegister(collector(s.collectNodes), collector(s.collectChains), collector(s.collectStalls), collector(s.collectHealth),
		buildInfo(s.cfg.Build),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quittance_schedule_clock_offset_seconds",
			Help: "By how much the clock of the schedule of deliveries is ahead of this machine's, which may have been set.",
		}, func() float64 { return s.clock.Offset().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quittance_database_restored",
			Help: "1 once this process has found that its database was restored from a backup; it sends nothing out then.",
		}, func() float64 { return float64(db.Bit(s.restored.Load() != nil)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quittance_creates_waiting",
			Help: "Invoices to be created that wait for a transaction of the database.",
		}, func() float64 { return float64(s.settle.CreatesWaiting()) }))
	if path, ok := strings.CutPrefix(s.cfg.Database, "sqlite:"); ok {
		s.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quittance_database_free_bytes",
			Help: "What the disk of the SQLite database has left, in bytes. NaN where the system does not say.",
		}, func() float64 {
			n, err := db.FreeBytes(path)
			if err != nil {
				return math.NaN()
			}
			return float64(n)
		}))
	}
}

// countEvents returns a function that counts committed events and calls next with them.
func countEvents(reg prometheus.Registerer, next func([]webhooks.Event)) func([]webhooks.Event) {
	total := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_events_total",
		Help: "Events recorded, by their type: invoices created, paid and expired, and payments received and refunded.",
	}, []string{"type"})
	for _, typ := range invoice.EventTypes {
		total.WithLabelValues(string(typ)) // export 0 before the first one
	}
	return func(events []webhooks.Event) {
		for _, e := range events {
			if e.Seq != 0 { // it is new
				total.WithLabelValues(string(e.Type)).Inc()
			}
		}
		next(events)
	}
}

// countReads returns a function that counts the statements that a standby may run.
func countReads(reg prometheus.Registerer) func(server, reason string) {
	total := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_list_reads_total",
		Help: "Statements of lists that the database's standby may run, by the server that ran them and why.",
	}, []string{"server", "reason"})
	total.WithLabelValues("standby", "replayed") // export 0 before the first one
	return func(server, reason string) { total.WithLabelValues(server, reason).Inc() }
}
