package mailer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// receiptOf returns a receipt at a time.
func receiptOf(id string, at int64) mailer.Mail {
	return mailer.Mail{InvoiceID: id, Kind: mailer.Receipt, Language: "de", Recipient: "ada@example.com", CreatedAt: invoice.Unix(at), SendAt: invoice.Unix(at)}
}

// ended returns a mail with an outcome.
func ended(m mailer.Mail, state mailer.State, at int64, text string) mailer.Mail {
	m.State, m.EndedAt, m.Error = state, invoice.Unix(at), text
	return m
}

// lease leases due mails for a minute, up to limit, in the order of the lanes.
func lease(t *testing.T, s *db.DB, now int64, limit int) (leased []mailer.Mail) {
	t.Helper()
	at, last := invoice.Unix, [3]string{}
	for _, lane := range []mailer.Lane{mailer.Asked, mailer.Reminders, mailer.Retries} {
		for len(leased) < limit {
			m, err := mailer.NewTables(s).LeaseMail(t.Context(), mailer.LeaseRequest{Lane: lane, Wall: at(now), Now: at(now), Until: at(now + 60), After: last[lane]})
			if errors.Is(err, db.ErrNotFound) {
				break
			}
			rowtest.Must(t, err)
			leased, last[lane] = append(leased, m), m.MerchantID
		}
	}
	return leased
}

// TestMails queues mails, leases them, and records outcomes.
func TestMails(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m"), rowtest.Sample("inv_3", "other"))
		ctx, at, mails := t.Context(), invoice.Unix, mailer.NewTables(s)
		for _, id := range []string{"inv_1", "inv_1", "inv_2"} {
			rowtest.Must(t, mails.QueueMail(ctx, receiptOf(id, 1000), nil))
		}
		for limit, want := range map[int]int{2: 2, 9: 3} {
			if got, own, err := mails.CountWaiting(ctx, "inv_2", limit); err != nil || got != want || own != want {
				t.Errorf("%d mails wait, up to %d, %d of the merchant; want %d, %v", got, limit, own, want, err)
			}
		}
		if got, own, err := mails.CountWaiting(ctx, "inv_3", 9); err != nil || got != 3 || own != 0 {
			t.Errorf("%d mails wait, %d of another merchant; want 3 and 0, %v", got, own, err)
		}
		lease := func(now int64, want int) []mailer.Mail {
			t.Helper()
			leased := lease(t, s, now, 2)
			if len(leased) != want {
				t.Fatalf("at %d, %d mails are leased, want %d", now, len(leased), want)
			}
			return leased
		}
		lease(999, 0)
		first := lease(1000, 2)
		last := lease(1000, 1)
		lease(1059, 0)
		again := lease(1060, 2) // the leases have ended
		for _, m := range first {
			if err := mails.EndMail(ctx, ended(m, mailer.Sent, 1061, "")); !errors.Is(err, db.ErrConflict) {
				t.Errorf("the outcome of a lease that ended: %v", err)
			}
		}
		want := first[0]
		want.Attempts = 2
		expect.NoDiff(t, cmp.Diff(want, byNumber(again, want)), "leased again")
		rowtest.Must(t, mails.EndMail(ctx, ended(again[0], mailer.Sent, 1061, "")))
		again[1].Error = "450 later"
		rowtest.Must(t, mails.RetryMail(ctx, again[1], at(5000)))
		expect.Error(t, db.ErrConflict, "a mail that was sent")(mails.RetryMail(ctx, again[0], at(1)))
		late := lease(1060, 1)
		if late[0].InvoiceID != last[0].InvoiceID || late[0].Number != last[0].Number {
			t.Errorf("%+v is leased, want %+v", late, last)
		}
		rowtest.Must(t, mails.EndMail(ctx, ended(late[0], mailer.Failed, 1062, "550 no")))
		lease(4999, 0)
		if got := lease(5000, 1); got[0].Error != "450 later" {
			t.Errorf("the failure is %q", got[0].Error)
		}
		if n, _, err := mails.CountWaiting(ctx, "inv_1", 9); err != nil || n != 1 {
			t.Errorf("%d mails wait, want 1: %v", n, err)
		}
		for _, m := range slices.Concat(listed(t, s, "inv_1"), listed(t, s, "inv_2")) {
			if (m.Recipient != "") != (m.State == mailer.Waiting) {
				t.Errorf("a receipt that is %s has the address %q", m.State, m.Recipient)
			}
		}
	})
}

