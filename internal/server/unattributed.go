package server

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/invoice"
)

const (
	// unattributedLines bounds how many unattributed payments are logged per
	// unattributedWindow, because anybody can make them.
	unattributedLines = 10
	// unattributedWindow is the period of the limit.
	unattributedWindow = time.Minute
)

// unattributed counts and logs unattributed payments. Invariant: lines and omitted
// count payments of the window that began at since.
type unattributed struct {
	total  *prometheus.CounterVec
	now    func() time.Time
	logger *slog.Logger

	mu      sync.Mutex
	since   time.Time
	lines   int
	omitted int
}

func newUnattributed(reg *prometheus.Registry, chainKeys []string, now func() time.Time, logger *slog.Logger) *unattributed {
	u := &unattributed{now: now, logger: logger, total: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_payments_unattributed_total",
		Help: "Payments to settlement addresses that no rule attributed to an invoice when they were read.",
	}, []string{"chain"})}
	for _, key := range chainKeys {
		u.total.WithLabelValues(key) // export 0 before the first one
	}
	return u
}

// observe counts a payment, and logs it within the limit.
func (u *unattributed) observe(p invoice.Payment) {
	u.total.WithLabelValues(p.ChainKey).Inc()
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if age := now.Sub(u.since); age >= unattributedWindow || age < 0 {
		if u.omitted > 0 {
			u.logger.Warn("more payments are unattributed", "payments", u.omitted)
		}
		u.since, u.lines, u.omitted = now, 0, 0
	}
	if u.lines >= unattributedLines {
		u.omitted++
		return
	}
	u.lines++
	u.logger.Warn("payment is unattributed", "chain", p.ChainKey, "payment", p.ID, "tx", p.TxHash.String(),
		"amount", p.Amount.String(), "currency", p.Currency, "from", p.From.String(), "to", p.To.String())
}
