package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// attributePage asks a person to confirm an attribution, with its consequences.
type attributePage struct {
	paymentRow
	Invoice   invoiceRow
	Candidate candidateRow
	Item      apitypes.InboxItem // of the payment
}

// confirmAttribution shows the payment and the invoice of an attribution before it is decided. Without an invoice, or if
// the payment needs no decision, it leads to the payment's page.
func (d *Dashboard) confirmAttribution(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	if r.URL.Query().Get("invoiceId") == "" {
		return d.redirect(w, r, nil, id("/dashboard/payments", r.PathValue("id")))
	}
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	query := v.query()
	query.Set("objectId", p.ID)
	var inbox apitypes.InboxList
	if err := d.service.get(r.Context(), "/api/inbox", query, &inbox); err != nil {
		return err
	}
	if len(inbox.Items) == 0 {
		return d.redirect(w, r, nil, id("/dashboard/payments", p.ID))
	}
	form := attributionForm{InvoiceID: strings.TrimSpace(r.URL.Query().Get("invoiceId"))}
	var found apitypes.InvoiceResponse
	err = d.service.get(r.Context(), id("/api/invoices", form.InvoiceID), nil, &found)
	if refused := (*problem)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		form.Error = v.text.T("attribute.unknown", nil)
		return d.showPayment(w, r, http.StatusNotFound, form)
	}
	if err != nil {
		return err
	}
	all := v.candidates(p)
	i := slices.IndexFunc(all, func(c candidateRow) bool { return c.InvoiceID == found.Invoice.ID })
	if i < 0 { // the service did not suggest it
		all, i = []candidateRow{{PaymentCandidate: apitypes.PaymentCandidate{InvoiceID: found.Invoice.ID, Status: found.Invoice.Status}}}, 0
	}
	body := attributePage{v.paymentRow(p), v.invoiceRows([]apitypes.Invoice{found.Invoice})[0], all[i], inbox.Items[0]}
	return d.render(w, r, http.StatusOK, "attribute.html", "attribute.title", body)
}

// decidedRow is a decision in force on the page of a payment or an invoice.
type decidedRow struct {
	apitypes.Decision
	Page *visit
	From string // id of the payment or the invoice
	Left int64  // seconds until an attribution takes effect; 0 for other decisions
}

// decidedAbout returns the decisions about a payment or an invoice that are in force.
func (d *Dashboard) decidedAbout(r *http.Request, objectID string) (rows []decidedRow, err error) {
	var list apitypes.DecisionList
	err = d.service.get(r.Context(), "/api/inbox/decisions", url.Values{"objectId": {objectID}}, &list)
	for _, of := range list.Decisions {
		if of.UndoneAt != 0 || of.AppliedAt != 0 {
			continue
		}
		row := decidedRow{Decision: of, Page: visitOf(r), From: objectID}
		if of.AppliesAt != 0 {
			row.Left = max(1, of.AppliesAt-d.cfg.Now().Unix())
		}
		rows = append(rows, row)
	}
	return rows, err
}

// invoiceActs is what a person can do about an invoice.
type invoiceActs struct {
	Item         *apitypes.InboxItem // that needs a decision; nil without one
	Decided      []decidedRow
	Unattributed []paymentRow // payments that may be for the invoice
	NewestEvent  string       // id; empty if the person may not send it again
	Refundable   []paymentRow
}

// addActs adds what the person can do about the invoice, and what was decided.
func (d *Dashboard) addActs(r *http.Request, view *invoiceView) error {
	v := visitOf(r)
	for _, p := range view.Payments {
		if v.Can(access.InvoicesWrite) && isRefundable(p.Payment) {
			view.Refundable = append(view.Refundable, v.paymentRow(p.Payment))
		}
	}
	var err error
	if view.Decided, err = d.decidedAbout(r, view.ID); err != nil {
		return err
	}
	if v.Can(access.AttributionWrite) && view.Status != apitypes.StatusDraft {
		var item apitypes.InboxList
		if err := d.service.get(r.Context(), "/api/inbox", url.Values{"objectId": {view.ID}}, &item); err != nil {
			return err
		}
		if len(item.Items) > 0 {
			view.Item = &item.Items[0]
		}
		if err := d.addUnattributed(r, view); err != nil {
			return err
		}
	}
	return d.addNewestEvent(r, view)
}

// addNewestEvent adds the newest event of the invoice, if the person may send it again.
func (d *Dashboard) addNewestEvent(r *http.Request, view *invoiceView) error {
	if v := visitOf(r); !v.Can(access.EventsRead) || !v.Can(access.EventsRedeliver) {
		return nil
	}
	var events apitypes.EventList
	if err := d.service.get(r.Context(), "/api/events", url.Values{"invoiceId": {view.ID}, "limit": {"1"}}, &events); err != nil {
		return err
	}
	for _, e := range events.Events {
		row, err := eventRowOf(e)
		if err != nil {
			return err
		}
		view.NewestEvent = row.ID
	}
	return nil
}

// addUnattributed adds the payments without an invoice that came to the invoice's address in its token, of the
// merchant's newest ones. If there are others, it adds the list of all.
func (d *Dashboard) addUnattributed(r *http.Request, view *invoiceView) error {
	v := visitOf(r)
	for _, kind := range []apitypes.InboxKind{apitypes.InboxClaimed, apitypes.InboxUnattributed} {
		var list apitypes.InboxList
		query := url.Values{"merchantId": {view.MerchantID}, "kind": {string(kind)}}
		if err := d.service.get(r.Context(), "/api/inbox", query, &list); err != nil {
			return err
		}
		if list.NextCursor != "" {
			view.AllUnattributed = v.Link(pathInbox, "merchantId", view.MerchantID, "kind", string(kind))
		}
		for _, item := range list.Items {
			if p := item.Payment; p != nil && p.ChainKey == view.ChainKey && p.Currency == view.Currency && (p.To == view.MerchantAddress || p.To == view.DepositAddress) {
				view.Unattributed = append(view.Unattributed, v.paymentRow(*p))
			}
		}
	}
	return nil
}
