package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const payer = "ada.lovelace@example.com"

// compose returns a mail that names the invoice and the language.
func compose(_ context.Context, m mailer.Mail) (mailer.Message, error) {
	return mailer.Message{Subject: m.InvoiceID, Text: m.Language, HTML: m.Language}, nil
}

// queue is a store in memory with the mails of one invoice.
type queue struct {
	mailer.Store
	mu       sync.Mutex
	waiting  []mailer.Mail
	due      time.Time
	outcomes []string // with the time since the start
	start    time.Time
	number   int
	ended    time.Time                 // of the last outcome
	check    error                     // the result of CheckMail, if it fits the mail
	store    func(m mailer.Mail) error // the result of EndMail; nil: none
	tries    int                       // of EndMail
	// ofMerchant is how many of the waiting mails are for the invoice's merchant.
	ofMerchant int
}

func (q *queue) QueueMail(_ context.Context, m mailer.Mail, reminders []mailer.Mail) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.number >= mailer.MaxOfInvoice {
		return mailer.ErrTooMany
	}
	q.number++
	m.Number, m.State = q.number, mailer.Waiting
	q.waiting, q.due = append(q.waiting, m), m.Due
	for _, r := range reminders {
		q.number++
		r.Number, r.State = q.number, mailer.Waiting
		q.waiting = append(q.waiting, r)
	}
	return nil
}

func (q *queue) CountWaiting(context.Context, string, int) (all, ofMerchant int, err error) {
	return len(q.waiting), q.ofMerchant, nil
}

func (q *queue) CheckMail(_ context.Context, m mailer.Mail, _ time.Time) error {
	if errors.Is(q.check, mailer.ErrTooMany) && m.Kind != mailer.Reminder {
		return nil // it was counted when it was queued
	}
	return q.check
}

func (q *queue) LeaseMail(_ context.Context, r mailer.LeaseRequest) (mailer.Mail, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return mailer.Mail{}, db.ErrNotFound
	}
	lane, now := mailer.Asked, r.Now
	if q.waiting[0].Attempts > 0 {
		lane = mailer.Retries
	} else if q.waiting[0].Kind == mailer.Reminder {
		lane, now = mailer.Reminders, r.Wall
	}
	if lane != r.Lane || now.Before(q.due) {
		return mailer.Mail{}, db.ErrNotFound
	}
	q.waiting[0].Attempts++
	q.due = r.Until
	return q.waiting[0], nil
}

func (q *queue) EndMail(_ context.Context, m mailer.Mail) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tries++; q.store != nil && q.store(m) != nil {
		return q.store(m)
	}
	if q.waiting = q.waiting[1:]; len(q.waiting) > 0 {
		q.due = q.waiting[0].SendAt
	}
	q.ended = m.EndedAt
	q.outcomes = append(q.outcomes, strings.TrimSpace(fmt.Sprint(m.State, " after ", m.Attempts, " attempts, ", time.Since(q.start).Round(time.Minute), " ", m.Error)))
	return nil
}

// at returns when the last mail was sent, as it is stored.
func (q *queue) at() string {
	if q.ended.IsZero() {
		return ""
	}
	return " at " + q.ended.Sub(q.start).Round(time.Minute).String()
}

func (q *queue) RetryMail(_ context.Context, _ mailer.Mail, at time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = at
	return nil
}

// token returns the token of each mail.
func token() string { return "abcdefghijklmnopqrstuvwxyz" }

// senderFunc is a Sender.
type senderFunc func(ctx context.Context, id, recipient string, m mailer.Message) error

func (f senderFunc) Send(ctx context.Context, id, recipient string, m mailer.Message) error {
	return f(ctx, id, recipient, m)
}

