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

// collectNodes collects the metrics of all chains' nodes.
func (s *Server) collectNodes(send sendValue) {
	for _, run := range s.chains {
		for i, h := range run.pool.Health() {
			labels := []string{run.Key, strconv.Itoa(i + 1), h.Node}
			for _, state := range nodeStates {
				send.state(nodeState, h.State == state, append(labels, string(state))...)
			}
			send.gauge(nodeHead, float64(h.Head), labels...)
			for _, class := range chain.Classes {
				send(nodeCalls, prometheus.CounterValue, float64(h.Calls[class]), append(labels, class.String())...)
			}
			send.gauge(nodeCallsPerDay, float64(h.PerDay), labels...)
			send(nodeErrors, prometheus.CounterValue, float64(h.Errors), labels...)
			send.gauge(nodeLatency, h.Latency.Seconds(), labels...)
		}
	}
}
