package server

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/screening"
	"github.com/quittance/quittance/internal/webhooks"
)

// Screening configures the hook that is asked about the payers of new payments.
type Screening struct {
	URL, Secret string
	Closed      bool          // payments without a verdict are quarantined, and not accepted
	Patience    time.Duration // how long a payment waits for a verdict
}

// runScreening asks the hook until ctx ends. Without a hook, it accepts the payments that still wait.
func (s *Server) runScreening(ctx context.Context) error {
	conf := screening.Config{Ledger: s.settle, Schedule: s.clock.Now, Metrics: screening.NewMetrics(s.registry), Logger: s.cfg.Logger}
	if c := s.cfg.Screening; c != nil {
		client := webhooks.NewClient(webhooks.ClientConfig{
			Guard: webhooks.NewGuard(s.cfg.WebhookAllow), Connections: screening.MaxInFlight, Idle: screening.MaxInFlight,
			CA: s.cfg.WebhookCA, Proxy: s.cfg.WebhookProxy, Dial: s.cfg.Dial,
		})
		defer client.CloseIdleConnections()
		conf.Hook = &screening.Hook{URL: c.URL, Secret: c.Secret, Client: client, Now: s.cfg.TestClock.Real}
		if conf.Patience, conf.Fallback = c.Patience, invoice.ScreeningAccepted; c.Closed {
			conf.Fallback = invoice.ScreeningQuarantined
		}
	}
	screening.New(conf).Run(ctx)
	return nil
}
