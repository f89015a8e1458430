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

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestLeases leases mails of three merchants in their turns, by both clocks. The schedule's clock is behind.
func TestLeases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "a"), rowtest.Sample("inv_2", "b"), rowtest.Sample("inv_3", "c"))
		ctx, at, mails := t.Context(), invoice.Unix, mailer.NewTables(s)
		const wall, now = 5000, 1000
		for _, id := range []string{"inv_1", "inv_1", "inv_1", "inv_2", "inv_3"} {
			m, reminders := invoiceOf(id, "a", wall, 10)
			m.Due = at(now)
			m.CreatedAt = at(wall + int64(len(listed(t, s, id)))*int64(mailer.Again/time.Second)) // each is another one
			if len(listed(t, s, id)) > 0 {
				reminders = nil
			}
			rowtest.Must(t, mails.QueueMail(ctx, m, reminders))
		}
		last := [3]string{}
		next := func(lane mailer.Lane, wall, now int64, full ...string) string {
			r := mailer.LeaseRequest{Lane: lane, Wall: at(wall), Now: at(now), Until: at(now + 60), After: last[lane]}
			copy(r.Full[:], full)
			m, err := mails.LeaseMail(ctx, r)
			if errors.Is(err, db.ErrNotFound) {
				return "none"
			}
			rowtest.Must(t, err)
			last[lane] = m.MerchantID
			return fmt.Sprint(m.MerchantID, m.Number)
		}
		for i, c := range []struct{ got, want string }{
			{next(mailer.Asked, wall, now-1), "none"},
			{next(mailer.Asked, wall, now), "a1"},
			{next(mailer.Asked, wall, now), "b1"},
			{next(mailer.Asked, wall, now, "b", "c"), "a3"},
			{next(mailer.Asked, wall, now, "a", "c"), "none"},
			{next(mailer.Asked, wall, now), "c1"},
			{next(mailer.Asked, wall, now), "a4"},
			{next(mailer.Asked, wall, now), "none"},
			{next(mailer.Reminders, wall+9, wall+10), "none"}, // by the machine's clock only
			{next(mailer.Reminders, wall+10, now), "a2"},
			{next(mailer.Retries, wall+10, now+59), "none"}, // by the schedule's clock only
			{next(mailer.Retries, now, now+60), "a1"},
			{next(mailer.Retries, now, now+60), "b1"},
			{next(mailer.Retries, now, now+60), "c1"},
			{next(mailer.Reminders, wall+10, now), "b2"},
		} {
			expect.Equal(t, c.got, c.want, "lease %d is", i)
		}
	})
}

// TestRemindersFollowTheInvoice checks that a reminder waits for the mail of its invoice, ends with it, and gives way to a
// later one.
func TestRemindersFollowTheInvoice(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m"))
		ctx, at, mails := t.Context(), invoice.Unix, mailer.NewTables(s)
		for _, id := range []string{"inv_1", "inv_2"} {
			m, reminders := invoiceOf(id, "a", 1000, 10, 20, 30)
			rowtest.Must(t, mails.QueueMail(ctx, m, reminders))
		}
		check := func(number int, now int64, want error) {
			t.Helper()
			expect.Error(t, want, "at %d, mail %d", now, number)(mails.CheckMail(ctx, listed(t, s, "inv_1")[number-1], at(now)))
		}
		check(2, 1010, mailer.ErrLater)
		asked := lease(t, s, 1000, 9)
		check(2, 1010, mailer.ErrLater)
		rowtest.Must(t, mails.EndMail(ctx, ended(byNumber(asked, listed(t, s, "inv_1")[0]), mailer.Sent, 1011, "")))
		check(2, 1019, nil)
		check(2, 1020, mailer.ErrUnwanted)
		check(3, 1020, nil)
		rowtest.Must(t, mails.EndMail(ctx, ended(lease(t, s, 1010, 1)[0], mailer.Failed, 1012, "550 no")))
		canceled := byNumber(asked, listed(t, s, "inv_2")[0])
		canceled.State = mailer.Canceled
		rowtest.Must(t, mails.EndMail(ctx, canceled))
		for id, want := range map[string][]string{
			"inv_1": {"1 invoice en sent", "2 reminder en failed 10", "3 reminder en canceled 20", "4 reminder en canceled 30"},
			"inv_2": {"1 invoice en canceled", "2 reminder en canceled 10", "3 reminder en canceled 20", "4 reminder en canceled 30"},
		} {
			expect.NoDiff(t, cmp.Diff(want, words(listed(t, s, id))), "mails of %s", id)
		}
	})
}

