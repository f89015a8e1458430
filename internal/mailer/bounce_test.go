package mailer_test

import (
	"embed"
	"errors"
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// reports are messages in the forms of mail systems, about the mail MAIL-ID.
//
//go:embed testdata/reports
var reports embed.FS

// reportOf returns a message of reports about a mail.
func reportOf(tb testing.TB, name, id string) string {
	tb.Helper()
	raw, err := reports.ReadFile(path.Join("testdata/reports", name+".eml"))
	expect.OK(tb, err)
	return strings.NewReplacer("MAIL-ID", id, "MAIL-=\nID", id[:20]+"=\n"+id[20:]).Replace(string(raw))
}

// returned returns the message of Postfix with another status.
func returned(t *testing.T, m mailer.Mail, status string) []byte {
	t.Helper()
	return []byte(strings.ReplaceAll(reportOf(t, "postfix", mailer.IDOf(m)), "5.1.1", status))
}

var reported = mailer.Mail{InvoiceID: "inv_06h2ke1ppnx01av17s9hnrfejr", Number: 12, Token: token()}

// TestReadReport reads messages of four mail systems, as they are and as others pass them on.
func TestReadReport(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"postfix":  "550 5.1.1 <…>: Recipient address rejected: User unknown in virtual mailbox table",
		"exchange": "554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException.MapiExceptionShutoffQuotaExceeded; Failed to process message",
		"gmail":    "550-5.7.1 [192.0.2.1] The IP you're using to send mail is not authorized to 550 5.7.1 send email directly to our servers.",
		"exim":     "4.4.7",
		"delayed":  "",
	} {
		text := reportOf(t, name, mailer.IDOf(reported))
		for form, message := range map[string]string{
			"as it is": text, "with CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "to a program": "From MAILER-DAEMON  Mon Nov 30 10:12:44 2026\n" + text,
			"cut off": text[:strings.LastIndex(text, "MIME-Version")],
		} {
			if name == "exim" && form == "cut off" {
				continue
			}
			b, err := mailer.ReadReport([]byte(message))
			if err != nil || b.InvoiceID != reported.InvoiceID || b.Number != 12 || b.Failed != (name != "delayed") || b.Reason != want {
				t.Errorf("%s %s: %+v, %v", name, form, b, err)
			}
		}
	}
}

// TestReadReportRefuses names what a message lacks.
func TestReadReportRefuses(t *testing.T) {
	t.Parallel()
	whole := reportOf(t, "postfix", mailer.IDOf(reported))
	deep := "Content-Type: message/delivery-status\n\nAction: failed\n\n" + mailer.IDOf(reported)
	for _, b := range []string{"b1", "b2", "b3", "b4", "b5", "b6"} {
		deep = "Content-Type: multipart/mixed; boundary=" + b + "\n\n--" + b + "\n" + deep + "\n--" + b + "--\n"
	}
	for message, lacks := range map[string]string{
		"": "no header", "x": "no header",
		"Subject: I am away\n\n" + mailer.IDOf(reported):             "delivery-status",
		strings.Replace(whole, "Action: failed\n", "", 1):            "with an Action",
		reportOf(t, "postfix", strings.Repeat("none ", 20)):          "Message-ID or X-Quittance-Mail",
		strings.ReplaceAll(whole, mailer.IDOf(reported), "inv_1.1."): "Message-ID or X-Quittance-Mail",
		deep: "delivery-status",
	} {
		if b, err := mailer.ReadReport([]byte(message)); !errors.Is(err, mailer.ErrNoReport) || !strings.Contains(err.Error(), lacks) {
			t.Errorf("%.60q: %+v, %v, want an error with %q", message, b, err, lacks)
		}
	}
}

// FuzzReadReport reads messages of strangers.
func FuzzReadReport(f *testing.F) {
	for _, name := range []string{"postfix", "exchange", "gmail", "exim", "delayed"} {
		f.Add([]byte(reportOf(f, name, mailer.IDOf(reported))))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		b, err := mailer.ReadReport(message)
		if err != nil {
			return
		}
		if b.InvoiceID == "" || b.Number < 1 || b.Failed == (b.Reason == "") {
			t.Errorf("read as %+v", b)
		}
		if !utf8.ValidString(b.Reason) || utf8.RuneCountInString(b.Reason) > 500 || strings.ContainsFunc(b.Reason, unicode.IsControl) {
			t.Errorf("the reason is %q", b.Reason)
		}
	})
}

