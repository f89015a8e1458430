package checkout

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// letter is the content of a mail.
type letter struct {
	Subject, Headline string
	Text              []string
	Merchant          string
	Brand             brand
	Currency          string
	Lines             []line
	Totals, Facts     []fact
	Payments          []movement
	Network           string
	Open, URL         string // the link
	Why, StopURL      string // why the recipient gets it, and where to stop mails; empty of a receipt
}

// factsOf returns facts, each with the id of its name and its value, except those without a value.
func factsOf(text *locale.Text, pairs ...string) (facts []fact) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			facts = append(facts, fact{Name: text.T(pair[0], nil), Value: pair[1]})
		}
	}
	return facts
}

// Mail returns the content of a mail. Errors are mailer.ErrUnwanted and mailer.ErrLater, and others.
func (c *Checkout) Mail(ctx context.Context, m mailer.Mail) (mailer.Message, error) {
	text := locale.Named(m.Language)
	compose := c.invoiceLetter
	if m.Kind == mailer.Receipt {
		compose = func(ctx context.Context, m mailer.Mail, text *locale.Text) (letter, error) {
			return c.receiptLetter(ctx, m.InvoiceID, text)
		}
	}
	l, err := compose(ctx, m, text)
	if err != nil {
		return mailer.Message{}, err
	}
	var html bytes.Buffer
	if err := templates()[text]().ExecuteTemplate(&html, "mail.html", l); err != nil {
		return mailer.Message{}, fmt.Errorf("render the mail: %w", err)
	}
	message := mailer.Message{Subject: l.Subject, Text: l.plainText(text), HTML: html.String(), StopURL: l.StopURL}
	if strings.HasPrefix(string(l.Brand.ContactURL), "mailto:") {
		message.ReplyTo = l.Brand.Contact
	}
	return message, nil
}

// invoiceLetter returns an invoice or a reminder of it.
func (c *Checkout) invoiceLetter(ctx context.Context, m mailer.Mail, text *locale.Text) (letter, error) {
	s, err := c.load(ctx, m.InvoiceID)
	if err != nil {
		return letter{}, err
	}
	s = s.in(text)
	if err := s.mailable(m); err != nil {
		return letter{}, err
	}
	inv, lang := s.invoice, "?lang="+text.Lang()
	about := values{"Merchant": s.merchant(), "Amount": s.written(s.rest()), "Time": text.Clock(inv.ExpiresAt)}
	l := letter{
		Merchant: s.merchant(), Brand: newBrand(s.profile), Currency: inv.Currency,
		Open: text.T("result.pay", nil), URL: c.conf.MailURL + "/checkout/" + inv.ID + lang,
		Why: text.T("mail.why", values{"Merchant": s.merchant(), "Address": m.Recipient}), StopURL: c.conf.MailURL + "/mails/" + m.Token + lang,
	}
	for _, item := range inv.LineItems {
		l.Lines = append(l.Lines, line{item.Label, text.Number(s.major(item.Amount))})
	}
	l.Totals = []fact{{Name: text.T("receipt.amount", nil), Value: s.written(inv.Amount)}}
	switch {
	case m.Hours > 0:
		l.Subject, l.Open = text.T("mail.overdue", about), text.T("mail.see", nil)
		l.Text = []string{text.T("status.expired.none", about), text.T("status.stop", nil), text.T("mail.new", about)}
	case m.Hours < 0:
		l.Subject, l.Text = text.T("mail.reminder", about), []string{text.T("mail.text", about)}
	default:
		l.Subject, l.Text = text.T("mail.invoice", about), []string{text.T("mail.text", about)}
	}
	l.Headline = l.Subject
	l.Facts = factsOf(text, "receipt.invoice", inv.ID, "receipt.reference", inv.Details.Reference, "receipt.description", inv.Details.Description, "record.until", text.Clock(inv.ExpiresAt))
	return l, nil
}

// mailable returns nil if an invoice or a reminder fits the state of the invoice, mailer.ErrLater while that is not
// known, as after a payment that is not final, and otherwise mailer.ErrUnwanted. Reminders go only to the address that
// the invoice still has.
func (s pageInput) mailable(m mailer.Mail) error {
	if m.Hours != 0 && !strings.EqualFold(m.Recipient, s.invoice.Details.Customer.Email) {
		return mailer.ErrUnwanted
	}
	unconfirmed := slices.ContainsFunc(s.payments, func(p invoice.Payment) bool { return p.IsUnconfirmed() && !s.invoice.IsDust(p) })
	switch s.state() {
	case waiting, partial:
		if unconfirmed || m.Hours > 0 {
			return mailer.ErrLater
		}
		return nil
	case seen, unknown, checking:
		return mailer.ErrLater
	case expired:
		if unconfirmed { // the operator decides about it
			return mailer.ErrLater
		}
		if m.Hours > 0 && s.invoice.Exception == "" {
			return nil
		}
	case paid, refunded, void, draft:
	}
	return mailer.ErrUnwanted
}

// plainText returns the text part of a mail.
func (l letter) plainText(text *locale.Text) string {
	var b strings.Builder
	line := func(words ...string) { fmt.Fprintln(&b, strings.Join(words, " ")) }
	named := func(name, value string) { fmt.Fprintln(&b, name+text.Colon()+value) }
	line(l.Headline)
	for _, sentence := range l.Text {
		line(sentence)
	}
	if l.Brand.Statement != "" {
		line()
		line(l.Brand.Statement)
	}
	line()
	for _, item := range l.Lines {
		named(item.Label, item.Amount+" "+l.Currency)
	}
	for _, f := range slices.Concat(l.Totals, l.Facts) {
		named(f.Name, f.Value)
	}
	for _, p := range l.Payments {
		line(p.Amount+",", p.At)
		named(text.T("script.wallet.transaction", nil), p.TxHash)
	}
	line()
	line(l.Open)
	line(l.URL)
	if l.Brand.Contact != "" {
		named(text.T("receipt.contact", nil), l.Brand.Contact)
	}
	if l.StopURL != "" {
		line()
		line(l.Why)
		line(text.T("mail.stop.button", nil), l.StopURL)
	}
	return b.String()
}