// TestSlowMails sends mails while the server does not answer for one merchant's receipts. That holds up no other
// merchant, and takes MaxInFlightOfMerchant places.
func TestSlowMails(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.SQLite(t))
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "slow"), rowtest.Sample("inv_2", "other"), rowtest.Sample("inv_3", "third"))
	release, sent := make(chan struct{}), make(chan string, 20)
	var mu sync.Mutex
	slow, most, all := 0, 0, 0
	m := mailer.New(mailer.Config{
		Store: mailer.NewTables(s), Compose: compose, Now: time.Now, Schedule: time.Now, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.DiscardHandler),
		Sender: senderFunc(func(_ context.Context, id, _ string, _ mailer.Message) error {
			count := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				if all += n; strings.HasPrefix(id, "inv_1") {
					slow += n
				}
				if most = max(most, slow); all > mailer.MaxInFlight {
					t.Errorf("%d mails are in flight", all)
				}
			}
			count(1)
			if strings.HasPrefix(id, "inv_1") {
				<-release
			}
			count(-1)
			sent <- id
			return nil
		}),
	})
	for _, id := range []string{"inv_1", "inv_2", "inv_3"} {
		for range mailer.MaxOfInvoice {
			rowtest.Must(t, m.Queue(t.Context(), id, "en", payer))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	for i := range 3 * mailer.MaxOfInvoice {
		if id := <-sent; i < 2*mailer.MaxOfInvoice && strings.HasPrefix(id, "inv_1") {
			t.Errorf("%s was sent", id)
		}
		if i == 2*mailer.MaxOfInvoice-1 {
			close(release)
		}
	}
	cancel()
	running.Wait()
	expect.Equal(t, most, mailer.MaxInFlightOfMerchant, "mails of a merchant were in flight:")
}

// TestLanes has reminders and retries due without end, which do not answer. A mail that somebody asked for still has a
// place, and each lane has a turn.
func TestLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &lanes{due: map[mailer.Lane]bool{mailer.Reminders: true, mailer.Retries: true}}
		hang, done := make(chan struct{}), make(chan struct{})
		m := mailer.New(mailer.Config{
			Store: q, Compose: compose, Now: time.Now, Schedule: time.Now, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.DiscardHandler),
			Sender: senderFunc(func(context.Context, string, string, mailer.Message) error {
				<-hang
				return nil
			}),
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			m.Run(ctx)
			close(done)
		}()
		synctest.Wait()
		wants := func(want ...mailer.Lane) {
			t.Helper()
			expect.NoDiff(t, cmp.Diff(want, q.leased), "leased")
		}
		wants(mailer.Reminders, mailer.Retries, mailer.Reminders)
		q.set(mailer.Asked, true)
		<-time.After(time.Minute)
		synctest.Wait()
		wants(mailer.Reminders, mailer.Retries, mailer.Reminders, mailer.Asked)
		for range 3 { // the others end
			hang <- struct{}{}
		}
		synctest.Wait()
		if diff := cmp.Diff(7, len(q.leased)); diff != "" {
			t.Errorf("leased in all: %s", diff)
		}
		seen := map[mailer.Lane]bool{}
		for _, lane := range q.leased[3:] {
			seen[lane] = true
		}
		if len(seen) != 3 {
			t.Errorf("lanes without a turn: %v", q.leased)
		}
		cancel()
		close(hang)
		<-done
	})
}

// lanes is a store in which mails of some lanes are always due, each of another merchant.
type lanes struct {
	mailer.Store
	mu     sync.Mutex
	due    map[mailer.Lane]bool
	leased []mailer.Lane
}

func (l *lanes) set(lane mailer.Lane, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due[lane] = due
}