// listed returns the mails of an invoice.
func listed(t *testing.T, s *db.DB, id string) []mailer.Mail {
	t.Helper()
	all, err := mailer.NewReader(s).InvoiceMails(t.Context(), id)
	rowtest.Must(t, err)
	return all
}

// byNumber returns the mail with the invoice and number of another one.
func byNumber(mails []mailer.Mail, of mailer.Mail) (found mailer.Mail) {
	for _, m := range mails {
		if m.InvoiceID == of.InvoiceID && m.Number == of.Number {
			found = m
		}
	}
	return found
}

// invoiceOf returns the mail of an invoice to a mailbox at a time, and its reminders at other times.
func invoiceOf(id, mailbox string, at int64, hours ...int) (m mailer.Mail, reminders []mailer.Mail) {
	m = mailer.Mail{
		InvoiceID: id, Kind: mailer.Invoice, Recipient: mailbox + "@example.com", Mailbox: strings.Repeat(mailbox, 64), Token: strings.Repeat(mailbox+id[4:], 13),
		SentBy: "maria", CreatedAt: invoice.Unix(at), SendAt: invoice.Unix(at),
	}
	for _, h := range hours {
		r := m
		r.Kind, r.Hours, r.SendAt = mailer.Reminder, h, invoice.Unix(at+int64(h))
		reminders = append(reminders, r)
	}
	return m, reminders
}

// TestCancel changes the recipient of an invoice, erases a customer, and begins a recovery. The mails that waited are not
// sent.
func TestCancel(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m"), rowtest.Sample("inv_3", "other"))
		ctx, mails := t.Context(), mailer.NewTables(s)
		queue := func(id, address string, now int64, hours ...int) {
			t.Helper()
			m, reminders := invoiceOf(id, address[:1], now, hours...)
			for _, mail := range append([]*mailer.Mail{&m}, pointers(reminders)...) {
				mail.Recipient, mail.Mailbox = address, mailer.MailboxOf(address)
			}
			rowtest.Must(t, mails.QueueMail(ctx, m, reminders))
		}
		wants := func(when string, want ...string) {
			t.Helper()
			var got []string
			for _, id := range []string{"inv_1", "inv_2", "inv_3"} {
				for _, m := range listed(t, s, id) {
					got = append(got, fmt.Sprintf("%s %d %s %s %q", m.InvoiceID, m.Number, m.Kind, m.State, m.Recipient))
				}
			}
			expect.NoDiff(t, cmp.Diff(want, got), "%s", when)
		}
		rowtest.Must(t, mails.QueueMail(ctx, receiptOf("inv_1", 900), nil))
		queue("inv_1", "anna@example.com", 1000, 5, 5000)
		queue("inv_1", "bob@example.com", 2000, 6000) // of the first reminders, one is due
		wants("to another address", `inv_1 1 receipt waiting "ada@example.com"`, `inv_1 2 invoice canceled "anna@example.com"`,
			`inv_1 3 reminder canceled "anna@example.com"`, `inv_1 5 invoice waiting "bob@example.com"`, `inv_1 6 reminder waiting "bob@example.com"`)

		queue("inv_2", "anna@example.com", 3000)
		queue("inv_3", "anna@example.com", 3000)
		rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error {
			return errors.Join(mailer.Erase(ctx, tx, "m", "Anna+shop@example.com"), mailer.Erase(ctx, tx, "m", "customer 7"))
		}))
		wants("erased", `inv_1 1 receipt waiting "ada@example.com"`, `inv_1 2 invoice canceled ""`, `inv_1 3 reminder canceled ""`, `inv_1 5 invoice waiting "bob@example.com"`,
			`inv_1 6 reminder waiting "bob@example.com"`, `inv_2 1 invoice canceled ""`, `inv_3 1 invoice waiting "anna@example.com"`)

		rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error { return mailer.CancelAll(ctx, tx) }))
		wants("recovered", `inv_1 1 receipt canceled ""`, `inv_1 2 invoice canceled ""`, `inv_1 3 reminder canceled ""`, `inv_1 5 invoice canceled "bob@example.com"`,
			`inv_1 6 reminder canceled "bob@example.com"`, `inv_2 1 invoice canceled ""`, `inv_3 1 invoice canceled "anna@example.com"`)
		if leased := lease(t, s, 90_000, 9); len(leased) > 0 {
			t.Errorf("%+v are leased", leased)
		}
	})
}

