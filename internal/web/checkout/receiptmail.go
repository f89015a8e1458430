package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// Limits of receipts by e-mail, in addition to the limits of package mailer.
const (
	// MailsOfClient bounds the mails per minute that one client network asks for.
	MailsOfClient = 5
	// AllMails bounds the mails of all clients.
	AllMails = 60
)

// Mails queues receipts that are sent by e-mail. *mailer.Mailer implements it.
type Mails interface {
	Queue(ctx context.Context, invoiceID, language, address string) error
}

// mailForm is the form with which a payer asks for the receipt by e-mail.
type mailForm struct {
	Typed   string
	Problem string // why it was not sent; empty if it was not asked for, or was sent
	Sent    bool
}

// mailReceipt queues the receipt for the address of the form, and redirects to the
// receipt.
func (c *Checkout) mailReceipt(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	s, refunds, err := c.loadReceipt(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if !c.mailed.allow(c.conf.Now(), r, quota{all: AllMails, ofClient: MailsOfClient}, s.invoice.MerchantID, s.invoice.ID) {
		return errTooOften
	}
	text := locale.For(r)
	form := mailForm{Typed: shortened(strings.TrimSpace(r.PostForm.Get("email")))}
	status := http.StatusBadRequest
	switch err := c.conf.Mails.Queue(r.Context(), s.invoice.ID, text.Lang(), strings.TrimSpace(r.PostForm.Get("email"))); {
	case err == nil:
		http.Redirect(w, r, "/checkout/"+s.invoice.ID+"/receipt?mail=sent"+keepLang(r, "&"), http.StatusSeeOther) //nolint:gosec // a stored id, and a language of the catalogue
		return nil
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

// ReceiptMail returns the receipt of an invoice as a mail in a language.
func (c *Checkout) ReceiptMail(ctx context.Context, invoiceID, language string) (mailer.Message, error) {
	s, refunds, err := c.loadReceipt(ctx, invoiceID)
	if err != nil {
		return mailer.Message{}, err
	}
	text := locale.Named(language)
	data := newReceipt(s.in(text), refunds, c.conf.PublicURL)
	var html bytes.Buffer
	if err := templates()[text]().ExecuteTemplate(&html, "receiptmail.html", data); err != nil {
		return mailer.Message{}, fmt.Errorf("render the mail: %w", err)
	}
	return mailer.Message{
		Subject: text.T("receipt.title", values{"Amount": data.Amount, "Merchant": data.Merchant}),
		Text:    data.plainText(text), HTML: html.String(),
	}, nil
}

// plainText returns the receipt as the text part of a mail.
func (d receiptData) plainText(text *locale.Text) string {
	var b strings.Builder
	line := func(words ...string) { fmt.Fprintln(&b, strings.Join(words, " ")) }
	field := func(id, value string) {
		if value != "" {
			line(text.T(id, nil)+":", value)
		}
	}
	line(d.Headline)
	for _, sentence := range d.Text {
		line(sentence)
	}
	line()
	field("receipt.merchant", d.Merchant)
	if d.Brand.Statement != "" {
		line(d.Brand.Statement)
	}
	field("receipt.invoice", d.ID)
	field("receipt.reference", d.Reference)
	field("receipt.description", d.Description)
	field("receipt.paid", d.PaidAt)
	line()
	for _, item := range d.Lines {
		line(item.Label+":", item.Amount, d.Currency)
	}
	for _, total := range d.Totals {
		line(total.Name+":", total.Value)
	}
	line()
	for _, p := range d.Payments {
		line(p.Amount+",", p.At)
		field("received.transaction", p.TxHash)
	}
	field("pay.send.network", d.Network)
	field("record.id", d.CommitmentID)
	line()
	line(text.T("receipt.mail.open", nil))
	line(d.CheckURL)
	field("receipt.contact", d.Brand.Contact)
	return b.String()
}