// TestBounces returns mails of three invoices to a mailbox. Only who has a mail can return it.
func TestBounces(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m"), rowtest.Sample("inv_3", "other"))
		ctx, at, mails := t.Context(), invoice.Unix, mailer.NewTables(s)
		const mailbox = "ada@example.com"
		for _, id := range []string{"inv_1", "inv_2", "inv_3"} {
			m := mailer.Mail{
				InvoiceID: id, Kind: mailer.Invoice, Language: "de", Recipient: mailbox, Mailbox: mailer.MailboxOf(mailbox), Token: strings.Repeat(id, 5),
				CreatedAt: at(1000), SendAt: at(1000),
			}
			r := m
			r.Kind, r.Hours, r.SendAt = mailer.Reminder, 1, at(5000)
			rowtest.Must(t, mails.QueueMail(ctx, m, []mailer.Mail{r}))
			receipt := receiptOf(id, 1000)
			receipt.Token = strings.Repeat("receipt of "+id, 2)
			rowtest.Must(t, mails.QueueMail(ctx, receipt, nil))
		}
		sent := lease(t, s, 1000, 6)
		byID := make(map[string]mailer.Mail)
		for _, m := range sent {
			byID[m.InvoiceID+" "+string(m.Kind)] = m
			if m.InvoiceID != "inv_2" { // whose outcome the service did not learn
				rowtest.Must(t, mails.EndMail(ctx, ended(m, mailer.Sent, 1001, "")))
			}
		}
		bounce := func(m mailer.Mail, status string, at int64) error {
			b, err := mailer.ReadReport(returned(t, m, status))
			rowtest.Must(t, err)
			return mails.BounceMail(ctx, b, invoice.Unix(at))
		}
		want := func(id string, states ...string) {
			t.Helper()
			got, err := mails.InvoiceMails(ctx, id)
			rowtest.Must(t, err)
			for i, m := range got {
				is := string(m.State)
				if !m.BouncedAt.IsZero() {
					is += " " + m.EndedAt.UTC().Format("1504:05") + m.BouncedAt.UTC().Format("-1504:05 ") + strings.SplitAfter(m.Error, " <")[0]
				}
				expect.Equal(t, is, states[i], "%s, mail %d:", id, i+1)
			}
		}
		forged := byID["inv_1 invoice"]
		forged.Token = byID["inv_2 invoice"].Token
		reminder := byID["inv_1 invoice"]
		reminder.Number = 2 // with the same token
		reminder.Token = ""
		for _, m := range []mailer.Mail{forged, reminder, {InvoiceID: "inv_4", Number: 1}} {
			if err := bounce(m, "5.1.1", 1100); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("a bounce of %s by others: %v", m.InvoiceID, err)
			}
		}
		late, err := mailer.ReadReport([]byte(reportOf(t, "delayed", mailer.IDOf(byID["inv_1 invoice"]))))
		rowtest.Must(t, err)
		rowtest.Must(t, mails.BounceMail(ctx, late, at(1100)))
		want("inv_1", "sent", "waiting", "sent")

		rowtest.Must(t, bounce(byID["inv_2 invoice"], "5.1.8", 1200))
		want("inv_2", "failed 0020:00-0020:00 550 5.1.8 <", "canceled", "waiting")
		want("inv_1", "sent", "waiting", "sent") // the mailbox may exist
		if err := mails.EndMail(ctx, ended(byID["inv_2 invoice"], mailer.Sent, 1201, "")); !errors.Is(err, db.ErrConflict) {
			t.Errorf("a returned mail is sent: %v", err)
		}
		rowtest.Must(t, bounce(byID["inv_1 receipt"], "5.1.1", 1300))
		want("inv_1", "sent", "waiting", "failed 0016:41-0021:40 550 5.1.1 <")

		again := byID["inv_2 invoice"] // the merchant sends it again
		again.Token, again.CreatedAt, again.SendAt = strings.Repeat("again", 5), at(1400), at(1400)
		r := again
		r.Kind, r.Hours, r.SendAt = mailer.Reminder, 2, at(6000)
		rowtest.Must(t, mails.QueueMail(ctx, again, []mailer.Mail{r}))
		for range 2 {
			rowtest.Must(t, bounce(byID["inv_1 invoice"], "5.1.1", 1500))
			want("inv_1", "failed 0016:41-0025:00 550 5.1.1 <", "canceled", "failed 0016:41-0021:40 550 5.1.1 <")
			want("inv_2", "failed 0020:00-0020:00 550 5.1.8 <", "waiting", "waiting", "canceled")
			want("inv_3", "sent", "waiting", "sent") // of another merchant
		}
		rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error { return mailer.EraseOfInvoices(ctx, tx, []string{"inv_3"}) }))
		for _, kind := range []string{"invoice", "receipt"} {
			if err := bounce(byID["inv_3 "+kind], "5.1.1", 1600); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("a bounce of an erased %s: %v", kind, err)
			}
		}
	})
}