// pointers returns pointers to the mails.
func pointers(mails []mailer.Mail) (all []*mailer.Mail) {
	for i := range mails {
		all = append(all, &mails[i])
	}
	return all
}

// TestQueueDoesNotWaitForPayments queues a mail while a transaction has a row that refers to the merchant, as one has
// that stores a block of payments.
func TestQueueDoesNotWaitForPayments(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.MigratedPostgres(t))
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error {
		locked, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT id FROM merchants WHERE id = 'm' FOR KEY SHARE")
		if err == nil && len(locked) != 1 {
			err = errors.New("there is no merchant")
		}
		return errors.Join(err, mailer.NewTables(s).QueueMail(ctx, receiptOf("inv_1", 1000), nil))
	}))
}

// words describes the mails of an invoice.
func words(mails []mailer.Mail) (all []string) {
	for _, m := range mails {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%d %s %s %s %d", m.Number, m.Kind, m.Language, m.State, m.Hours), " 0"))
	}
	return all
}

// TestReminders replaces and drops reminders, leases them last, and stops the mails to a mailbox.
func TestReminders(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m"), rowtest.Sample("inv_3", "other"))
		ctx, at, mails := t.Context(), invoice.Unix, mailer.NewTables(s)
		queue := func(id, mailbox string, now int64, hours ...int) error {
			m, reminders := invoiceOf(id, mailbox, now, hours...)
			return mails.QueueMail(ctx, m, reminders)
		}
		wants := func(id string, want ...string) {
			t.Helper()
			expect.NoDiff(t, cmp.Diff(want, words(listed(t, s, id))), "mails of %s", id)
		}
		rowtest.Must(t, mails.QueueMail(ctx, receiptOf("inv_1", 900), nil))
		rowtest.Must(t, queue("inv_1", "a", 1000, 10, 20))
		wants("inv_1", "1 receipt de waiting", "2 invoice de waiting", "3 reminder de waiting 10", "4 reminder de waiting 20")
		rowtest.Must(t, queue("inv_1", "a", 1010, 10, 30)) // the first reminder is due
		wants("inv_1", "1 receipt de waiting", "2 invoice de waiting", "3 reminder de waiting 10", "6 reminder de waiting 30")
		leased := lease(t, s, 1010, 9)
		expect.NoDiff(t, cmp.Diff([]string{"1 receipt de waiting", "2 invoice de waiting", "3 reminder de waiting 10"}, words(leased)), "leased")
		rowtest.Must(t, mails.DropReminders(ctx, "inv_1", at(1010)))
		wants("inv_1", "1 receipt de waiting", "2 invoice de waiting", "3 reminder de waiting 10")

		rowtest.Must(t, queue("inv_2", "a", 1020, 5)) // in the language of the mailbox
		wants("inv_2", "1 invoice de waiting", "2 reminder de waiting 5")
		rowtest.Must(t, queue("inv_3", "a", 1020, 5)) // another merchant's
		wants("inv_3", "1 invoice en waiting", "2 reminder en waiting 5")
		token := strings.Repeat("a1", 13)
		rowtest.Must(t, mails.StopMails(ctx, token, true, at(1030)))
		rowtest.Must(t, mails.StopMails(ctx, token, true, at(1031)))
		wants("inv_1", "1 receipt de waiting", "2 invoice de stopped", "3 reminder de stopped 10")
		wants("inv_2", "1 invoice de stopped", "2 reminder de stopped 5")
		wants("inv_3", "1 invoice en waiting", "2 reminder en waiting 5")
		if err := mails.EndMail(ctx, ended(leased[1], mailer.Sent, 1040, "")); !errors.Is(err, db.ErrConflict) {
			t.Errorf("a mail was sent after it was stopped: %v", err)
		}
		expect.Error(t, mailer.ErrStopped, "a mail that is being sent")(mails.CheckMail(ctx, leased[1], at(1040)))
		expect.Error(t, mailer.ErrStopped, "a mail to a mailbox that wants none")(queue("inv_2", "a", 9000))
		if m, stopped, err := mails.MailByToken(ctx, token); err != nil || !stopped || m.MerchantID != "m" {
			t.Errorf("%+v, stopped %t, %v", m, stopped, err)
		}
		rowtest.Must(t, mails.StopMails(ctx, token, false, at(1050)))
		rowtest.Must(t, queue("inv_2", "a", 9000, 7))
		leased = lease(t, s, 9000, 9)
		failed := slices.IndexFunc(leased, func(m mailer.Mail) bool { return m.InvoiceID == "inv_2" })
		rowtest.Must(t, mails.EndMail(ctx, ended(leased[failed], mailer.Failed, 9001, "550 no")))
		wants("inv_2", "1 invoice de stopped", "2 reminder de stopped 5", "3 invoice de failed", "4 reminder de canceled 7")
		expect.Error(t, db.ErrNotFound, "an unknown token")(mails.StopMails(ctx, "unknown", true, at(1)))
	})
}

