package dev

import (
	"context"
	"log/slog"
	"regexp"

	"github.com/quittance/quittance/internal/mailer"
)

// mailLog writes mails to the log instead of sending them.
type mailLog struct{ logger *slog.Logger }

var firstLink = regexp.MustCompile(`https?://\S+`)

// Send implements mailer.Sender.
func (l mailLog) Send(ctx context.Context, id, recipient string, m mailer.Message) error {
	l.logger.WarnContext(ctx, "mail, which dev does not send", "id", id, "to", recipient, "subject", m.Subject, "link", firstLink.FindString(m.Text), "stop", m.StopURL)
	return nil
}
