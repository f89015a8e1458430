package checkout

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
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
	l.Lines = s.writtenLines()
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

// Limits of receipts by e-mail, in addition to the limits of package mailer.
const (
	// MailsOfClient bounds the mails per minute that one client network asks for.
	MailsOfClient = 5
	// AllMails bounds the mails of all clients.
	AllMails = 60
)

// Mails queues receipts that are sent by e-mail, and stops other mails. *mailer.Mailer implements it and documents the
// errors.
type Mails interface {
	Queue(ctx context.Context, invoiceID, language, address string) error
	MailByToken(ctx context.Context, token string) (m mailer.Mail, stopped bool, err error)
	Stop(ctx context.Context, token string, stop bool) error
}

// mailForm is the form with which a payer asks for the receipt by e-mail.
type mailForm struct {
	Typed   string
	Problem string // why it was not sent; empty if it was not asked for, or was sent
	Sent    bool
}

// mailReceipt queues the receipt for the address of the form, and redirects to the receipt.
func (c *Checkout) mailReceipt(w http.ResponseWriter, r *http.Request) error {
	s, refunds, err := c.loadReceipt(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	text, typed := locale.For(r), strings.TrimSpace(r.PostForm.Get("email"))
	form := mailForm{Typed: shortened(typed)}
	status := http.StatusBadRequest
	if _, err = mailer.Address(typed); err == nil { // others do not count
		if err := c.mailed.Take(r.Context(), s.invoice.MerchantID, s.invoice.ID); err != nil {
			return err
		}
		err = c.conf.Mails.Queue(r.Context(), s.invoice.ID, text.Lang(), typed)
	}
	switch {
	case err == nil:
		return lead(w, r, "/checkout/"+s.invoice.ID+"/receipt?mail=sent"+keepLang(r, "&"))
	case errors.Is(err, mailer.ErrAddress):
		form.Problem = text.T("receipt.mail.invalid", nil)
	case errors.Is(err, mailer.ErrTooMany):
		form.Problem, status = text.T("receipt.mail.often", nil), http.StatusTooManyRequests
	case errors.Is(err, mailer.ErrBusy):
		return errBusy
	default:
		return err
	}
	data := newReceipt(s.in(text), refunds, c.baseURL(r))
	data.Mail = &form
	return c.render(w, r, status, "receipt.html", data)
}

// receiptLetter returns the receipt of an invoice as a mail in a language.
func (c *Checkout) receiptLetter(ctx context.Context, invoiceID string, text *locale.Text) (letter, error) {
	s, refunds, err := c.loadReceipt(ctx, invoiceID)
	if err != nil {
		return letter{}, err
	}
	d := newReceipt(s.in(text), refunds, c.conf.MailURL)
	l := letter{
		Subject:  text.T("receipt.title", values{"Amount": d.Amount, "Merchant": d.Merchant}),
		Headline: text.T("receipt.link", nil) + text.Colon() + d.Headline, Text: d.Text,
		Merchant: d.Merchant, Brand: d.Brand, Currency: d.Currency, Lines: d.Lines, Totals: d.Totals, Payments: d.Payments, Network: d.Network,
		Open: text.T("receipt.mail.open", nil), URL: d.CheckURL,
	}
	l.Facts = factsOf(text, "receipt.merchant", d.Merchant, "receipt.invoice", d.ID, "receipt.reference", d.Reference, "receipt.description", d.Description,
		"receipt.paid", d.PaidAt, "script.wallet.network", d.Network, "record.id", d.CommitmentID)
	return l, nil
}

// stopView is the page on which a person stops the mails of a merchant.
type stopView struct {
	Path, Merchant, Address string
	Stopped                 bool
}

// stopPage answers with the page of a mail's token.
func (c *Checkout) stopPage(w http.ResponseWriter, r *http.Request) error {
	token := r.PathValue("token")
	m, stopped, err := c.conf.Mails.MailByToken(r.Context(), validToken(token))
	if err != nil {
		return err
	}
	profile, _, err := c.findMerchant(r.Context(), m.MerchantID)
	if err != nil {
		return err
	}
	v := stopView{
		Path: "/mails/" + token + "?lang=" + locale.For(r).Lang(), Stopped: stopped,
		Merchant: cmp.Or(profile.Name, m.MerchantID), Address: cmp.Or(m.Recipient, "…"), // the address may be erased
	}
	return c.render(w, r, http.StatusOK, "stopmails.html", v)
}

// stopMails stops the mails or, with the member allow, allows them again, and answers with the page. Mail programs post
// to it, too, and must not be redirected (RFC 8058).
func (c *Checkout) stopMails(w http.ResponseWriter, r *http.Request) error {
	if err := c.conf.Mails.Stop(r.Context(), validToken(r.PathValue("token")), r.PostForm.Get("allow") == ""); err != nil {
		return err
	}
	return c.stopPage(w, r)
}

// validToken returns a token of a page, or "" if no page can have it.
func validToken(token string) string {
	if len(token) > MaxID || strings.ContainsFunc(token, isNotIDChar) {
		return "" // not every text is valid in a database
	}
	return token
}
