package server

import (
	"context"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/web/checkout"
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

// healthCollector collects the health of a service at each scrape.
type healthCollector struct {
	health func(context.Context, bool) health
}

// Describe implements prometheus.Collector.
func (c healthCollector) Describe(out chan<- *prometheus.Desc) {
	out <- readyDesc
	out <- databaseUp
}

// Collect implements prometheus.Collector.
func (c healthCollector) Collect(out chan<- prometheus.Metric) {
	h := c.health(context.Background(), false)
	for desc, is := range map[*prometheus.Desc]bool{readyDesc: h.Ready, databaseUp: h.Database == databaseOK} {
		value := 0.0
		if is {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
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

// openStreams returns a collector of the streams of open checkout pages.
func openStreams(page *checkout.Checkout) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_checkout_streams",
		Help: "Open checkout pages that have a stream.",
	}, func() float64 { return float64(page.OpenStreams()) })
}

// createsWaiting returns a collector of the creates that wait for the database.
func createsWaiting(s *ledger.Service) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_creates_waiting",
		Help: "Invoices to be created that wait for a transaction of the database.",
	}, func() float64 { return float64(s.CreatesWaiting()) })
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
