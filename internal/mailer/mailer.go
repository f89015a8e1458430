// Package mailer sends mails about invoices: receipts, invoices and reminders. A mail is a row, which a Mailer leases,
// composes and hands to an SMTP server.
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
	"github.com/quittance/quittance/internal/limits"
)

// Limits of mails.
const (
	// MaxOfInvoice bounds the receipts of one invoice, ever, and how often it is sent.
	MaxOfInvoice = 5
	// MaxWaiting bounds the mails of all invoices that wait to be sent, except reminders. One merchant's mails may take
	// as much as is left for the others, which is half at most.
	MaxWaiting = 1000
	// MaxOfMerchant bounds the invoices and reminders of a merchant in a Day.
	MaxOfMerchant = 2000
	// MaxToMailbox bounds a merchant's invoices and reminders to one mailbox in a Day.
	MaxToMailbox = 20
	// MaxOfMailbox bounds all merchants' invoices and reminders to one mailbox in a Day, and a process's receipts.
	MaxOfMailbox = 50
	// Day is the period of these limits.
	Day = 24 * time.Hour
	// Again is how long an invoice is not sent to the same address again.
	Again = time.Hour
	// MaxListed bounds the mails that are listed of an invoice.
	MaxListed = 100
	// maxMailboxes bounds the mailboxes with receipts in memory.
	maxMailboxes = 10_000
	// maxError bounds the stored reason of a failure, in characters.
	maxError = 500
	// MaxAttempts bounds the attempts to send a mail. With the pauses after them, they take about a day.
	MaxAttempts = 14
	// Timeout bounds an attempt.
	Timeout = 30 * time.Second
	// MaxInFlight bounds the mails that a process sends at a time.
	MaxInFlight = 4
	// MaxInFlightOfMerchant bounds the mails of one merchant that a process sends at a time.
	MaxInFlightOfMerchant = 2
)

const (
	// leaseTime is longer than an attempt takes.
	leaseTime = 2 * time.Minute
	// firstStorePause is the pause after the first try to store an outcome. It doubles.
	firstStorePause = time.Second
	// storeTimeout bounds a try to store an outcome.
	storeTimeout = 10 * time.Second
	// pollInterval is how often the queue is read for mails of other processes.
	pollInterval = 5 * time.Second
	// firstPause is the pause after the first attempt. It doubles up to maxPause.
	firstPause = time.Minute
	maxPause   = 4 * time.Hour
)

// Errors of Queue, SendInvoice and Config.Compose.
var (
	// ErrTooMany: the invoice, the merchant or the mailbox has all mails that it may have.
	ErrTooMany = errors.New("too many mails were sent")
	// ErrBusy: MaxWaiting mails wait, or the merchant's share of them.
	ErrBusy = errors.New("too many mails wait")
	// ErrAddress: the text is not an e-mail address.
	ErrAddress = errors.New("is no e-mail address")
	// ErrStopped: the recipient wants no mails of the merchant.
	ErrStopped = errors.New("the recipient wants no mails of the merchant")
	// ErrUnwanted: the state of the invoice does not fit the mail any more.
	ErrUnwanted = errors.New("the mail does not fit the state of the invoice")
	// ErrLater: whether the mail fits is not known yet, because a payment is not final or blocks are not read.
	ErrLater = errors.New("the state of the invoice is not final")
)

// errTooOften: the last of MaxAttempts ended without an outcome.
var errTooOften = errors.New("it was tried too often")

// Kind is what a mail is for.
type Kind string

// The kinds of mails.
const (
	Receipt  Kind = "receipt"  // a payer asked for it
	Invoice  Kind = "invoice"  // the merchant sent it
	Reminder Kind = "reminder" // of an invoice that was sent
)

// State is the state of a mail.
type State string

// The states of mails.
const (
	Waiting  State = "waiting"
	Sent     State = "sent"
	Failed   State = "failed"
	Canceled State = "canceled" // it was not needed any more
	Stopped  State = "stopped"  // the recipient wants none
)

// Store keeps the queue. Tables implement it.
type Store interface {
	QueueMail(ctx context.Context, m Mail, reminders []Mail) error
	CountWaiting(ctx context.Context, invoiceID string, limit int) (all, ofMerchant int, err error)
	LeaseMail(ctx context.Context, r LeaseRequest) (Mail, error)
	CheckMail(ctx context.Context, m Mail, now time.Time) error
	EndMail(ctx context.Context, m Mail) error
	RetryMail(ctx context.Context, m Mail, at time.Time) error
	DropReminders(ctx context.Context, invoiceID string, now time.Time) error
	MailByToken(ctx context.Context, token string) (m Mail, stopped bool, err error)
	StopMails(ctx context.Context, token string, stop bool, now time.Time) error
	BounceMail(ctx context.Context, b Bounce, now time.Time) error
}

// Message is a mail's content.
type Message struct {
	Subject, Text, HTML string
	ReplyTo             string // e-mail address; may be empty
	StopURL             string // of the page on which the recipient stops mails; empty without one
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
	// Compose returns the content of a mail. Errors are ErrUnwanted and ErrLater, and others.
	Compose func(ctx context.Context, m Mail) (Message, error)
	// Now is the machine's clock. It dates mails, and says when a reminder becomes due.
	Now func() time.Time
	// Schedule is the schedule's clock, for leases and pauses.
	Schedule func() time.Time
	Random   func() float64 // in [0, 1)
	Token    func() string  // a new secret of at least 128 bits
	Logger   *slog.Logger
}