// TestRetries sends a mail with failing attempts, with the fake clock of synctest.
func TestRetries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send func(attempt int) error
		want string
	}{
		"at once": {func(int) error { return nil }, "sent after 1 attempts, 0s"},
		"later":   {func(n int) error { return map[bool]error{true: errors.New("full of " + payer)}[n < 3] }, "sent after 3 attempts, 3m0s"},
		"refused": {func(int) error {
			return &mailer.RefusedError{Err: &mailer.AnswerError{Text: "550 no " + strings.ToUpper(payer)}}
		}, "failed after 1 attempts, 0s 550 no …"},
		"never":        {func(int) error { return errors.New("down") }, "failed after 14 attempts, 24h15m0s it could not be handed to the mail server"},
		"hangs a time": {func(n int) error { return map[bool]error{true: errHangs}[n == 1] }, "sent after 2 attempts, 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, attempts, done := &queue{start: time.Now()}, 0, make(chan struct{})
				var log logtest.Buffer
				m := mailer.New(mailer.Config{
					Store: q, Compose: compose, Now: time.Now, Schedule: time.Now, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Sender: senderFunc(func(ctx context.Context, id, recipient string, _ mailer.Message) error {
						attempts++
						if id != mailer.IDOf(mailer.Mail{InvoiceID: "inv_1", Number: 1, Token: token()}) || recipient != payer {
							t.Errorf("mail %s to %s", id, recipient)
						}
						err := c.send(attempts)
						if errors.Is(err, errHangs) {
							<-ctx.Done()
							return ctx.Err()
						}
						return err
					}),
				})
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					m.Run(ctx)
					close(done)
				}()
				expect.OK(t, m.Queue(ctx, "inv_1", "en", payer))
				<-time.After(48 * time.Hour)
				cancel()
				<-done
				if len(q.outcomes) != 1 || q.outcomes[0] != c.want {
					t.Errorf("%q, want %q", q.outcomes, c.want)
				}
				if strings.Contains(log.String(), payer) {
					t.Errorf("the log has the address:\n%s", log.String())
				}
			})
		})
	}
}

var errHangs = errors.New("hangs")

// TestStateOfTheInvoice sends an invoice with a reminder while the invoice changes.
func TestStateOfTheInvoice(t *testing.T) {
	t.Parallel()
	const sent = "sent after 1 attempts, 0s"
	for name, c := range map[string]struct {
		compose func(m mailer.Mail, since time.Duration) error
		check   error
		want    []string
	}{
		"waits": {func(mailer.Mail, time.Duration) error { return nil }, nil, []string{sent, "sent after 1 attempts, 2h0m0s"}},
		"paid": {func(m mailer.Mail, _ time.Duration) error {
			return map[mailer.Kind]error{mailer.Reminder: mailer.ErrUnwanted}[m.Kind]
		}, nil, []string{sent, "canceled after 1 attempts, 2h0m0s"}},
		"seen, then dropped": {func(m mailer.Mail, since time.Duration) error {
			return map[bool]error{true: mailer.ErrLater}[m.Kind == mailer.Reminder && since < 150*time.Minute]
		}, nil, []string{sent, "sent after 6 attempts, 2h31m0s"}},
		"never final": {func(m mailer.Mail, _ time.Duration) error {
			return map[mailer.Kind]error{mailer.Reminder: mailer.ErrLater}[m.Kind]
		}, nil, []string{sent, "canceled after 14 attempts, 26h15m0s"}},
		"a full mailbox": {func(mailer.Mail, time.Duration) error { return nil }, mailer.ErrTooMany, []string{sent, "canceled after 14 attempts, 26h15m0s"}},
		"stopped":        {func(mailer.Mail, time.Duration) error { return nil }, mailer.ErrStopped, []string{"stopped after 1 attempts, 0s", "stopped after 1 attempts, 2h0m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, done := &queue{start: time.Now(), check: c.check}, make(chan struct{})
				m := mailer.New(mailer.Config{
					Store: q, Now: time.Now, Schedule: time.Now, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.DiscardHandler),
					Compose: func(_ context.Context, m mailer.Mail) (mailer.Message, error) {
						return mailer.Message{}, c.compose(m, time.Since(q.start))
					},
					Sender: senderFunc(func(context.Context, string, string, mailer.Message) error { return nil }),
				})
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					m.Run(ctx)
					close(done)
				}()
				inv := invoice.Invoice{ID: "inv_1", Terms: invoice.Terms{ExpiresAt: q.start.Add(3 * time.Hour)}}
				if err := m.SendInvoice(ctx, mailer.Order{Invoice: inv, Address: payer, ReminderHours: []int{-3, -1}}); err != nil { // one is over
					t.Fatal(err)
				}
				<-time.After(48 * time.Hour)
				cancel()
				<-done
				expect.NoDiff(t, cmp.Diff(c.want, q.outcomes), "outcomes")
			})
		})
	}
}

