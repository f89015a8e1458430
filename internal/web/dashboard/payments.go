package dashboard

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// paymentList lists payments, the last seen first. The filter show is empty for all payments, and
// counted for the confirmed ones of invoices.
var paymentList = lister[apitypes.PaymentList, apitypes.Payment]{
	page: "/dashboard/payments", api: "/api/payments", template: "payments.html", title: "nav.payments", jump: toObject, csv: true,
	filters: []filter{
		{name: "q", text: "payments.search", kind: "search", apply: searched},
		{name: "show", text: "payments.show", kind: "select", options: func(*visit) []option {
			return []option{{Value: "counted", Kind: "payments.show"}}
		}, apply: func(_ *visit, query url.Values, value string) {
			if value != "counted" {
				query.Set("include", "pending,unattributed")
				query.Set("candidates", "false") // the page of a payment has them
			}
		}},
		{name: "chainKey", text: "invoices.network", kind: "select", options: severalNetworks},
		dayFilter("after", "payments.after", "confirmedAfter", false),
		dayFilter("before", "payments.before", "confirmedBefore", true),
		{name: "invoiceId"}, {name: "txHash"}, {name: "from"}, {name: "to"},
		{name: "amount", apply: applyAmount},
	},
	rows: func(list apitypes.PaymentList) ([]apitypes.Payment, string) {
		return db.Each(list.Payments, withStatus), list.NextCursor
	},
}

// withStatus returns a payment of a list, in which the status of confirmed payments may be absent, with its status.
func withStatus(p apitypes.Payment) apitypes.Payment {
	p.Status = cmp.Or(p.Status, apitypes.PaymentConfirmed)
	return p
}

// searched adds the filter for a text to the query: the hash of a transaction, the account of a payer,
// the id of an invoice, or an amount.
func searched(v *visit, query url.Values, text string) {
	switch {
	case text == "":
	case strings.HasPrefix(text, invoice.PrefixInvoice):
		query.Set("invoiceId", text)
	case strings.HasPrefix(text, "0x") && len(text) > len(invoice.Address{}.String()):
		query.Set("txHash", strings.ToLower(text))
	case strings.HasPrefix(text, "0x"):
		query.Set("from", text)
	default:
		applyAmount(v, query, text)
	}
}

// paymentPage is the page of a payment.
type paymentPage struct {
	apitypes.Payment
	Candidates []candidateRow
	Refunds    []apitypes.RefundRecord
	Form       attributionForm
	Refundable bool // a part of it is left, and it is final
	Decided    []decidedRow
}

// candidateRow is an invoice that a payment may be meant for.
type candidateRow struct {
	apitypes.PaymentCandidate
	Money, Difference template.HTML // Difference is empty if the amounts fit
	Less              bool          // the payment is less than the invoice
	Claim             *apitypes.Claim
}

// attributionForm is the values that a person typed to attribute a payment.
type attributionForm struct{ InvoiceID, Error string }

// attributionPart is the data of the template attribute.
type attributionPart struct {
	Page       *visit
	Candidates []candidateRow
	PaymentID  string
	Form       attributionForm
}

// isRefundable reports whether a payment is final and was not refunded in full.
func isRefundable(p apitypes.Payment) bool {
	return p.Status == apitypes.PaymentConfirmed && minus(p.Amount, cmp.Or(p.AmountRefunded, "0")) != ""
}

// showPayment shows a payment.
func (d *Dashboard) showPayment(w http.ResponseWriter, r *http.Request, code int, form attributionForm) error {
	v, p := visitOf(r), d.paymentOf(r)
	body := paymentPage{Payment: withStatus(p), Form: form, Candidates: v.candidates(p), Decided: d.decidedAbout(r, p.ID)}
	body.Refundable = isRefundable(p) && len(body.Decided) == 0
	body.Refunds = get[apitypes.RefundList](d, r, id("/api/payments", p.ID)+"/refunds", nil).Refunds
	return d.render(w, r, code, "payment.html", "payment.title", body)
}

// candidates returns the invoices that a payment may be meant for: first invoices for which payers
// claim it, then the nearest ones.
func (v *visit) candidates(p apitypes.Payment) []candidateRow {
	var claimed, near []candidateRow
	claims := make(map[string]*apitypes.Claim)
	for _, c := range p.Claims {
		claims[c.InvoiceID] = &c
	}
	for _, c := range p.Candidates {
		row := candidateRow{PaymentCandidate: c, Money: v.money(c.Amount, p.Currency), Claim: claims[c.InvoiceID]}
		difference, less := strings.CutPrefix(c.AmountDifference, "-")
		if row.Less = less; difference != "0" {
			row.Difference = v.money(difference, p.Currency)
		}
		if row.Claim != nil {
			claimed = append(claimed, row)
		} else {
			near = append(near, row)
		}
		delete(claims, c.InvoiceID)
	}
	for _, c := range p.Claims {
		if claims[c.InvoiceID] != nil { // of no candidate
			claimed = append(claimed, candidateRow{PaymentCandidate: apitypes.PaymentCandidate{InvoiceID: c.InvoiceID, MerchantID: c.MerchantID}, Claim: &c})
		}
	}
	return append(claimed, near...)
}

