package api

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
)

// Customer converts a customer of a merchant.
func Customer(c ledger.Customer) apitypes.CustomerRecord {
	return apitypes.CustomerRecord{
		Customer: c.Key(), MerchantID: c.MerchantID, ID: c.ID, Email: c.Email, NewestInvoiceID: c.NewestInvoice, InvoicedAt: invoice.UnixSeconds(c.InvoicedAt),
	}
}

// InvoiceReport converts the sums of invoices.
func InvoiceReport(r report.Invoices) apitypes.InvoiceReport {
	out := apitypes.InvoiceReport{Lines: make([]apitypes.InvoiceReportLine, len(r.Lines)), Truncated: r.Truncated}
	for i, l := range r.Lines {
		out.Lines[i] = apitypes.InvoiceReportLine{
			ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key), Invoices: l.Invoices, Amount: l.Amount.String(),
			Open: l.Open, OpenAmount: l.OpenAmount.String(), Expired: l.Expired, ExpiredAmount: l.ExpiredLeft.String(),
			AmountPaid: l.Paid.String(), AmountRefunded: l.Refunded.String(),
		}
	}
	return out
}

// Erasure converts the erasure of a customer.
func Erasure(e ledger.Erasure) apitypes.Erasure {
	w := apitypes.Erasure{ID: e.ID, MerchantID: e.MerchantID, Status: apitypes.ErasureRunning, Invoices: e.Invoices, CreatedAt: invoice.UnixSeconds(e.CreatedAt)}
	if !e.FinishedAt.IsZero() {
		w.Status, w.FinishedAt = apitypes.ErasureDone, invoice.UnixSeconds(e.FinishedAt)
	}
	return w
}
