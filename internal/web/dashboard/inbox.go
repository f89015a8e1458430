package dashboard

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
)

// InboxSize is how many items the inbox shows: fewer than other lists, because each has suggestions.
const InboxSize = 20

// pathInbox is the path of the inbox.
const pathInbox = "/dashboard/inbox"

// maxShortCount bounds the count of the inbox in the navigation.
const maxShortCount = 99

// inboxCounts counts the items that need a decision, once for each request.
func (d *Dashboard) inboxCounts(ctx context.Context, v *visit) ([]apitypes.InboxCount, error) {
	if v.counts != nil {
		return v.counts, nil
	}
	var answer apitypes.InboxCounts
	err := d.service.get(ctx, "/api/inbox/counts", v.query(), &answer)
	v.counts = answer.Counts
	return v.counts, err
}

// shortCount returns the sum of counts, or "" if it is 0.
func shortCount(counts []apitypes.InboxCount) string {
	sum, more := 0, false
	for _, c := range counts {
		sum, more = sum+c.Count, more || c.More
	}
	switch {
	case sum == 0:
		return ""
	case more, sum > maxShortCount:
		return strconv.Itoa(maxShortCount) + "+"
	}
	return strconv.Itoa(sum)
}

// inboxPage is the items that need a decision.
type inboxPage struct {
	Tabs  []inboxTab
	Kind  string // of the items, or empty for all
	Items []inboxItem
	Next  string // address of the next page, or empty
	Error string // refusal by the interface, or empty
}

// inboxTab leads to the items of a kind.
type inboxTab struct {
	Kind, Address, Count string
	Here                 bool
}

// inboxItem is something that needs a decision.
type inboxItem struct {
	apitypes.InboxItem
	ObjectID   string
	Page       string // page of the object
	Money      template.HTML
	ChainKey   string
	Paid       template.HTML    // received for an invoice
	Difference template.HTML    // missing or surplus amount of an invoice
	Payments   []inboxPayment   // of an invoice
	Attribute  *attributionPart // of a payment
	Refund     *apitypes.RefundRecord
	Others     []inboxPayment // other payments of the account that got a refund without a payment
}

// inboxPayment is a payment of an invoice that can be refunded, or a payment that a refund may be meant for.
type inboxPayment struct {
	apitypes.Payment
	Page string // page on which it is refunded, or its own page
	Fits bool   // the refund's amount equals the payment's
}

// showInbox shows the items that need a decision.
func (d *Dashboard) showInbox(w http.ResponseWriter, r *http.Request, code int, refused string) error {
	v := visitOf(r)
	query := v.query()
	filter := filtered(r, query, []string{"kind"})
	query.Set("limit", strconv.Itoa(InboxSize))
	body := inboxPage{Kind: filter.Get("kind"), Error: refused}
	counts, err := d.inboxCounts(r.Context(), v)
	if err != nil {
		return err
	}
	body.Tabs = inboxTabs(v, counts, body.Kind)
	list := get[apitypes.InboxList](d, r, "/api/inbox", query)
	body.Items = db.Each(list.Items, func(item apitypes.InboxItem) inboxItem { return d.inboxItem(r, v, item) })
	body.Next = pageAt(v, pathInbox, filter, list.NextCursor)
	return d.render(w, r, code, "inbox.html", "nav.inbox", body)
}

// inboxTabs returns a tab for all items and one for each kind present.
func inboxTabs(v *visit, counts []apitypes.InboxCount, chosen string) []inboxTab {
	tabs := []inboxTab{{Address: v.Link(pathInbox), Here: chosen == ""}}
	for _, c := range counts {
		kind := string(c.Kind)
		if c.Count == 0 && kind != chosen {
			continue
		}
		count := strconv.Itoa(c.Count)
		if c.More {
			count += "+"
		}
		tabs = append(tabs, inboxTab{kind, v.Link(pathInbox, "kind", kind), count, kind == chosen})
	}
	return tabs
}

func (d *Dashboard) inboxItem(r *http.Request, v *visit, item apitypes.InboxItem) inboxItem {
	row := inboxItem{InboxItem: item}
	switch {
	case item.Payment != nil:
		p := *item.Payment
		row.ObjectID, row.Page, row.ChainKey = p.ID, id("/dashboard/payments", p.ID), p.ChainKey
		row.Money = v.money(p.Amount, p.Currency)
		if item.Kind != apitypes.InboxQuarantined {
			row.Attribute = &attributionPart{Page: v, Candidates: v.candidates(p), PaymentID: p.ID}
		}
	case item.Invoice != nil:
		d.exceptionItem(r, v, &row)
	case item.Refund != nil:
		refund := *item.Refund
		row.ObjectID, row.Page, row.ChainKey = refund.ID, id("/dashboard/refunds", refund.ID), refund.ChainKey
		row.Money, row.Refund = v.money(refund.Amount, refund.Currency), &refund
		if item.Kind == apitypes.InboxWithoutPayment {
			d.withoutPaymentItem(r, v, &row)
		}
	}
	return row
}

