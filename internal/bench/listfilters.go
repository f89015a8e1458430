package main

import (
	"fmt"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// listSpan is the length of a span of time in seconds, and so the number of invoices that
// are created in it.
const listSpan = 100

// listFilters are the measured requests. "busy" is the address of half of the invoices.
var listFilters = []listFilter{
	{"invoices", func(listRows, int) string { return "invoices" }},
	{"invoices?merchantId", func(r listRows, n int) string { return "invoices?merchantId=" + r.merchant(n) }},
	{"invoices?status", func(r listRows, n int) string { return "invoices?status=" + string(r.status(n)) }},
	{"invoices?merchantId&status", func(r listRows, n int) string {
		return fmt.Sprintf("invoices?merchantId=%s&status=%s", r.merchant(n), r.status(n))
	}},
	{"invoices?reference", func(r listRows, n int) string { return "invoices?reference=" + r.reference(n) }},
	{"invoices?merchantId&reference", func(r listRows, n int) string {
		return fmt.Sprintf("invoices?merchantId=%s&reference=%s", r.merchant(n), r.reference(n))
	}},
	{"invoices?metadata[basket]", func(r listRows, n int) string { return "invoices?metadata[basket]=" + r.basket(n) }},
	{"invoices?merchantId&metadata[basket]", func(r listRows, n int) string {
		return fmt.Sprintf("invoices?merchantId=%s&metadata[basket]=%s", r.merchant(n), r.basket(n))
	}},
	{"invoices?amount", func(r listRows, n int) string { return "invoices?amount=" + r.price(n).String() }},
	{"invoices?exception", func(_ listRows, n int) string {
		return "invoices?exception=" + []string{"underpaid", "overpaid", "late"}[n%3]
	}},
	{"invoices?merchantId&exception", func(r listRows, n int) string {
		return fmt.Sprintf("invoices?merchantId=%s&exception=%s", r.merchant(n), []string{"underpaid", "overpaid", "late"}[n%3])
	}},
	{"invoices?to", func(r listRows, n int) string { return "invoices?to=" + r.address(n).String() }},
	{"invoices?createdAfter&createdBefore", func(r listRows, n int) string { return "invoices?" + r.span("created", n) }},
	{"invoices?to=busy&status, none found", func(listRows, int) string { return "invoices?status=paid&to=" + account(0).String() }},

	{"payments", func(listRows, int) string { return "payments" }},
	{"payments?merchantId", func(r listRows, n int) string { return "payments?merchantId=" + r.merchant(n) }},
	{"payments?chainKey", func(listRows, int) string { return "payments?chainKey=" + chain.Local }},
	{"payments?merchantId&chainKey", func(r listRows, n int) string {
		return fmt.Sprintf("payments?merchantId=%s&chainKey=%s", r.merchant(n), chain.Local)
	}},
	{"payments?include", func(listRows, int) string { return "payments?include=pending,unattributed" }},
	{"payments?invoiceId", func(r listRows, n int) string { return "payments?invoiceId=" + r.id(invoice.PrefixInvoice, n) }},
	{"payments?txHash", func(r listRows, n int) string { return "payments?txHash=" + r.txHash(n).String() }},
	{"payments?from", func(r listRows, n int) string { return "payments?from=" + r.payer(n).String() }},
	{"payments?to", func(r listRows, n int) string { return "payments?to=" + r.address(n).String() }},
	{"payments?amount", func(r listRows, n int) string { return "payments?amount=" + r.price(n).String() }},
	{"payments?confirmedAfter&confirmedBefore", func(r listRows, n int) string { return "payments?" + r.span("confirmed", n) }},
	{"payments?merchantId&confirmedAfter", func(r listRows, n int) string {
		return fmt.Sprintf("payments?merchantId=%s&confirmedAfter=%d", r.merchant(n), r.first.Unix())
	}},
	{"payments?to=busy&merchantId, none found", func(listRows, int) string { return "payments?merchantId=nobody&to=" + account(0).String() }},

	{"events?merchantId", func(r listRows, n int) string { return "events?merchantId=" + r.merchant(n) }},
	{"events?type", func(listRows, int) string { return "events?type=" + string(invoice.EventCreated) }},
	{"events?invoiceId", func(r listRows, n int) string { return "events?invoiceId=" + r.id(invoice.PrefixInvoice, n) }},
	{"events?createdAfter&createdBefore", func(r listRows, n int) string { return "events?" + r.span("created", n) }},

	{"invoices/ID/payments", func(r listRows, n int) string { return "invoices/" + r.id(invoice.PrefixInvoice, n) + "/payments" }},
	{"invoices/ID/timeline", func(r listRows, n int) string { return "invoices/" + r.id(invoice.PrefixInvoice, n) + "/timeline" }},

	{"invoices?q=ID", func(r listRows, n int) string { return "invoices?q=" + r.id(invoice.PrefixInvoice, n) }},
	{"invoices?q=beginning of an ID", func(r listRows, n int) string { return "invoices?q=" + r.id(invoice.PrefixInvoice, n)[:12] }},
	{"invoices?q=reference", func(r listRows, n int) string { return "invoices?q=" + r.reference(n) }},
	{"invoices?q=on-chain id", func(r listRows, n int) string { return "invoices?q=" + r.invoice(n).CommitmentID.String() }},
	{"invoices?q=txHash", func(r listRows, n int) string { return "invoices?q=" + r.txHash(n).String() }},
	{"invoices?q=beginning of a txHash", func(r listRows, n int) string { return "invoices?q=" + r.txHash(n).String()[:10] }},
	{"invoices?q=payer", func(r listRows, n int) string { return "invoices?q=" + r.payer(n).String() }},
	{"invoices?q=settlement address", func(r listRows, n int) string { return "invoices?q=" + r.address(n).String() }},
	{"invoices?q=payment's ID", func(r listRows, n int) string { return "invoices?q=" + r.paymentID(n) }},
	{"invoices?q=event's ID", func(r listRows, n int) string { return "invoices?q=" + r.id(invoice.PrefixEvent, n) }},
	{"invoices?q=unknown hash", func(r listRows, n int) string { return "invoices?q=" + dustHash(uint64(3*r.n+n)).String() }},
	{"invoices?q=unknown account", func(_ listRows, n int) string { return "invoices?q=" + account(2000+n).String() }},
	{"invoices?q=unknown text", func(_ listRows, n int) string { return fmt.Sprintf("invoices?q=nothing-%d", n) }},
}

// span returns a filter by time that finds listSpan rows, the nth first.
func (r listRows) span(what string, n int) string {
	first := r.at(n)
	if what == "confirmed" {
		first = first.Add(listSettled)
	}
	return fmt.Sprintf("%[1]sAfter=%[2]d&%[1]sBefore=%[3]d", what, first.Unix(), first.Unix()+listSpan)
}
