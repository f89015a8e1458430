package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/invoice"
)

func TestUnattributedPaymentsAreCountedAndLogged(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1_790_000_000, 0)
	registry := prometheus.NewRegistry()
	u := newUnattributed(registry, []string{"base", "optimism"}, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	p := invoice.Payment{ID: "pay_1", Transfer: invoice.Transfer{ChainKey: "base", Amount: invoice.NewAmount(33_990_000)}}
	for range 3 * unattributedLines {
		u.observe(p)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Fatalf("metrics %v, %v", families, err)
	}
	if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != 3*unattributedLines {
		t.Errorf("counted are %v", got)
	}
	if got := strings.Count(log.String(), "payment=pay_1"); got != unattributedLines || !strings.Contains(log.String(), "amount=33990000") {
		t.Errorf("%d lines:\n%s", got, &log)
	}
	log.Reset()
	now = now.Add(unattributedWindow)
	u.observe(p)
	if got := log.String(); !strings.Contains(got, "payments=20") || !strings.Contains(got, "payment=pay_1") {
		t.Errorf("a minute later:\n%s", got)
	}
}
