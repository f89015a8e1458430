package server

import "github.com/prometheus/client_golang/prometheus"

// What is measured of chains beside their rounds.
var chainRestarts = prometheus.NewDesc("quittance_chain_restarts_total",
	"How often reading a chain was begun anew, since it made no progress for a minute.", []string{"chain"}, nil)

// chainMetrics measures the chains, when it is asked to.
type chainMetrics struct{ chains []*chainRun }

// Describe is prometheus.Collector's.
func (m chainMetrics) Describe(out chan<- *prometheus.Desc) { out <- chainRestarts }

// Collect is prometheus.Collector's.
func (m chainMetrics) Collect(out chan<- prometheus.Metric) {
	for _, run := range m.chains {
		st := run.watcher.Status()
		out <- prometheus.MustNewConstMetric(chainRestarts, prometheus.CounterValue, float64(st.Restarts), run.Key)
	}
}
