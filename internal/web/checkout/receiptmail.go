package checkout

import (
	"context"
	"errors"
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