func (l *lanes) LeaseMail(_ context.Context, r mailer.LeaseRequest) (mailer.Mail, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.due[r.Lane] {
		return mailer.Mail{}, db.ErrNotFound
	}
	l.leased = append(l.leased, r.Lane)
	return mailer.Mail{Kind: mailer.Receipt, MerchantID: fmt.Sprint(len(l.leased)), State: mailer.Waiting, Attempts: 1}, nil
}

func (l *lanes) EndMail(context.Context, mailer.Mail) error { return nil }

// TestOutage sends a reminder that became due during an outage of 30 hours, of which the schedule's clock counts one.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expires time.Duration
		want    string
	}{
		"time is left": {40 * time.Hour, "sent after 1 attempts, 30h0m0s at 30h0m0s"},
		"not due yet":  {56 * time.Hour, "sent after 1 attempts, 32h0m0s at 32h0m0s"},
		"too late":     {29 * time.Hour, "canceled after 1 attempts, 30h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, behind := &queue{start: time.Now()}, time.Duration(0)
				m := mailer.New(mailer.Config{
					Store: q, Now: time.Now, Schedule: func() time.Time { return time.Now().Add(-behind) }, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.DiscardHandler),
					Compose: func(context.Context, mailer.Mail) (mailer.Message, error) {
						return mailer.Message{}, map[bool]error{true: mailer.ErrUnwanted}[time.Since(q.start) > c.expires]
					},
					Sender: senderFunc(func(context.Context, string, string, mailer.Message) error { return nil }),
				})
				run := func(d time.Duration) {
					ctx, cancel := context.WithTimeout(t.Context(), d)
					defer cancel()
					m.Run(ctx)
				}
				inv := invoice.Invoice{ID: "inv_1", Terms: invoice.Terms{ExpiresAt: q.start.Add(c.expires)}}
				rowtest.Must(t, m.SendInvoice(t.Context(), mailer.Order{Invoice: inv, Address: payer, ReminderHours: []int{-24}}))
				run(time.Minute)
				<-time.After(30*time.Hour - time.Minute)
				behind = 29 * time.Hour
				run(48 * time.Hour)
				if got := q.outcomes[len(q.outcomes)-1]; len(q.outcomes) != 2 || got+q.at() != c.want {
					t.Errorf("outcomes %q at%s, want %s", q.outcomes, q.at(), c.want)
				}
			})
		})
	}
}

// TestOutcomeIsNotStored sends a mail while the database takes no outcome for a while, or never.
func TestOutcomeIsNotStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails func(attempt int, since time.Duration) bool
		sent  int
		want  string
	}{
		"for a while":     {func(_ int, since time.Duration) bool { return since < 30*time.Second }, 1, "sent after 1 attempts, 1m0s"},
		"for an attempt":  {func(n int, _ time.Duration) bool { return n == 1 }, 2, "sent after 2 attempts, 2m0s"},
		"in all attempts": {func(n int, _ time.Duration) bool { return n <= mailer.MaxAttempts }, mailer.MaxAttempts, "failed after 15 attempts, 29m0s it could not be handed to the mail server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q, sent := &queue{start: time.Now()}, 0
				q.store = func(m mailer.Mail) error {
					if !time.Now().Before(q.due) {
						t.Errorf("attempt %d is recorded after its lease", m.Attempts)
					}
					return map[bool]error{true: errors.New("the disk is full")}[c.fails(m.Attempts, time.Since(q.start))]
				}
				m := mailer.New(mailer.Config{
					Store: q, Compose: compose, Now: time.Now, Schedule: time.Now, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.DiscardHandler),
					Sender: senderFunc(func(context.Context, string, string, mailer.Message) error {
						sent++
						return nil
					}),
				})
				rowtest.Must(t, m.Queue(t.Context(), "inv_1", "en", payer))
				ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
				defer cancel()
				m.Run(ctx)
				if sent != c.sent || len(q.outcomes) != 1 || q.outcomes[0] != c.want || q.tries > 8*(mailer.MaxAttempts+1) {
					t.Errorf("%d times sent, %d stored: %q, want %d and %s", sent, q.tries, q.outcomes, c.sent, c.want)
				}
			})
		})
	}
}
