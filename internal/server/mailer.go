package server

import (
	"context"
	crypto "crypto/rand"
	"math/rand/v2"
	"strings"

	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout"
)

// buildMailer builds the worker that sends mails, if there is an SMTP server. They are composed by the checkout.
func (s *Server) buildMailer() {
	if s.cfg.SMTP != nil {
		s.mailer = mailer.New(mailer.Config{
			Store: mailer.NewTables(s.store), Sender: s.cfg.SMTP, Now: s.cfg.Now, Schedule: s.clock.Now, Random: rand.Float64, Logger: s.cfg.Logger,
			Compose: func(ctx context.Context, m mailer.Mail) (mailer.Message, error) { return s.page.Mail(ctx, m) },
			Token:   func() string { return strings.ToLower(crypto.Text()) },
		})
		if s.cfg.DashboardURL != "" {
			s.direct = mailer.NewDirect(s.cfg.SMTP, s.cfg.Logger)
		}
	}
}

// mailURL returns the base of the addresses in mails: the configured one, or the address of a development service.
func (s *Server) mailURL() string {
	if s.cfg.PublicURL != "" || len(s.cfg.Listeners) == 0 {
		return s.cfg.PublicURL
	}
	return "http://" + s.cfg.Listeners[0].Addr().String()
}

// payerMails returns the queue of receipts, or nil without an SMTP server.
func (s *Server) payerMails() checkout.Mails {
	if s.mailer == nil {
		return nil
	}
	return s.mailer
}

// runMailer sends queued mails until ctx ends.
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