// TestQueueRefuses checks the limits, and texts that are not addresses.
func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	q := &queue{}
	m := mailer.New(mailer.Config{
		Store: q, Compose: compose, Now: time.Now, Schedule: time.Now, Random: func() float64 { return 0 }, Token: token, Logger: slog.New(slog.DiscardHandler), Sender: senderFunc(nil),
	})
	longest := strings.Repeat("a", 64) + "@" + strings.Repeat("b.", (mailer.MaxAddress-65)/2-1) + "example"
	longest = longest[:mailer.MaxAddress]
	for address, ok := range map[string]bool{
		payer: true, "a+b@xn--bcher-kva.example": true, longest: true, longest + "a": false,
		"": false, "ada": false, "ada@": false, "@example.com": false, "ada@localhost": false, "ada@[127.0.0.1]": false,
		"Ada <ada@example.com>": false, "ada@example.com, bob@example.com": false, "ada@example.com,bob@example.com": false, `"a b"@example.com`: false,
		"ada@example.com\r\nBcc: bob@example.com": false, "ada@example.com\x00": false, "ada@exämple.com": false, "ada @example.com": false, "ada@example..com": false,
	} {
		q.number, q.waiting = 0, nil
		if err := m.Queue(t.Context(), "inv_1", "en", address); (err == nil) != ok || !ok && !errors.Is(err, mailer.ErrAddress) {
			t.Errorf("%q: %v, want ok %t", address, err, ok)
		}
	}
	q.waiting, q.number = nil, mailer.MaxOfInvoice-1
	for i, want := range []error{nil, mailer.ErrTooMany} {
		if err := m.Queue(t.Context(), "inv_1", "en", payer); !errors.Is(err, want) {
			t.Errorf("mail %d: %v, want %v", mailer.MaxOfInvoice+i, err, want)
		}
	}
	q.number, q.waiting = 0, make([]mailer.Mail, mailer.MaxWaiting-1)
	for i, want := range []error{nil, mailer.ErrBusy, nil, mailer.ErrBusy} {
		if i == 2 { // other merchants have no mail waiting; one more uses up this one's share
			q.number, q.waiting, q.ofMerchant = 0, make([]mailer.Mail, mailer.MaxWaiting/2), mailer.MaxWaiting/2-1
		} else if i == 3 {
			q.ofMerchant++
		}
		if err := m.Queue(t.Context(), "inv_1", "en", payer); !errors.Is(err, want) {
			t.Errorf("with %d mails waiting: %v, want %v", len(q.waiting), err, want)
		}
	}
	for n := range mailer.MaxOfMailbox + 1 { // of many invoices
		q.number, q.waiting, q.ofMerchant = 0, nil, 0
		err := m.Queue(t.Context(), fmt.Sprint("inv_", n), "en", []string{"bob@example.com", "Bob+other@Example.com"}[n%2])
		if tooMany := n == mailer.MaxOfMailbox; errors.Is(err, mailer.ErrTooMany) != tooMany || !tooMany && err != nil {
			t.Errorf("receipt %d to a mailbox: %v", n+1, err)
		}
	}
}

// TestDirect sends mails that wait in memory, with the fake clock of synctest: a mail that waits for
// another attempt does not delay others, and one that the server refuses is not sent again.
func TestDirect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Buffer
		var mu sync.Mutex
		start, attempts := time.Now(), make(map[string][]time.Duration)
		d := mailer.NewDirect(senderFunc(func(_ context.Context, _, recipient string, _ mailer.Message) error {
			mu.Lock()
			defer mu.Unlock()
			attempts[recipient] = append(attempts[recipient], time.Since(start))
			switch {
			case recipient == payer:
				return &mailer.RefusedError{Err: errors.New("no " + payer)}
			case recipient == "later@example.com" && time.Since(start) < time.Minute:
				return errors.New("try again")
			}
			return nil
		}), slog.New(slog.NewTextHandler(&log, nil)))
		send := func(recipient string) func(context.Context) error {
			return func(ctx context.Context) error { return d.Send(ctx, recipient, mailer.Message{}) }
		}
		for n := range mailer.MaxQueued + 1 {
			recipient := "later@example.com"
			switch n {
			case mailer.MaxQueued - 2:
				recipient = payer
			case mailer.MaxQueued - 1:
				recipient = "now@example.com"
			}
			if err := d.Queue(send(recipient)); errors.Is(err, mailer.ErrBusy) != (n == mailer.MaxQueued) || err != nil && n < mailer.MaxQueued {
				t.Errorf("mail %d: %v", n+1, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		<-time.After(time.Hour)
		if got := attempts["now@example.com"]; len(got) != 1 || got[0] != 0 {
			t.Errorf("behind mails that wait, a mail is sent after %v", got)
		}
		if n := len(attempts[payer]); n != 1 || strings.Contains(log.String(), payer) {
			t.Errorf("a refused mail is sent %d times, and the log is\n%s", n, log.String())
		}
		if err := d.Queue(send("again@example.com")); err != nil {
			t.Errorf("after the others: %v", err)
		}
		cancel()
		running.Wait()
	})
}
