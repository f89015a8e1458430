// Package mailer sends receipts by e-mail. A requested mail is a row, which a Worker leases, composes
// and hands to an SMTP server.
//
// Delivery is at least once: a row is due again when its lease ends without an outcome. So a mail is
// sent twice only if the outcome of an attempt was not received or not recorded. Both have the same
// Message-ID.
package mailer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
)

// Limits of mails.
const (
	// MaxOfInvoice bounds the mails of one invoice, ever.
	MaxOfInvoice = 5
	// MaxWaiting bounds the mails of all invoices that wait to be sent. One merchant's mails may take as
	// much as is left for the others, which is half at most.
	MaxWaiting = 1000
	// Lifetime is how long the mailer tries to send a mail.
	Lifetime = 24 * time.Hour
	// Timeout bounds an attempt.
	Timeout = 30 * time.Second
	// MaxInFlight bounds the mails that are sent at a time.
	MaxInFlight = 4
)

const (
	// leaseTime is longer than an attempt takes.
	leaseTime = 2 * time.Minute
	// pollInterval is how often the queue is read for mails of other processes.
	pollInterval = 5 * time.Second
	// firstPause is the pause after the first attempt. It doubles up to maxPause.
	firstPause = time.Minute
	maxPause   = 4 * time.Hour
)

// Errors of Queue.
var (
	// ErrTooMany: the invoice has MaxOfInvoice mails.
	ErrTooMany = errors.New("the invoice's receipt was sent too often")
	// ErrBusy: MaxWaiting mails wait, or the merchant's share of them.
	ErrBusy = errors.New("too many mails wait")
	// ErrAddress: the text is not an e-mail address.
	ErrAddress = errors.New("is no e-mail address")
)

// errTooOld: the mail was tried for its Lifetime, or no process ran.
var errTooOld = errors.New("it is too old")

// Store keeps the queue. Tables implement it.
type Store interface {
	QueueReceiptMail(ctx context.Context, m ReceiptMail, limit int) (number int, err error)
	CountReceiptMails(ctx context.Context, invoiceID string, limit int) (all, ofMerchant int, err error)
	LeaseReceiptMails(ctx context.Context, now, until time.Time, limit int) ([]ReceiptMail, error)
	EndReceiptMail(ctx context.Context, m ReceiptMail, sentAt time.Time) error
	RetryReceiptMail(ctx context.Context, m ReceiptMail, at time.Time) error
}

// Message is a mail's content.
type Message struct {
	Subject, Text, HTML string
}

// Sender hands a mail to a server. *SMTP implements it. The error is a *RefusedError if
// the server will never take it.
type Sender interface {
	Send(ctx context.Context, id, recipient string, m Message) error
}

// RefusedError is an answer of the server that is permanent.
type RefusedError struct{ Err error }

// Error implements error.
func (e *RefusedError) Error() string { return "refused: " + e.Err.Error() }

// Unwrap returns the answer.
func (e *RefusedError) Unwrap() error { return e.Err }

// Config is the configuration of a Mailer. All fields are required.
type Config struct {
	Store  Store
	Sender Sender
	// Compose returns the receipt of an invoice in a language.
	Compose func(ctx context.Context, invoiceID, language string) (Message, error)
	Now     func() time.Time // the schedule's clock
	Random  func() float64   // in [0, 1)
	Logger  *slog.Logger
}

// Mailer queues mails and sends them. It is safe for concurrent use.
type Mailer struct {
	conf Config
	wake chan struct{}
}

// New returns a Mailer. It panics if a field of the configuration is missing.
func New(c Config) *Mailer {
	if c.Store == nil || c.Sender == nil || c.Compose == nil || c.Now == nil || c.Random == nil || c.Logger == nil {
		panic("mailer: all fields of Config are required")
	}
	return &Mailer{conf: c, wake: make(chan struct{}, 1)}
}

