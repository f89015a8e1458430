package mailer_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/logtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

const payer = "ada.lovelace@example.com"

// addInvoices stores invoices, to which mails belong.
func addInvoices(t *testing.T, s *db.DB, ids ...string) {
	t.Helper()
	var all []invoice.Invoice
	for _, id := range ids {
		all = append(all, invoice.Invoice{
			Terms: invoice.Terms{Merchant: invoice.Address{0xaa}, Token: invoice.Address{0xcc}, Amount: invoice.NewAmount(100), ExpiresAt: invoice.Unix(2000)},
			ID:    id, CommitmentID: sha256.Sum256([]byte(id)), MerchantID: "m", Currency: "USDC", ChainKey: "base", Status: invoice.Open,
			CreatedAt: invoice.Unix(1000), Collection: invoice.Direct,
		})
	}
	if err := s.Update(t.Context(), func(tx *db.Tx) error {
		if err := access.InsertSettlementAddresses(t.Context(), tx, []access.SettlementAddress{{ChainKey: "base", Address: invoice.Address{0xaa}, MerchantID: "m"}}, invoice.Unix(1)); err != nil {
			return err
		}
		_, err := ledger.InsertInvoices(t.Context(), tx, all)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// compose returns a mail that names the invoice and the language.
func compose(_ context.Context, id, language string) (mailer.Message, error) {
	return mailer.Message{Subject: id, Text: language, HTML: language}, nil
}

// queue is a store in memory with the mails of one invoice.
type queue struct {
	mu       sync.Mutex
	waiting  []mailer.ReceiptMail
	due      time.Time
	outcomes []string // with the time since the start
	start    time.Time
	number   int
	// ofMerchant is how many of the waiting mails are for the invoice's merchant.
	ofMerchant int
}

func (q *queue) QueueReceiptMail(_ context.Context, m mailer.ReceiptMail, limit int) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.number >= limit {
		return 0, db.ErrConflict
	}
	q.number++
	m.Number = q.number
	q.waiting, q.due = append(q.waiting, m), m.CreatedAt
	return q.number, nil
}

func (q *queue) CountReceiptMails(context.Context, string, int) (all, ofMerchant int, err error) {
	return len(q.waiting), q.ofMerchant, nil
}

func (q *queue) LeaseReceiptMails(_ context.Context, now, until time.Time, _ int) ([]mailer.ReceiptMail, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || now.Before(q.due) {
		return nil, nil
	}
	q.waiting[0].Attempts++
	q.due = until
	return []mailer.ReceiptMail{q.waiting[0]}, nil
}

func (q *queue) EndReceiptMail(_ context.Context, m mailer.ReceiptMail, sentAt time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = q.waiting[1:]
	what := "sent"
	if sentAt.IsZero() {
		what = "given up"
	}
	q.outcomes = append(q.outcomes, fmt.Sprint(what, " after ", m.Attempts, " attempts, ", time.Since(q.start).Round(time.Minute)))
	return nil
}

func (q *queue) RetryReceiptMail(_ context.Context, _ mailer.ReceiptMail, at time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = at
	return nil
}

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
		"at once":      {func(int) error { return nil }, "sent after 1 attempts, 0s"},
		"later":        {func(n int) error { return map[bool]error{true: errors.New("full of " + payer)}[n < 3] }, "sent after 3 attempts, 3m0s"},
		"refused":      {func(int) error { return &mailer.RefusedError{Err: errors.New("no " + payer)} }, "given up after 1 attempts, 0s"},
		"never":        {func(int) error { return errors.New("down") }, "given up after 13 attempts, 20h15m0s"},
		"hangs a time": {func(n int) error { return map[bool]error{true: errHangs}[n == 1] }, "sent after 2 attempts, 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, attempts, done := &queue{start: time.Now()}, 0, make(chan struct{})
				var log logtest.Buffer
				m := mailer.New(mailer.Config{
					Store: q, Compose: compose, Now: time.Now, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Sender: senderFunc(func(ctx context.Context, id, recipient string, _ mailer.Message) error {
						attempts++
						if id != "inv_1.1" || recipient != payer {
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
				if err := m.Queue(ctx, "inv_1", "en", payer); err != nil {
					t.Fatal(err)
				}
				<-time.After(mailer.Lifetime + time.Hour)
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

// TestQueueRefuses checks the limits, and texts that are not addresses.
func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	q := &queue{}
	m := mailer.New(mailer.Config{
		Store: q, Compose: compose, Now: time.Now, Random: func() float64 { return 0 }, Logger: slog.New(slog.DiscardHandler), Sender: senderFunc(nil),
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
	q.number, q.waiting = 0, make([]mailer.ReceiptMail, mailer.MaxWaiting-1)
	for i, want := range []error{nil, mailer.ErrBusy, nil, mailer.ErrBusy} {
		if i == 2 { // other merchants have no mail waiting; one more uses up this one's share
			q.number, q.waiting, q.ofMerchant = 0, make([]mailer.ReceiptMail, mailer.MaxWaiting/2), mailer.MaxWaiting/2-1
		} else if i == 3 {
			q.ofMerchant++
		}
		if err := m.Queue(t.Context(), "inv_1", "en", payer); !errors.Is(err, want) {
			t.Errorf("with %d mails waiting: %v, want %v", len(q.waiting), err, want)
		}
	}
}

// TestTwoMailersShareTheQueue checks that each mail is sent once.
func TestTwoMailersShareTheQueue(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		addInvoices(t, s, "inv_1", "inv_2", "inv_3")
		all := make(chan struct{})
		var mu sync.Mutex
		sent := 0
		server := startSMTP(t, func(server *smtpServer) {
			server.taken = func(received) {
				mu.Lock()
				defer mu.Unlock()
				if sent++; sent == 15 {
					close(all)
				}
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		for n := range 2 {
			m := mailer.New(mailer.Config{
				Store: mailer.NewTables(s), Compose: compose, Sender: server.client(mailer.StartTLS), Now: time.Now, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.DiscardHandler),
			})
			for i := range 3 * mailer.MaxOfInvoice {
				if i%2 == n {
					if err := m.Queue(ctx, fmt.Sprint("inv_", i%3+1), "en", payer); err != nil {
						t.Fatal(err)
					}
				}
			}
			running.Go(func() { m.Run(ctx) })
		}
		<-all
		ids := make(map[string]int)
		for _, mail := range server.all() {
			ids[mail.header(t).Get("Message-Id")]++
		}
		for id, n := range ids {
			if n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
		if len(ids) != 15 {
			t.Errorf("%d mails were sent, want 15", len(ids))
		}
	})
}
