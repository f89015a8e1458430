package mailer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestReceiptMails queues mails, leases them, and records outcomes.
func TestReceiptMails(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m"), rowtest.Sample("inv_3", "other"))
		ctx, at := t.Context(), invoice.Unix
		queue := func(id string, limit int) (int, error) {
			return mailer.NewTables(s).QueueReceiptMail(ctx, mailer.ReceiptMail{InvoiceID: id, Language: "de", Recipient: "ada@example.com", CreatedAt: at(1000)}, limit)
		}
		for want := 1; want <= 2; want++ {
			if got, err := queue("inv_1", 2); err != nil || got != want {
				t.Fatalf("mail %d has the number %d, %v", want, got, err)
			}
		}
		if _, err := queue("inv_1", 2); !errors.Is(err, db.ErrConflict) {
			t.Errorf("a third mail of two: %v", err)
		}
		if _, err := queue("inv_2", 1); err != nil {
			t.Errorf("a mail of another invoice: %v", err)
		}
		for limit, want := range map[int]int{2: 2, 9: 3} {
			if got, own, err := mailer.NewReader(s).CountReceiptMails(ctx, "inv_2", limit); err != nil || got != want || own != want {
				t.Errorf("%d mails wait, up to %d, %d of the merchant; want %d, %v", got, limit, own, want, err)
			}
		}
		if got, own, err := mailer.NewReader(s).CountReceiptMails(ctx, "inv_3", 9); err != nil || got != 3 || own != 0 {
			t.Errorf("%d mails wait, %d of another merchant; want 3 and 0, %v", got, own, err)
		}
		lease := func(now int64, want int) []mailer.ReceiptMail {
			t.Helper()
			leased, err := mailer.NewTables(s).LeaseReceiptMails(ctx, at(now), at(now+60), 2)
			if err != nil || len(leased) != want {
				t.Fatalf("at %d, %d mails are leased, want %d: %v", now, len(leased), want, err)
			}
			return leased
		}
		lease(999, 0)
		first := lease(1000, 2)
		last := lease(1000, 1)
		lease(1059, 0)
		again := lease(1060, 2) // the leases have ended
		for _, m := range first {
			if err := mailer.NewTables(s).EndReceiptMail(ctx, m, at(1061)); !errors.Is(err, db.ErrConflict) {
				t.Errorf("the outcome of a lease that ended: %v", err)
			}
		}
		want := first[0]
		want.Attempts = 2
		if diff := cmp.Diff(want, byNumber(again, want)); diff != "" {
			t.Errorf("leased again (-want +got):\n%s", diff)
		}
		rowtest.Must(t, mailer.NewTables(s).EndReceiptMail(ctx, again[0], at(1061)))
		rowtest.Must(t, mailer.NewTables(s).RetryReceiptMail(ctx, again[1], at(5000)))
		if err := mailer.NewTables(s).RetryReceiptMail(ctx, again[0], at(1)); !errors.Is(err, db.ErrConflict) {
			t.Errorf("a mail that was sent: %v", err)
		}
		late := lease(1060, 1)
		if late[0].InvoiceID != last[0].InvoiceID || late[0].Number != last[0].Number {
			t.Errorf("%+v is leased, want %+v", late, last)
		}
		rowtest.Must(t, mailer.NewTables(s).EndReceiptMail(ctx, late[0], time.Time{}))
		lease(4999, 0)
		lease(5000, 1)
		if n, _, err := mailer.NewReader(s).CountReceiptMails(ctx, "inv_1", 9); err != nil || n != 1 {
			t.Errorf("%d mails wait, want 1: %v", n, err)
		}
	})
}

// byNumber returns the mail with the invoice and number of another one.
func byNumber(mails []mailer.ReceiptMail, of mailer.ReceiptMail) (found mailer.ReceiptMail) {
	for _, m := range mails {
		if m.InvoiceID == of.InvoiceID && m.Number == of.Number {
			found = m
		}
	}
	return found
}

// TestReceiptMailsForgetAddresses checks that a mail that was sent or given up has no address.
func TestReceiptMailsForgetAddresses(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s := dbtest.Open(t, url)
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		for range 2 {
			if _, err := mailer.NewTables(s).QueueReceiptMail(t.Context(), mailer.ReceiptMail{InvoiceID: "inv_1", Language: "en", Recipient: "ada@example.com", CreatedAt: invoice.Unix(1)}, 2); err != nil {
				t.Fatal(err)
			}
		}
		leased, err := mailer.NewTables(s).LeaseReceiptMails(t.Context(), invoice.Unix(1), invoice.Unix(2), 2)
		rowtest.Must(t, err)
		rowtest.Must(t, mailer.NewTables(s).EndReceiptMail(t.Context(), leased[0], invoice.Unix(2)))
		rowtest.Must(t, mailer.NewTables(s).EndReceiptMail(t.Context(), leased[1], time.Time{}))
		var kept int
		rowtest.Must(t, dbtest.SQL(t, url).QueryRowContext(t.Context(), "SELECT count(*) FROM receipt_mails WHERE recipient IS NOT NULL").Scan(&kept))
		if kept != 0 {
			t.Errorf("%d addresses are kept", kept)
		}
	})
}
