package dashboard

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// paymentList lists payments, the last seen first. The filter show is empty for all payments, and
// counted for the confirmed ones of invoices.
var paymentList = lister[apitypes.PaymentList, paymentRow]{
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
	rows: func(v *visit, list apitypes.PaymentList) ([]paymentRow, string) {
		return v.paymentRows(list.Payments), list.NextCursor
	},
}

// paymentRow is a payment in a list.
type paymentRow struct {
	apitypes.Payment
	Money, Refunded template.HTML // Refunded is empty without a refund
	Network         string
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

func (v *visit) paymentRows(payments []apitypes.Payment) []paymentRow {
	return rowsOf(payments, v.paymentRow)
}

func (v *visit) paymentRow(p apitypes.Payment) paymentRow {
	row := paymentRow{Payment: p, Money: v.money(p.Amount, p.Currency), Network: v.Network(p.ChainKey)}
	if p.AmountRefunded != "" {
		row.Refunded = v.money(p.AmountRefunded, p.Currency)
	}
	row.Status = apitypes.PaymentStatus(cmp.Or(string(row.Status), string(apitypes.PaymentConfirmed)))
	return row
}

// paymentPage is the page of a payment.
type paymentPage struct {
	paymentRow
	Explorer   string // address of the transaction in the block explorer, or empty
	Candidates []candidateRow
	Refunds    []refundRow
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

// payment shows a payment.
func (d *Dashboard) payment(w http.ResponseWriter, r *http.Request) error {
	return d.showPayment(w, r, http.StatusOK, attributionForm{})
}

func (d *Dashboard) showPayment(w http.ResponseWriter, r *http.Request, code int, form attributionForm) error {
	v := visitOf(r)
	p, err := d.paymentOf(r)
	if err != nil {
		return err
	}
	body := paymentPage{paymentRow: v.paymentRow(p), Explorer: d.explorer(p.ChainKey, p.TxHash), Form: form, Candidates: v.candidates(p)}
	if body.Decided, err = d.decidedAbout(r, p.ID); err != nil {
		return err
	}
	body.Refundable = isRefundable(p) && len(body.Decided) == 0
	var refunds apitypes.RefundList
	if err := d.service.get(r.Context(), id("/api/payments", p.ID)+"/refunds", nil, &refunds); err != nil {
		return err
	}
	body.Refunds = v.refundRows(refunds.Refunds)
	return d.render(w, r, code, "payment.html", "payment.title", body)
}

// explorer returns the address of a transaction in the block explorer of its chain, or "".
func (d *Dashboard) explorer(chainKey, tx string) string {
	hash, err := invoice.ParseHash(tx)
	if err != nil {
		return ""
	}
	return d.chains[chainKey].TransactionURL(hash)
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
