package dashboard

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// mailForm is the form that sends an invoice to the customer.
type mailForm struct {
	Address, Language string
	Languages         []*locale.Text
	Before, After     string // hours of the reminders
	Scheduled         bool   // a reminder is not due yet
}

// addMails adds the mails of an invoice to its page and, if it can be sent, the form.
func (d *Dashboard) addMails(r *http.Request, view *invoiceView) error {
	var list apitypes.MailList
	if err := d.service.get(r.Context(), id("/api/invoices", view.ID)+"/mails", nil, &list); err != nil {
		return err
	}
	view.Mails = list.Mails
	v := visitOf(r)
	if !d.cfg.MailsInvoices || view.Status != apitypes.StatusOpen || !v.Can(access.InvoicesWrite) {
		return nil
	}
	var answer apitypes.MerchantResponse
	var refused *problem
	err := d.service.get(r.Context(), id("/api/merchants", view.MerchantID), nil, &answer)
	if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusNotFound) { // it may have no profile
		return err
	}
	form := mailForm{Languages: locale.Languages(), Language: v.text.Lang()}
	form.Before, form.After = hoursTexts(answer.Merchant.ReminderHours)
	if view.Customer != nil {
		form.Address = view.Customer.Email
	}
	for _, m := range list.Mails {
		form.Language = m.Language
		form.Scheduled = form.Scheduled || m.Kind == apitypes.MailReminder && m.State == apitypes.MailWaiting
	}
	if r.PostForm.Has("email") { // it was refused
		form.Address, form.Language = r.PostForm.Get("email"), r.PostForm.Get("language")
		form.Before, form.After = r.PostForm.Get("before"), r.PostForm.Get("after")
	}
	view.Mail = &form
	return nil
}

// sendInvoice sends an invoice to the customer.
func (d *Dashboard) sendInvoice(w http.ResponseWriter, r *http.Request) error {
	hours, ok := typedHours(r)
	if !ok {
		return d.showInvoice(w, r, http.StatusBadRequest, visitOf(r).text.T("mail.hours.wrong", nil))
	}
	body := apitypes.SendInvoiceRequest{Email: strings.TrimSpace(r.PostForm.Get("email")), Language: r.PostForm.Get("language"), ReminderHours: hours}
	return d.actOnInvoice(w, r, http.MethodPost, "/mails", body)
}

// hoursTexts returns the hours before and after the end of the time to pay as a form has them.
func hoursTexts(hours []int) (before, after string) {
	var early, late []string
	for _, h := range hours {
		if h < 0 {
			early = append(early, strconv.Itoa(-h))
		} else {
			late = append(late, strconv.Itoa(h))
		}
	}
	return strings.Join(early, ", "), strings.Join(late, ", ")
}

// typedHours returns the reminders of a form, and false if they are not valid.
func typedHours(r *http.Request) (hours []int, ok bool) {
	hours = make([]int, 0)
	for name, sign := range map[string]int{"before": -1, "after": 1} {
		for text := range strings.FieldsFuncSeq(r.PostForm.Get(name), func(c rune) bool { return strings.ContainsRune(" ,;、،", c) }) {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return nil, false
			}
			hours = append(hours, sign*n)
		}
	}
	slices.Sort(hours)
	hours = slices.Compact(hours)
	return hours, invoice.CheckReminderHours(hours) == nil
}