// attributePage asks a person to confirm an attribution, with its consequences.
type attributePage struct {
	apitypes.Payment
	Invoice   apitypes.Invoice
	Candidate candidateRow
	Item      apitypes.InboxItem // of the payment
}

// confirmAttribution shows the payment and the invoice of an attribution before it is decided. Without an invoice, or if
// the payment needs no decision, it leads to the payment's page.
func (d *Dashboard) confirmAttribution(w http.ResponseWriter, r *http.Request) error {
	v, named := visitOf(r), r.URL.Query().Get("invoiceId")
	if named == "" {
		return d.redirect(w, r, nil, id("/dashboard/payments", r.PathValue("id")))
	}
	p := d.paymentOf(r)
	inbox := get[apitypes.InboxList](d, r, "/api/inbox", v.query("objectId", p.ID))
	if len(inbox.Items) == 0 {
		return d.redirect(w, r, nil, id("/dashboard/payments", p.ID))
	}
	form := attributionForm{InvoiceID: strings.TrimSpace(named)}
	found, ok := find[apitypes.InvoiceResponse](d, r, id("/api/invoices", form.InvoiceID))
	if !ok {
		form.Error = v.text.T("attribute.unknown", nil)
		return d.showPayment(w, r, http.StatusNotFound, form)
	}
	all := v.candidates(p)
	i := slices.IndexFunc(all, func(c candidateRow) bool { return c.InvoiceID == found.Invoice.ID })
	if i < 0 { // the service did not suggest it
		all, i = []candidateRow{{PaymentCandidate: apitypes.PaymentCandidate{InvoiceID: found.Invoice.ID, Status: found.Invoice.Status}}}, 0
	}
	return d.render(w, r, http.StatusOK, "attribute.html", "attribute.title", attributePage{withStatus(p), found.Invoice, all[i], inbox.Items[0]})
}

// decidedRow is a decision in force on the page of a payment or an invoice.
type decidedRow struct {
	apitypes.Decision
	Page *visit
	From string // id of the payment or the invoice
	Left int64  // seconds until an attribution takes effect; 0 for other decisions
}

// decidedAbout returns the decisions about a payment or an invoice that are in force.
func (d *Dashboard) decidedAbout(r *http.Request, objectID string) (rows []decidedRow) {
	for _, of := range get[apitypes.DecisionList](d, r, "/api/inbox/decisions", url.Values{"objectId": {objectID}}).Decisions {
		if of.UndoneAt != 0 || of.AppliedAt != 0 {
			continue
		}
		row := decidedRow{Decision: of, Page: visitOf(r), From: objectID}
		if of.AppliesAt != 0 {
			row.Left = max(1, of.AppliesAt-d.cfg.Now().Unix())
		}
		rows = append(rows, row)
	}
	return rows
}

// invoiceActs is what a person can do about an invoice.
type invoiceActs struct {
	Item         *apitypes.InboxItem // that needs a decision; nil without one
	Decided      []decidedRow
	Unattributed []apitypes.Payment // that may be for the invoice
	NewestEvent  string             // id; empty if the person may not send it again
	Refundable   []apitypes.Payment
}

// addActs adds what the person can do about the invoice, and what was decided.
func (d *Dashboard) addActs(r *http.Request, view *invoiceView) {
	v := visitOf(r)
	for _, p := range view.Payments {
		if v.Can(access.InvoicesWrite) && isRefundable(p) {
			view.Refundable = append(view.Refundable, p)
		}
	}
	view.Decided = d.decidedAbout(r, view.ID)
	if v.Can(access.AttributionWrite) && view.Status != apitypes.StatusDraft {
		if items := get[apitypes.InboxList](d, r, "/api/inbox", url.Values{"objectId": {view.ID}}).Items; len(items) > 0 {
			view.Item = &items[0]
		}
		d.addUnattributed(r, view)
	}
	if v.Can(access.EventsRead) && v.Can(access.EventsRedeliver) {
		for _, e := range get[apitypes.EventList](d, r, "/api/events", url.Values{"invoiceId": {view.ID}, "limit": {"1"}}).Events {
			view.NewestEvent = eventRowOf(e).ID
		}
	}
}

// addUnattributed adds the payments without an invoice that came to the invoice's address in its token, of the
// merchant's newest ones. If there are others, it adds the list of all.
func (d *Dashboard) addUnattributed(r *http.Request, view *invoiceView) {
	for _, kind := range []apitypes.InboxKind{apitypes.InboxClaimed, apitypes.InboxUnattributed} {
		list := get[apitypes.InboxList](d, r, "/api/inbox", url.Values{"merchantId": {view.MerchantID}, "kind": {string(kind)}})
		if list.NextCursor != "" {
			view.AllUnattributed = visitOf(r).Link(pathInbox, "merchantId", view.MerchantID, "kind", string(kind))
		}
		for _, item := range list.Items {
			if p := item.Payment; p != nil && p.ChainKey == view.ChainKey && p.Currency == view.Currency && (p.To == view.MerchantAddress || p.To == view.DepositAddress) {
				view.Unattributed = append(view.Unattributed, *p)
			}
		}
	}
}
