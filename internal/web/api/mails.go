package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

var errNoMailServer = problemf(apitypes.CodeNoMailServer, "This service has no mail server; its operator can configure one with smtp.")

// listMails answers GET /api/invoices/{id}/mails.
func (a *API) listMails(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	inv, err := a.visibleInvoice(r.Context(), id)
	if err != nil {
		return err
	}
	found, err := a.conf.Reader.InvoiceMails(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read the mails of an invoice: %w", err)
	}
	list := apitypes.MailList{Mails: db.Each(found, func(m mailer.Mail) apitypes.Mail { return mailOf(m, inv.Status) })}
	return a.writeJSON(w, r, http.StatusOK, list, nil)
}

// mailOf converts a mail about an invoice in a state. The merchant does not see the address to which a payer had a receipt
// sent, nor that a mail which will not be sent is only ended when it is due.
func mailOf(m mailer.Mail, of invoice.Status) apitypes.Mail {
	out := apitypes.Mail{
		Number: m.Number, Kind: apitypes.MailKind(m.Kind), Hours: m.Hours, Email: m.Recipient, Language: m.Language, State: apitypes.MailState(m.State),
		SendAt: invoice.UnixSeconds(m.SendAt), Attempts: m.Attempts, By: m.SentBy, Error: m.Error,
	}
	if m.Kind == mailer.Receipt {
		out.Email = ""
	} else if m.State == mailer.Waiting && (of == invoice.Paid || of == invoice.Void) {
		out.State = apitypes.MailCanceled
	}
	if !m.EndedAt.IsZero() {
		out.EndedAt = invoice.UnixSeconds(m.EndedAt)
	}
	if !m.BouncedAt.IsZero() {
		out.BouncedAt = invoice.UnixSeconds(m.BouncedAt)
	}
	return out
}

// sendInvoice answers POST /api/invoices/{id}/mails.
func (a *API) sendInvoice(w http.ResponseWriter, r *http.Request, o object) error {
	id := r.PathValue("id")
	inv, err := a.visibleInvoice(r.Context(), id)
	if err != nil {
		return err
	}
	order, err := a.mailOrder(r.Context(), o, inv)
	if err != nil {
		return err
	}
	if a.conf.Mails == nil {
		return errNoMailServer
	}
	if err := a.conf.Mails.SendInvoice(r.Context(), order); errors.Is(err, mailer.ErrAddress) {
		return invalidField("email", "must be an e-mail address such as maria@example.com")
	} else if err != nil {
		return fmt.Errorf("send invoice: %w", err)
	}
	if order.Address != inv.Details.Customer.Email {
		change := ledger.InvoiceChange{Details: invoice.DetailsChange{CustomerEmail: &order.Address}}
		if _, err := a.conf.Ledger.UpdateInvoice(r.Context(), access.FromContext(r.Context()), id, change); err != nil {
			return fmt.Errorf("remember the address: %w", err)
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mailOrder parses the members of a request to send an invoice. What it leaves out are the invoice's address and the
// merchant's reminders.
func (a *API) mailOrder(ctx context.Context, o object, inv invoice.Invoice) (mailer.Order, error) {
	order := mailer.Order{Invoice: inv, Address: inv.Details.Customer.Email, SentBy: access.FromContext(ctx).Label()}
	var email, language *string
	err := cmp.Or(
		optionalText(o, "email", &email),
		optionalText(o, "language", &language),
		reminderHours(o, &order.ReminderHours),
	)
	if err != nil {
		return order, err
	}
	invoice.SetIfGiven(&order.Address, email)
	invoice.SetIfGiven(&order.Language, language)
	switch {
	case order.Address == "":
		return order, invalidField("email", "is required: the invoice's customer has no e-mail address")
	case language != nil && locale.Named(*language).Lang() != *language:
		return order, invalidField("language", "is %.20q; want one of %s", *language, strings.Join(db.Each(locale.Languages(), (*locale.Text).Lang), ", "))
	case order.ReminderHours != nil:
		return order, invoice.CheckReminderHours(order.ReminderHours)
	}
	m, err := a.conf.Merchants.Get(ctx, access.FromContext(ctx), inv.MerchantID)
	if err != nil && !errors.Is(err, access.ErrNotFound) { // a merchant without a profile has no reminders
		return order, fmt.Errorf("read merchant: %w", err)
	}
	order.ReminderHours = m.ReminderHours
	return order, nil
}

// reminderHours reads an array of integers into dst, which is unchanged if the array is absent.
func reminderHours(o object, dst *[]int) error {
	err := array(o, "reminderHours", dst, func(path string, element any, to *int) (err error) {
		number, ok := element.(json.Number)
		if *to, err = strconv.Atoi(number.String()); !ok || err != nil {
			return invalidField(path, "must be an integer, written in digits alone; it is %s", kind(element))
		}
		return nil
	})
	slices.Sort(*dst)
	return err
}

// dropReminders answers DELETE /api/invoices/{id}/mails.
func (a *API) dropReminders(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := a.visibleInvoice(r.Context(), id); err != nil {
		return err
	}
	if a.conf.Mails == nil {
		return errNoMailServer
	}
	return noContent(w, db.During("drop reminders", a.conf.Mails.DropReminders(r.Context(), id)))
}

// reportMail answers POST /api/operator/mails/report. The body is a mail.
func (a *API) reportMail(w http.ResponseWriter, r *http.Request) error {
	message, err := readBytes(w, r, "message", mailer.MaxReport)
	if err != nil {
		return err
	}
	if a.conf.Mails == nil {
		return errNoMailServer
	}
	b, err := a.conf.Mails.TakeReport(r.Context(), message)
	switch {
	case errors.Is(err, mailer.ErrNoReport):
		return invalidField("message", "%v", err)
	case errors.Is(err, db.ErrNotFound):
		return problemf(apitypes.CodeNotFound, "No mail has the id that the message repeats, or its customer was erased.")
	}
	answer := apitypes.MailReport{InvoiceID: b.InvoiceID, Number: b.Number, Bounced: b.Failed, Error: b.Reason}
	return a.writeJSON(w, r, http.StatusOK, answer, db.During("record what became of a mail", err))
}