// withoutPaymentItem fills in the item of a refund without a payment. It adds the newest payments that
// the account that got the refund has made to the merchant.
func (d *Dashboard) withoutPaymentItem(r *http.Request, v *visit, row *inboxItem) {
	refund := *row.Refund
	row.Money = v.money(refund.AmountTransferred, refund.Currency)
	query := url.Values{"chainKey": {refund.ChainKey}, "from": {refund.To}, "include": {"pending,unattributed"}, "limit": {"6"}}
	if refund.MerchantID != "" {
		query.Set("merchantId", refund.MerchantID)
	}
	for _, p := range get[apitypes.PaymentList](d, r, "/api/payments", query).Payments {
		if p.ID != refund.PaymentID && p.Status != apitypes.PaymentOrphaned && p.Currency == refund.Currency {
			row.Others = append(row.Others, inboxPayment{withStatus(p), v.Link(id("/dashboard/payments", p.ID)), p.Amount == refund.AmountTransferred})
		}
	}
}

// exceptionItem fills in the item of an invoice, with its newest payments.
func (d *Dashboard) exceptionItem(r *http.Request, v *visit, row *inboxItem) {
	inv := *row.Invoice
	if row.Kind == apitypes.InboxUnderpaid { // the late payment was sent back
		inv.AmountPaid, inv.AmountExcess = cmp.Or(minus(inv.AmountPaid, inv.AmountRefunded), inv.AmountPaid), ""
	}
	row.ObjectID, row.Page, row.ChainKey = inv.ID, id("/dashboard/invoices", inv.ID), inv.ChainKey
	row.Money, row.Paid = v.money(inv.Amount, inv.Currency), v.money(inv.AmountPaid, inv.Currency)
	excess := cmp.Or(inv.AmountExcess, minus(inv.AmountPaid, inv.Amount))
	row.Difference = v.money(cmp.Or(excess, minus(inv.Amount, inv.AmountPaid)), inv.Currency)
	suggested := ""
	if excess != "" && inv.Status == apitypes.StatusPaid {
		suggested = minus(excess, inv.AmountRefunded)
	}
	for _, p := range get[apitypes.PaymentList](d, r, id("/api/invoices", inv.ID)+"/payments", url.Values{"limit": {"5"}}).Payments {
		if isRefundable(p) {
			row.Payments = append(row.Payments, inboxPayment{Payment: p, Page: v.Link(id("/dashboard/payments", p.ID)+"/refund", "amount", suggested)})
		}
	}
}

// minus returns the difference of two amounts of minor units, or "" unless the first is larger.
func minus(a, b string) string {
	x, errX := invoice.ParseAmount(a)
	y, errY := invoice.ParseAmount(b)
	if errX != nil || errY != nil || !y.Less(x) {
		return ""
	}
	return x.Minus(y).String()
}

// decide records a person's decision about an item.
func (d *Dashboard) decide(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	err := d.service.send(r.Context(), http.MethodPost, "/api/inbox/decisions", apitypes.DecideRequest{
		Kind: apitypes.InboxKind(r.PostFormValue("kind")), ObjectID: r.PostFormValue("objectId"), Version: r.PostFormValue("version"),
		Decision: apitypes.DecisionOutcome(r.PostFormValue("decision")), Reason: strings.TrimSpace(r.PostFormValue("reason")),
		InvoiceID: r.PostFormValue("invoiceId"), MerchantID: v.merchant,
	}, nil)
	return d.outcome(w, r, err, d.showInbox, cmp.Or(d.cameFrom(r), "/dashboard/inbox/decisions"))
}

// cameFrom returns the page of the invoice or the payment that a form came from, or "".
func (d *Dashboard) cameFrom(r *http.Request) string {
	of := r.PostFormValue("from")
	if strings.HasPrefix(of, invoice.PrefixInvoice) {
		return id("/dashboard/invoices", of)
	}
	return objectPage(of)
}

// decisionList is the list of decisions.
type decisionList struct {
	Rows []decisionRow
	Next string // address of the next page, or empty
}

// decisionRow is a decision in the list.
type decisionRow struct {
	apitypes.Decision
	Page string // page of the object
}

// decisions lists the decisions, newest first.
func (d *Dashboard) decisions(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	query := v.query()
	filter := filtered(r, query, []string{"objectId"})
	list := get[apitypes.DecisionList](d, r, "/api/inbox/decisions", query)
	rows := db.Each(list.Decisions, func(of apitypes.Decision) decisionRow {
		return decisionRow{of, v.Link(cmp.Or(objectPage(of.ObjectID), id("/dashboard/invoices", of.ObjectID)))}
	})
	return d.render(w, r, http.StatusOK, "decisions.html", "decisions.title", decisionList{rows, nextPage(v, filter, list.NextCursor)})
}

// undoDecision undoes a decision.
func (d *Dashboard) undoDecision(w http.ResponseWriter, r *http.Request) error {
	return d.redirect(w, r, d.service.send(r.Context(), http.MethodPost, id("/api/inbox/decisions", r.PathValue("id"))+"/undo", struct{}{}, nil), cmp.Or(d.cameFrom(r), pathInbox))
}

// inboxRoutes returns the routes of the inbox.
func (d *Dashboard) inboxRoutes() []webpage.Route {
	return []webpage.Route{
		d.route("GET /dashboard/inbox", access.PaymentsRead, showing(d.showInbox)),
		d.route("POST /dashboard/inbox/decide", access.AttributionWrite, d.decide),
		d.route("GET /dashboard/inbox/decisions", access.PaymentsRead, d.decisions),
		d.route("POST /dashboard/inbox/decisions/{id}/undo", access.AttributionWrite, d.undoDecision),
	}
}
