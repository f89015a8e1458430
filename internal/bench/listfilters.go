package main

import (
	"fmt"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/seed"
)

// listSpan is how many invoices are created in a span of time.
const listSpan = 50

// listFilters are the measured requests. Of a value that few rows have only one element is requested,
// so that the pages of few and many rows are alike.
var listFilters = []listFilter{
	{"invoices", func(listed, int) string { return "invoices" }, 5},
	{"invoices?merchantId=largest", func(listed, int) string { return "invoices?merchantId=" + seed.Merchant(0) }, 3},
	{"invoices?merchantId", func(l listed, n int) string { return "invoices?limit=5&merchantId=" + l.merchant(n) }, 0},
	{"invoices?status=paid", func(listed, int) string { return "invoices?status=paid" }, 5},
	{"invoices?status=expired", func(listed, int) string { return "invoices?status=expired" }, 2},
	{"invoices?status", func(l listed, n int) string { return "invoices?status=" + string(l.Invoice(n).Status) }, 0},
	{"invoices?merchantId&status", func(l listed, n int) string {
		return fmt.Sprintf("invoices?limit=1&merchantId=%s&status=%s", l.merchant(n), l.Invoice(n).Status)
	}, 0},
	{"invoices?reference", func(_ listed, n int) string { return fmt.Sprintf("invoices?reference=order-%d", n) }, 0},
	{"invoices?merchantId&reference", func(l listed, n int) string {
		return fmt.Sprintf("invoices?merchantId=%s&reference=order-%d", l.merchant(n), n)
	}, 0},
	{"invoices?metadata[basket]", func(l listed, n int) string {
		return "invoices?limit=1&metadata[basket]=" + l.Invoice(n).Details.Metadata["basket"]
	}, 0},
	{"invoices?merchantId&metadata[basket]", func(l listed, n int) string {
		return fmt.Sprintf("invoices?limit=1&merchantId=%s&metadata[basket]=%s", l.merchant(n), l.Invoice(n).Details.Metadata["basket"])
	}, 0},
	{"invoices?merchantId&customer", func(l listed, n int) string {
		return fmt.Sprintf("invoices?limit=1&merchantId=%s&customer=%s", l.merchant(n), l.Invoice(n).Details.Customer.ID)
	}, 0},
	{"invoices?amount", func(l listed, n int) string { return "invoices?limit=1&amount=" + l.Invoice(n).Amount.String() }, 0},
	{"invoices?exception", func(_ listed, n int) string { return "invoices?exception=" + listedException(n) }, 0},
	{"invoices?merchantId&exception", func(_ listed, n int) string {
		return fmt.Sprintf("invoices?limit=5&merchantId=%s&exception=%s", seed.Merchant(0), listedException(n))
	}, 0},
	{"invoices?to", func(l listed, n int) string { return "invoices?limit=5&to=" + l.Address(l.Owner(n)).String() }, 0},
	{"invoices?createdAfter&createdBefore", func(l listed, n int) string { return "invoices?" + l.span("created", n) }, 0},
	{"invoices?to=largest&status, none found", func(l listed, _ int) string { return "invoices?status=draft&to=" + l.Address(0).String() }, 0},
	{"invoices/ID", func(l listed, n int) string { return "invoices/" + l.Invoice(n).ID }, 0},
	{"invoices/ID/payments", func(l listed, n int) string { return "invoices/" + l.Invoice(n).ID + "/payments" }, 0},
	{"invoices/ID/timeline", func(l listed, n int) string { return "invoices/" + l.Invoice(n).ID + "/timeline" }, 0},

	{"payments", func(listed, int) string { return "payments" }, 5},
	{"payments?merchantId=largest", func(listed, int) string { return "payments?merchantId=" + seed.Merchant(0) }, 3},
	{"payments?merchantId", func(l listed, n int) string { return "payments?limit=5&merchantId=" + l.merchant(n) }, 0},
	{"payments?chainKey", func(listed, int) string { return "payments?chainKey=" + chain.Local }, 5},
	{"payments?merchantId&chainKey", func(l listed, n int) string {
		return fmt.Sprintf("payments?limit=5&merchantId=%s&chainKey=%s", l.merchant(n), chain.Local)
	}, 0},
	{"payments?include", func(listed, int) string { return "payments?include=pending,unattributed&candidates=false" }, 5},
	{"payments?invoiceId", func(l listed, n int) string { return "payments?invoiceId=" + l.Invoice(n).ID }, 0},
	{"payments?txHash", func(l listed, n int) string { return "payments?txHash=" + l.payment(n).TxHash.String() }, 0},
	{"payments?from", func(l listed, n int) string { return "payments?limit=1&from=" + l.payment(n).From.String() }, 0},
	{"payments?to", func(l listed, n int) string { return "payments?limit=5&to=" + l.Address(l.Owner(n)).String() }, 0},
	{"payments?amount", func(l listed, n int) string { return "payments?limit=1&amount=" + l.payment(n).Amount.String() }, 0},
	{"payments?confirmedAfter&confirmedBefore", func(l listed, n int) string { return "payments?" + l.span("confirmed", n) }, 0},
	{"payments?merchantId&confirmedAfter", func(l listed, n int) string {
		return fmt.Sprintf("payments?limit=5&merchantId=%s&confirmedAfter=%d", l.merchant(n), l.At(0).Unix())
	}, 0},
	{"payments?to=largest&merchantId, none found", func(l listed, _ int) string { return "payments?merchantId=nobody&to=" + l.Address(0).String() }, 0},
	{"payments/ID", func(l listed, n int) string { return "payments/" + l.payment(n).ID }, 0},
	{"payments/ID/refunds", func(l listed, n int) string { return "payments/" + l.payment(n).ID + "/refunds" }, 0},
	{"claims", func(listed, int) string { return "claims" }, 0},

	{"refunds", func(listed, int) string { return "refunds" }, 1},
	{"refunds?merchantId=largest", func(listed, int) string { return "refunds?merchantId=" + seed.Merchant(0) }, 0},
	{"refunds/ID", func(l listed, n int) string { return "refunds/" + l.refunds[n%len(l.refunds)] }, 0},
	{"customers?merchantId=largest", func(listed, int) string { return "customers?merchantId=" + seed.Merchant(0) }, 3},
	{"inbox", func(listed, int) string { return "inbox?limit=5" }, 0},
	{"inbox?merchantId=largest", func(listed, int) string { return "inbox?limit=5&merchantId=" + seed.Merchant(0) }, 0},
	{"inbox/counts?merchantId", func(l listed, n int) string { return "inbox/counts?merchantId=" + l.merchant(n) }, 0},
	{"inbox/decisions", func(listed, int) string { return "inbox/decisions" }, 0},

	{"merchants", func(listed, int) string { return "merchants" }, 0},
	{"operator/merchants", func(listed, int) string { return "operator/merchants?limit=5" }, 0},
	{"payment-links", func(listed, int) string { return "payment-links" }, 0},
	{"keys", func(listed, int) string { return "keys" }, 0},
	{"audit", func(listed, int) string { return "audit" }, 0},
	{"requests", func(listed, int) string { return "requests" }, 0},

	{"events", func(listed, int) string { return "events" }, 3},
	{"events?merchantId=largest", func(listed, int) string { return "events?merchantId=" + seed.Merchant(0) }, 0},
	{"events?merchantId", func(l listed, n int) string { return "events?limit=1&merchantId=" + l.merchant(n) }, 0},
	{"events?type", func(listed, int) string { return "events?type=" + string(invoice.EventCreated) }, 1},
	{"events?delivery=delivered", func(listed, int) string { return "events?delivery=delivered" }, 3},
	{"events?delivery=pending", func(listed, int) string { return "events?delivery=pending" }, 0},
	{"events?delivery=failed", func(listed, int) string { return "events?limit=5&delivery=failed" }, 0},
	{"events?merchantId=largest&delivery=delivered", func(listed, int) string { return "events?delivery=delivered&merchantId=" + seed.Merchant(0) }, 0},
	{"events?merchantId=largest&delivery=pending", func(listed, int) string { return "events?delivery=pending&merchantId=" + seed.Merchant(0) }, 0},
	{"events?merchantId=largest&delivery=failed", func(listed, int) string { return "events?limit=1&delivery=failed&merchantId=" + seed.Merchant(0) }, 0},
	{"events?invoiceId", func(l listed, n int) string { return "events?invoiceId=" + l.Invoice(l.kept(n)).ID }, 0},
	{"events?createdAfter&createdBefore", func(l listed, n int) string { return "events?limit=5&" + l.span("created", l.kept(n)) }, 0},
	{"events/ID", func(l listed, n int) string { return "events/" + l.events[n%len(l.events)] }, 0},

	{"invoices?q=ID", func(l listed, n int) string { return "invoices?q=" + l.Invoice(n).ID }, 0},
	{"invoices?q=beginning of an ID", func(l listed, n int) string { return "invoices?q=" + l.Invoice(n).ID[:12] }, 0},
	{"invoices?q=reference", func(_ listed, n int) string { return fmt.Sprintf("invoices?q=order-%d", n) }, 0},
	{"invoices?q=on-chain id", func(l listed, n int) string { return "invoices?q=" + l.Invoice(n).CommitmentID.String() }, 0},
	{"invoices?q=txHash", func(l listed, n int) string { return "invoices?q=" + l.payment(n).TxHash.String() }, 0},
	{"invoices?q=beginning of a txHash", func(l listed, n int) string { return "invoices?q=" + l.payment(n).TxHash.String()[:12] }, 0},
	{"invoices?q=payer", func(l listed, n int) string { return "invoices?limit=1&q=" + l.payment(n).From.String() }, 0},
	{"invoices?q=settlement address", func(l listed, n int) string { return "invoices?limit=5&q=" + l.Address(l.Owner(n)).String() }, 0},
	{"invoices?q=payment's ID", func(l listed, n int) string { return "invoices?q=" + l.payment(n).ID }, 0},
	{"invoices?q=event's ID", func(l listed, n int) string { return "invoices?q=" + l.events[n%len(l.events)] }, 0},
	{"invoices?q=unknown hash", func(_ listed, n int) string { return "invoices?q=" + numberHash(uint64(n)).String() }, 0},
	{"invoices?q=unknown account", func(_ listed, n int) string { return "invoices?q=" + account(n).String() }, 0},
	{"invoices?q=unknown text", func(_ listed, n int) string { return fmt.Sprintf("invoices?q=nothing-%d", n) }, 0},
}

func listedException(n int) string {
	return []string{"underpaid", "overpaid", "late", "duplicate"}[n%4]
}

// kept returns the number of an invoice whose events are kept, drawn by n.
func (l listed) kept(n int) int {
	newest := int(int64(l.Invoices) * int64(config.DefaultRetention) / int64(seed.Period))
	return l.Invoices - 1 - n%newest
}

// span returns a filter by a time that has about listSpan rows, the nth first.
func (l listed) span(what string, n int) string {
	from := l.At(n)
	until := from.Add(listSpan * l.At(1).Sub(l.At(0)))
	return fmt.Sprintf("%[1]sAfter=%[2]d&%[1]sBefore=%[3]d", what, from.Unix(), until.Unix()+1)
}
