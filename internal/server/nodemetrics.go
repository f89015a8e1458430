package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/chain"
)

// nodeLabels identify a node: by its position in the chain's rpc list, from 1,
// because two may share a host, and by its scheme and host.
var nodeLabels = []string{"chain", "node", "provider"}

// Metrics of nodes.
var (
	nodeState = prometheus.NewDesc("quittance_provider_state",
		"1 for the state that a chain's node is in, 0 for the others.", append(nodeLabels, "state"), nil)
	nodeHead = prometheus.NewDesc("quittance_provider_head",
		"Number of the newest block that a chain's node has reported.", nodeLabels, nil)
	nodeCalls = prometheus.NewDesc("quittance_provider_calls_total",
		"Calls made of a chain's node, each of a batch counted, by what they were made for.", append(nodeLabels, "class"), nil)
	nodeCallsPerDay = prometheus.NewDesc("quittance_provider_calls_per_day",
		"An estimate of the calls made of a chain's node in a day, from those of the last hour.", nodeLabels, nil)
	nodeErrors = prometheus.NewDesc("quittance_provider_errors_total",
		"Requests to a chain's node that failed.", nodeLabels, nil)
	nodeLatency = prometheus.NewDesc("quittance_provider_latency_seconds",
		"How long recent requests to a chain's node took.", nodeLabels, nil)
)

// nodeStates are all states of a node.
var nodeStates = []chain.State{
	chain.StateOK, chain.StateUnknown, chain.StateLagging, chain.StateBackoff, chain.StateQuarantined, chain.StateMisconfigured,
}

// nodeCollector collects the metrics of all chains' nodes.
type nodeCollector struct{ chains []*chainWorkers }

// Describe implements prometheus.Collector.
func (m nodeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{nodeState, nodeHead, nodeCalls, nodeCallsPerDay, nodeErrors, nodeLatency} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m nodeCollector) Collect(out chan<- prometheus.Metric) {
	for _, run := range m.chains {
		for i, h := range run.pool.Health() {
			labels := []string{run.Key, strconv.Itoa(i + 1), h.Node}
			send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
				out <- prometheus.MustNewConstMetric(d, kind, value, append(labels, more...)...)
			}
			for _, state := range nodeStates {
				in := 0.0
				if h.State == state {
					in = 1
				}
				send(nodeState, prometheus.GaugeValue, in, string(state))
			}
			send(nodeHead, prometheus.GaugeValue, float64(h.Head))
			for _, class := range chain.Classes {
				send(nodeCalls, prometheus.CounterValue, float64(h.Calls[class]), class.String())
			}
			send(nodeCallsPerDay, prometheus.GaugeValue, float64(h.PerDay))
			send(nodeErrors, prometheus.CounterValue, float64(h.Errors))
			send(nodeLatency, prometheus.GaugeValue, h.Latency.Seconds())
		}
	}
}
