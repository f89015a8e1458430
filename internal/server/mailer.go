package server

import (
	"context"
	crypto "crypto/rand"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout"
)

// buildMailer builds the worker that sends mails, if there is an SMTP server. They are composed by the checkout.
func (s *Server) buildMailer() {
	if s.cfg.SMTP != nil {
		sender := countMails(s.registry, s.cfg.SMTP)
		s.mailer = mailer.New(mailer.Config{
			Store: mailer.NewTables(s.store), Sender: sender, Now: s.cfg.Now, Schedule: s.clock.Now, Random: rand.Float64, Logger: s.cfg.Logger,
			Compose: func(ctx context.Context, m mailer.Mail) (mailer.Message, error) { return s.page.Mail(ctx, m) },
			Token:   func() string { return strings.ToLower(crypto.Text()) },
		})
		if s.cfg.DashboardURL != "" {
			s.direct = mailer.NewDirect(sender, s.cfg.Logger)
		}
	}
}

// countedMails is a sender that counts the attempts.
type countedMails struct {
	mailer.Sender
	total *prometheus.CounterVec
}

func countMails(reg prometheus.Registerer, sender mailer.Sender) mailer.Sender {
	total := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_mails_total",
		Help: "Attempts to send mails, by their result: sent, recipient (refused because of it, for now or for good), refused for another reason, or failed.",
	}, []string{"result"})
	for _, result := range []string{"sent", "recipient", "refused", "failed"} {
		total.WithLabelValues(result) // export 0 before the first one
	}
	return countedMails{sender, total}
}

// Send implements mailer.Sender.
func (c countedMails) Send(ctx context.Context, id, recipient string, m mailer.Message) error {
	err := c.Sender.Send(ctx, id, recipient, m)
	result, answer := "failed", (*mailer.AnswerError)(nil)
	switch {
	case err == nil:
		result = "sent"
	case errors.As(err, &answer) && answer.Recipient:
		result = "recipient"
	case errors.As(err, new(*mailer.RefusedError)):
		result = "refused"
	}
	c.total.WithLabelValues(result).Inc()
	return err
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