// Queue queues the receipt of an invoice for an address. Errors are ErrAddress, ErrTooMany
// and ErrBusy.
func (m *Mailer) Queue(ctx context.Context, invoiceID, language, address string) error {
	if !validAddress(address) {
		return ErrAddress
	}
	waiting, own, err := m.conf.Store.CountReceiptMails(ctx, invoiceID, MaxWaiting)
	if err != nil {
		return fmt.Errorf("count the mails that wait: %w", err)
	}
	if own >= MaxWaiting-waiting {
		return ErrBusy
	}
	number, err := m.conf.Store.QueueReceiptMail(ctx, ReceiptMail{InvoiceID: invoiceID, Language: language, Recipient: address, CreatedAt: m.conf.Now()}, MaxOfInvoice)
	if errors.Is(err, db.ErrConflict) {
		return ErrTooMany
	}
	if err != nil {
		return fmt.Errorf("queue a mail: %w", err)
	}
	m.conf.Logger.InfoContext(ctx, "receipt queued for e-mail", "invoice", invoiceID, "number", number)
	clock.Wake(m.wake)
	return nil
}

// Run sends due mails until ctx ends. It finishes an attempt in progress.
func (m *Mailer) Run(ctx context.Context) {
	for {
		sent, err := m.sendDue(ctx)
		if err != nil && ctx.Err() == nil {
			m.conf.Logger.Error("lease of mails failed, will retry", "err", err)
		}
		if pause := pollInterval; sent == 0 && !clock.Sleep(ctx, pause, m.wake) || ctx.Err() != nil {
			return
		}
	}
}

// sendDue leases and attempts due mails, and returns their number.
func (m *Mailer) sendDue(ctx context.Context) (int, error) {
	now := m.conf.Now()
	leased, err := m.conf.Store.LeaseReceiptMails(ctx, now, now.Add(leaseTime), MaxInFlight)
	if err != nil {
		return 0, err
	}
	done := make(chan struct{})
	for _, mail := range leased {
		go func() {
			defer func() { done <- struct{}{} }()
			m.attempt(context.WithoutCancel(ctx), mail)
		}()
	}
	for range leased {
		<-done
	}
	return len(leased), nil
}

// attempt sends a leased mail and records the outcome. If the outcome cannot be recorded,
// the mail is sent again when the lease ends.
func (m *Mailer) attempt(ctx context.Context, mail ReceiptMail) {
	err := errTooOld
	if !m.conf.Now().After(mail.CreatedAt.Add(Lifetime)) {
		err = m.send(ctx, mail)
	}
	now, logger := m.conf.Now(), m.conf.Logger.With("invoice", mail.InvoiceID, "number", mail.Number, "attempt", mail.Attempts)
	next := now.Add(clock.Jitter(pauseAfter(mail.Attempts), m.conf.Random()))
	refused := (*RefusedError)(nil)
	switch {
	case err == nil:
		logger.InfoContext(ctx, "receipt sent by e-mail")
		err = m.conf.Store.EndReceiptMail(ctx, mail, now)
	case errors.As(err, &refused), next.After(mail.CreatedAt.Add(Lifetime)):
		logger.ErrorContext(ctx, "e-mail of a receipt failed, given up", "err", withoutAddress(err, mail.Recipient))
		err = m.conf.Store.EndReceiptMail(ctx, mail, time.Time{})
	default:
		logger.WarnContext(ctx, "e-mail of a receipt failed, will retry", "err", withoutAddress(err, mail.Recipient))
		err = m.conf.Store.RetryReceiptMail(ctx, mail, next)
	}
	if err != nil {
		logger.ErrorContext(ctx, "outcome of an e-mail not recorded", "err", err)
	}
}

// send composes a mail and hands it to the server, within Timeout.
func (m *Mailer) send(ctx context.Context, mail ReceiptMail) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	message, err := m.conf.Compose(ctx, mail.InvoiceID, mail.Language)
	if err != nil {
		return fmt.Errorf("compose the mail: %w", err)
	}
	return m.conf.Sender.Send(ctx, fmt.Sprintf("%s.%d", mail.InvoiceID, mail.Number), mail.Recipient, message)
}

// pauseAfter returns the pause after an attempt.
func pauseAfter(attempt int) time.Duration {
	pause := firstPause
	for range attempt - 1 {
		if pause *= 2; pause >= maxPause {
			return maxPause
		}
	}
	return pause
}
