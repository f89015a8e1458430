package server

import (
	"context"
	"math/rand/v2"

	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout"
)

// buildMailer builds the worker that sends receipts, if there is an SMTP server.
func (s *Server) buildMailer(compose func(ctx context.Context, invoiceID, language string) (mailer.Message, error)) {
	if s.cfg.SMTP != nil {
		s.mailer = mailer.New(mailer.Config{
			Store: mailer.NewTables(s.store), Sender: s.cfg.SMTP, Compose: compose, Now: s.clock.Now, Random: rand.Float64, Logger: s.cfg.Logger,
		})
		if s.cfg.DashboardURL != "" {
			s.direct = mailer.NewDirect(s.cfg.SMTP, s.cfg.Logger)
		}
	}
}

// mails returns the queue of receipts, or nil without an SMTP server.
func (s *Server) mails() checkout.Mails {
	if s.mailer == nil {
		return nil
	}
	return s.mailer
}

// runMailer sends queued receipts until ctx ends.
func (s *Server) runMailer(ctx context.Context) error {
	if s.mailer != nil {
		s.mailer.Run(ctx)
	}
	return nil
}

// runDirect sends links that sign in until ctx ends.
func (s *Server) runDirect(ctx context.Context) error {
	if s.direct != nil {
		s.direct.Run(ctx)
	}
	return nil
}