// Mailer queues mails and sends them. It is safe for concurrent use.
type Mailer struct {
	conf     Config
	wake     chan struct{}
	receipts *limits.Buckets[string] // by mailbox, which is not stored
}

// New returns a Mailer. It panics if a field of the configuration is missing.
func New(c Config) *Mailer {
	if c.Store == nil || c.Sender == nil || c.Compose == nil || c.Now == nil || c.Schedule == nil || c.Random == nil || c.Token == nil || c.Logger == nil {
		panic("mailer: all fields of Config are required")
	}
	perMailbox := limits.Limit{Name: "receipts", Quota: MaxOfMailbox, Window: Day}
	return &Mailer{conf: c, wake: make(chan struct{}, 1), receipts: limits.NewBuckets[string](perMailbox, maxMailboxes, c.Now)}
}

// Queue queues the receipt of an invoice for an address. Errors are ErrAddress, ErrTooMany
// and ErrBusy.
func (m *Mailer) Queue(ctx context.Context, invoiceID, language, address string) error {
	if !validAddress(address) {
		return ErrAddress
	}
	mailbox := mailboxOf(address)
	if !m.receipts.Take(mailbox).OK {
		return ErrTooMany
	}
	now := m.conf.Now()
	mail := Mail{Kind: Receipt, InvoiceID: invoiceID, Language: language, Recipient: address, Token: m.conf.Token(), CreatedAt: now, SendAt: now}
	err := m.queue(ctx, mail, nil)
	if err != nil {
		m.receipts.Return(mailbox)
	}
	return err
}

// queue queues a mail to a valid address, due now, with reminders.
func (m *Mailer) queue(ctx context.Context, mail Mail, reminders []Mail) error {
	waiting, own, err := m.conf.Store.CountWaiting(ctx, mail.InvoiceID, MaxWaiting)
	if err != nil {
		return fmt.Errorf("count the mails that wait: %w", err)
	}
	if own >= MaxWaiting-waiting {
		return ErrBusy
	}
	mail.Due = m.conf.Schedule()
	if err := m.conf.Store.QueueMail(ctx, mail, reminders); err != nil {
		return fmt.Errorf("queue a mail: %w", err)
	}
	m.conf.Logger.InfoContext(ctx, "mail queued", "kind", mail.Kind, "invoice", mail.InvoiceID)
	clock.Wake(m.wake)
	return nil
}

// attempt sends a mail that is leased until a time, and records the outcome. If that cannot be recorded, the mail is
// sent again when the lease ends.
func (m *Mailer) attempt(ctx context.Context, mail Mail, until time.Time) {
	err := errTooOften
	if mail.Attempts <= MaxAttempts {
		err = m.send(context.WithoutCancel(ctx), mail)
	}
	now, over := m.conf.Now(), mail.Attempts >= MaxAttempts
	logger := m.conf.Logger.With("kind", mail.Kind, "invoice", mail.InvoiceID, "number", mail.Number, "attempt", mail.Attempts)
	next := m.conf.Schedule().Add(clock.Jitter(pauseAfter(mail.Attempts), m.conf.Random()))
	refused := (*RefusedError)(nil)
	switch {
	case err == nil:
		logger.InfoContext(ctx, "mail sent")
		mail.State, mail.EndedAt, mail.Error = Sent, now, ""
	case errors.Is(err, ErrStopped):
		mail.State, mail.Error = Stopped, ""
	case errors.Is(err, ErrUnwanted), over && (errors.Is(err, ErrLater) || errors.Is(err, ErrTooMany)):
		logger.InfoContext(ctx, "mail canceled", "reason", err)
		mail.State, mail.Error = Canceled, ""
	case errors.Is(err, ErrLater), errors.Is(err, ErrTooMany):
		logger.DebugContext(ctx, "mail postponed")
	case errors.As(err, &refused), over:
		logger.ErrorContext(ctx, "mail failed, given up", "err", withoutAddresses(err))
		mail.State, mail.EndedAt, mail.Error = Failed, now, reason(err)
	default:
		logger.WarnContext(ctx, "mail failed, will retry", "err", withoutAddresses(err))
		mail.Error = reason(err)
	}
	if err := m.record(ctx, until, func(ctx context.Context) error {
		if mail.State == Waiting {
			return m.conf.Store.RetryMail(ctx, mail, next)
		}
		return m.conf.Store.EndMail(ctx, mail)
	}); err != nil {
		logger.ErrorContext(ctx, "outcome of a mail not recorded", "err", err)
	}
}

// send composes a mail and hands it to the server, within Timeout.
func (m *Mailer) send(ctx context.Context, mail Mail) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if mail.Kind != Receipt {
		if err := m.conf.Store.CheckMail(ctx, mail, m.conf.Now()); err != nil {
			return fmt.Errorf("check the recipient: %w", err)
		}
	}
	message, err := m.conf.Compose(ctx, mail)
	if err != nil {
		return fmt.Errorf("compose the mail: %w", err)
	}
	return m.conf.Sender.Send(ctx, mail.id(), mail.Recipient, message)
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
