package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/db"
)

// collector is a prometheus.Collector: a function that sends values at each scrape.
type collector func(send sendValue)

// sendValue sends a value of a metric.
type sendValue func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

// Describe implements prometheus.Collector. Which metrics there are depends on the state, so it describes none.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	c(func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	})
}

// gauge sends a gauge.
func (send sendValue) gauge(d *prometheus.Desc, value float64, labels ...string) {
	send(d, prometheus.GaugeValue, value, labels...)
}

// state sends a gauge that is 1 while something is so.
func (send sendValue) state(d *prometheus.Desc, is bool, labels ...string) {
	send.gauge(d, float64(db.Bit(is)), labels...)
}
