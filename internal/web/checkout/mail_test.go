package checkout

import (
	"errors"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// TestMailsOfEveryState composes an invoice, a reminder before the end of the time to pay and one after it, in every
// state of an invoice.
func TestMailsOfEveryState(t *testing.T) {
	part := payment(2_000_000, 11, defaultNow, invoice.Confirmed)
	pending := payment(2_000_000, 11, defaultNow, invoice.Pending)
	dust := payment(1, 11, defaultNow, invoice.Pending)
	dust.Method = invoice.ByCalldata
	late := payment(4_900_123, 11, expires+9, invoice.Confirmed)
	full := payment(4_900_123, 11, defaultNow, invoice.Pending)
	unwanted, later := mailer.ErrUnwanted, mailer.ErrLater
	for _, c := range []struct {
		name                   string
		set                    func(*world)
		invoice, before, after error
	}{
		{"waiting", func(*world) {}, nil, nil, later},
		{"dust", func(w *world) { w.payments = []invoice.Payment{dust} }, nil, nil, later},
		{"part", func(w *world) { w.payments = []invoice.Payment{part} }, nil, nil, later},
		{"part, pending", func(w *world) { w.payments = []invoice.Payment{pending} }, later, later, later},
		{"all, pending", func(w *world) { w.payments = []invoice.Payment{full} }, later, later, later},
		{"blocks are missing", func(w *world) { w.now = expires + 1 }, later, later, later},
		{"paid", func(w *world) { w.invoice.Status = invoice.Paid }, unwanted, unwanted, unwanted},
		{"void", func(w *world) { w.invoice.Status = invoice.Void }, unwanted, unwanted, unwanted},
		{"draft", func(w *world) { w.invoice.Status = invoice.Drafted }, unwanted, unwanted, unwanted},
		{"expired", func(w *world) { w.invoice.Status = invoice.Expired }, unwanted, unwanted, nil},
		{"expired, paid late", func(w *world) {
			w.invoice.Status, w.invoice.Exception, w.payments = invoice.Expired, invoice.Late, []invoice.Payment{late}
		}, unwanted, unwanted, unwanted},
		{"to another address", func(w *world) { w.invoice.Details.Customer.Email = "bob@example.com" }, nil, unwanted, unwanted},
		{"waived", func(w *world) { w.invoice.Status, w.waived = invoice.Expired, true }, unwanted, unwanted, unwanted},
	} {
		w := newWorld()
		w.invoice.Details.Customer.Email = "ada@example.com"
		c.set(w)
		for _, m := range []struct {
			hours int
			want  error
		}{{0, c.invoice}, {-2, c.before}, {2, c.after}} {
			mail := mailer.Mail{InvoiceID: testID, Kind: mailer.Invoice, Hours: m.hours, Language: "en", Recipient: "Ada@example.com"}
			if _, err := w.checkout().Mail(t.Context(), mail); !errors.Is(err, m.want) {
				t.Errorf("%s, %d hours: %v, want %v", c.name, m.hours, err, m.want)
			}
		}
	}
}

// TestInvoiceMail checks both parts of an invoice and of a reminder after the time to pay has ended, and that every
// language has them.
func TestInvoiceMail(t *testing.T) {
	w := newWorld()
	w.merchants = shop{merchant: invoice.Merchant{ID: "corner-cafe", Name: "Corner <Café>", SupportContact: "help@cafe.example"}}
	w.publicURL = "https://pay.example.com"
	w.invoice.Details.Description, w.invoice.Details.Customer.Email = "Breakfast for <two>", "ada@example.com"
	compose := func(hours int, lang string) mailer.Message {
		t.Helper()
		got, err := w.checkout().Mail(t.Context(), mailer.Mail{
			InvoiceID: testID, Kind: mailer.Invoice, Hours: hours, Language: lang, Recipient: "ada@example.com", Token: "abcdefghijklmnopqrstuvwxyz",
		})
		expect.OK(t, err)
		if got.ReplyTo != "help@cafe.example" || !strings.HasPrefix(got.StopURL, "https://pay.example.com/mails/abc") {
			t.Errorf("the mail has %q and %q", got.ReplyTo, got.StopURL)
		}
		return got
	}
	wants := func(got mailer.Message, says ...string) {
		t.Helper()
		html := parsePage(t, got.HTML).words()
		for _, want := range says {
			if !strings.Contains(got.Text, want) || !strings.Contains(html, strings.ReplaceAll(want, "\u00a0", " ")) && !strings.Contains(got.HTML, want) {
				t.Errorf("the mail lacks %q:\n%s\n%s", want, got.Text, html)
			}
		}
		if strings.Contains(got.HTML, "<two>") || strings.Contains(got.Text, merchantAddress.String()) {
			t.Errorf("the mail is %s", got.HTML)
		}
	}
	wants(compose(0, "en"), "Corner <Café> asks you to pay 4.90\u00a0USDC by ", "Breakfast for <two>", "https://pay.example.com/checkout/"+testID+"?lang=en", "ada@example.com")
	w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
	wants(compose(-1, "de"), "bittet Sie um die Zahlung von 2,90\u00a0USDC", "?lang=de")
	w.payments, w.invoice.Status, w.now = nil, invoice.Expired, expires+3600
	wants(compose(1, "en"), "No payment had arrived by", "Please send nothing now.", "ask Corner <Café> for a new invoice")
	for _, text := range locale.Languages() {
		if got := compose(1, text.Lang()); strings.Contains(got.Text+got.Subject, "{{") || !strings.Contains(got.HTML, `lang="`+text.Lang()+`"`) {
			t.Errorf("%s: %s", text.Lang(), got.Text)
		}
	}
}
