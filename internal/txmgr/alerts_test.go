package txmgr

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/alerttest"
)

// TestExtraAlertWithoutFunds expects the metrics of an operator without funds to fire an alert.
func TestExtraAlertWithoutFunds(t *testing.T) {
	w := onSQLite(t)
	poor, err := crypto.GenerateKey()
	must(t, err)
	w.grant(devchain.Address(poor))
	registry := prometheus.NewRegistry()
	writer := w.writer(func(c *Config) { c.Key, c.Metrics = poor, NewMetrics(registry) })
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	writer.report(writer.tick(w.ctx))
	alerttest.Fire(t, exported(registry), "QuittanceWriterFunds")
}

// TestExtraAlertOfStalledSweeps expects an alert if a sweep transaction is not mined for two hours.
func TestExtraAlertOfStalledSweeps(t *testing.T) {
	w := onSQLite(t)
	registry := prometheus.NewRegistry()
	writer := w.writer(w.sweeping(atOnce), func(c *Config) { c.Metrics = NewMetrics(registry) })
	w.deposit("m", 5)
	w.tick(writer)
	w.clock.Add(2 * time.Hour)
	w.tick(writer)
	alerttest.Fire(t, exported(registry), "QuittanceSweepsStalled")
}

// exported returns metrics in Prometheus' text format.
func exported(registry *prometheus.Registry) string {
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return page.Body.String()
}
