package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/chain"
)

// providerLabels name a node: by its place under the chain's rpc, from 1, since
// two may be of one host, and by its scheme and host.
var providerLabels = []string{"chain", "node", "provider"}

// What is measured of nodes.
var (
	providerState = prometheus.NewDesc("quittance_provider_state",
		"1 for the state that a chain's node is in, 0 for the others.", append(providerLabels, "state"), nil)
	providerHead = prometheus.NewDesc("quittance_provider_head",
		"Number of the newest block that a chain's node told of.", providerLabels, nil)
	providerCalls = prometheus.NewDesc("quittance_provider_calls_total",
		"Calls made of a chain's node, each of a batch counted.", providerLabels, nil)
	providerErrors = prometheus.NewDesc("quittance_provider_errors_total",
		"Requests to a chain's node that failed.", providerLabels, nil)
	providerLatency = prometheus.NewDesc("quittance_provider_latency_seconds",
		"How long a request to a chain's node takes of late.", providerLabels, nil)
)

// providerStates are all that a node can be in.
var providerStates = []chain.State{
	chain.StateOK, chain.StateUnknown, chain.StateLagging, chain.StateBackoff, chain.StateQuarantined, chain.StateMisconfigured,
}

// providerMetrics measures the nodes of all chains, when it is asked to.
type providerMetrics struct{ chains []*chainRun }

// Describe is prometheus.Collector's.
func (m providerMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{providerState, providerHead, providerCalls, providerErrors, providerLatency} {
		out <- d
	}
}

// Collect is prometheus.Collector's.
func (m providerMetrics) Collect(out chan<- prometheus.Metric) {
	for _, run := range m.chains {
		for i, h := range run.pool.Health() {
			labels := []string{run.Key, strconv.Itoa(i + 1), h.Node}
			tell := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
				out <- prometheus.MustNewConstMetric(d, kind, value, append(labels, more...)...)
			}
			for _, state := range providerStates {
				in := 0.0
				if h.State == state {
					in = 1
				}
				tell(providerState, prometheus.GaugeValue, in, string(state))
			}
			tell(providerHead, prometheus.GaugeValue, float64(h.Head))
			tell(providerCalls, prometheus.CounterValue, float64(h.Calls))
			tell(providerErrors, prometheus.CounterValue, float64(h.Errors))
			tell(providerLatency, prometheus.GaugeValue, h.Latency.Seconds())
		}
	}
}