// TestMailLimits reaches each limit of invoices that are sent.
func TestMailLimits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var samples []invoice.Invoice
		const most = 4
		for n := range 2 * mailer.MaxOfMailbox {
			samples = append(samples, rowtest.Sample(fmt.Sprintf("inv_%d", n), []string{"m", "n", "o", "p"}[n%most]))
		}
		rowtest.Insert(t, s, samples...)
		ctx, mails := t.Context(), mailer.NewTables(s)
		now := int64(1000)
		queue := func(id, mailbox string) error {
			m, _ := invoiceOf(id, mailbox, now)
			return mails.QueueMail(ctx, m, nil)
		}
		for n := range mailer.MaxOfInvoice { // again and again, each time after a pause
			rowtest.Must(t, queue("inv_0", "a"))
			rowtest.Must(t, queue("inv_0", "a"))
			expect.Equal(t, len(listed(t, s, "inv_0")), n+1, "mails were queued:")
			now += int64(mailer.Again / time.Second)
		}
		expect.Error(t, mailer.ErrTooMany, "an invoice is sent once more")(queue("inv_0", "b"))
		sent := map[string]int{}
		for _, inv := range samples[1:] { // to one mailbox
			if err := queue(inv.ID, "c"); err == nil {
				sent[inv.MerchantID]++
			} else if !errors.Is(err, mailer.ErrTooMany) {
				t.Fatal(err)
			}
		}
		if all := sent["m"] + sent["n"] + sent["o"] + sent["p"]; all != mailer.MaxOfMailbox {
			t.Errorf("a mailbox gets %d mails of all merchants", all)
		}
		for n := range mailer.MaxToMailbox + 1 {
			if err := queue(fmt.Sprintf("inv_%d", most*(n+1)), "d"); (err == nil) != (n < mailer.MaxToMailbox) {
				t.Errorf("mail %d of a merchant to a mailbox: %v", n+1, err)
			}
		}
		reminder, _ := invoiceOf("inv_8", "d", now)
		reminder.Kind, reminder.MerchantID = mailer.Reminder, "m"
		if err := mails.CheckMail(ctx, reminder, invoice.Unix(now)); !errors.Is(err, mailer.ErrTooMany) {
			t.Errorf("a reminder to a mailbox with %d mails of today: %v", mailer.MaxToMailbox, err)
		}
		for _, m := range listed(t, s, "inv_8") { // they were counted when they were queued
			rowtest.Must(t, mails.CheckMail(ctx, m, invoice.Unix(now)))
		}
		now += int64(mailer.Day / time.Second)
		if err := mails.CheckMail(ctx, reminder, invoice.Unix(now)); !errors.Is(err, mailer.ErrLater) {
			t.Errorf("a reminder to a mailbox without mails of today, before the invoice: %v", err)
		}
		rowtest.Must(t, queue("inv_4", "d"))
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { // all mails of a merchant but two
			_, err := tx.Exec(ctx, `INSERT INTO mails (invoice_id, number, merchant_id, kind, language, mailbox, token, state, created_at, send_at, ended_at)
				SELECT 'inv_12', 100 + n.i, 'm', 'invoice', 'en', $2, $2, 'sent', $3, $3, $3
				FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT i FROM n) AS n`, mailer.MaxOfMerchant-2, strings.Repeat("e", 64), now)
			return err
		})
		rowtest.Must(t, queue("inv_4", "f"))
		expect.Error(t, mailer.ErrTooMany, "a merchant sends a mail more than %d", mailer.MaxOfMerchant)(queue("inv_4", "g"))
		if err := mails.CheckMail(ctx, reminder, invoice.Unix(now)); !errors.Is(err, mailer.ErrTooMany) {
			t.Errorf("a reminder of a merchant with %d mails of today: %v", mailer.MaxOfMerchant, err)
		}
		rowtest.Must(t, queue("inv_5", "g")) // another merchant's
	})
}
