package server

import "github.com/prometheus/client_golang/prometheus"

// What is measured of chains besides what their rounds report.
var (
	chainRestarts = prometheus.NewDesc("quittance_chain_restarts_total",
		"How often reading a chain was begun anew, since it made no progress for a minute.", []string{"chain"}, nil)
	chainSkew = prometheus.NewDesc("quittance_chain_clock_skew_seconds",
		"How far this machine's clock is ahead of the time of a chain's new blocks.", []string{"chain"}, nil)
)

// chainMetrics measures the chains, when it is asked to.
type chainMetrics struct{ chains []*chainRun }

// Describe is prometheus.Collector's.
func (m chainMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- chainRestarts
	out <- chainSkew
}

// Collect is prometheus.Collector's.
func (m chainMetrics) Collect(out chan<- prometheus.Metric) {
	for _, run := range m.chains {
		st := run.watcher.Status()
		out <- prometheus.MustNewConstMetric(chainRestarts, prometheus.CounterValue, float64(st.Restarts), run.Key)
		if st.Skew != nil {
			out <- prometheus.MustNewConstMetric(chainSkew, prometheus.GaugeValue, st.Skew.Seconds(), run.Key)
		}
	}
}
