package webhooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/web/api"
)

// recordRequests reads, trims and cleans the log of requests.
func recordRequests(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	for i := range 4 {
		f := access.RequestFilter{Before: "log_9", Limit: 50}
		if i&1 == 1 {
			f.MerchantID = "m"
		}
		if i&2 == 2 {
			f.KeyID = "key_1"
		}
		for _, f.Status = range append(access.RequestStatuses, "") {
			run(fmt.Sprintf("requests: %+v", f))(access.NewReader(read).Requests(t.Context(), f))
		}
	}
	run("requests: trim")(access.NewTables(read).TrimRequests(t.Context(), "m", 1000, 500))
	run("requests: clean")(access.NewTables(read).CleanRequests(t.Context(), "log_1", 500))
}

// recordCustomers reads lists of customers.
func recordCustomers(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	for _, after := range []string{"", "x"} {
		run("customers: after " + after)(ledger.NewReader(read).Customers(t.Context(), ledger.CustomerFilter{MerchantID: "m", Prefix: "c", After: after, Limit: 50}))
	}
	run("customers: found")(ledger.NewReader(read).FindCustomers(t.Context(), "m", "c", 50))
	run("customers: one")(ledger.FindCustomer(t.Context(), read, "m", "c"))
}

// recordDecisions reads decisions, submissions of refunds, and sessions of the dashboard.
func recordDecisions(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	for _, merchant := range []string{"", "m"} {
		run("decisions: of " + merchant)(ledger.NewReader(read).Decisions(t.Context(), ledger.DecisionFilter{MerchantID: merchant, Before: "dec_9", Limit: 50}))
		run("sessions: of " + merchant)(access.Sessions(t.Context(), read, access.SessionFilter{MerchantID: merchant, Limit: 50}))
	}
	recordInbox(t, read, run)
	run("decisions: in force")(ledger.DecisionsInForce(t.Context(), read, []string{"pay_1", "pay_2"}))
	run("submissions: of a refund")(ledger.NewReader(read).Submissions(t.Context(), "ref_1"))
	run("decisions: of an object")(ledger.NewReader(read).Decisions(t.Context(), ledger.DecisionFilter{ObjectID: "pay_1", Limit: 50}))
	run("decisions: of an invoice")(ledger.NewReader(read).Decisions(t.Context(), ledger.DecisionFilter{ObjectID: "inv_1", Limit: 50}))
	run("sessions: of a key")(access.Sessions(t.Context(), read, access.SessionFilter{KeyID: "key_1", Limit: 50}))
}

// recordPaymentLinks reads pages of payment links with all combinations of filters, and single links.
func recordPaymentLinks(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	for i := range 1 << 4 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		f := ledger.PaymentLinkFilter{MerchantID: pick(0, "m"), Slug: pick(1, "a"), Before: pick(2, "lnk_5"), Limit: 50}
		if i>>3 == 1 {
			f.Archived = new(bool)
		}
		run(fmt.Sprintf("payment links %d", i))(ledger.PaymentLinks(t.Context(), read, f))
	}
	run("payment link")(ledger.PaymentLink(t.Context(), read, "lnk_1"))
	run("payment link")(ledger.PaymentLinkBySlug(t.Context(), read, "m", "a"))
	run("payment link")(ledger.PaymentLinkByKey(t.Context(), read, "", "k"))
}

// recordRefundLists reads pages of refunds with all combinations of filters.
func recordRefundLists(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	for i := range 1 << 7 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		run(fmt.Sprintf("refunds %d", i))(ledger.NewReader(read).RefundRecords(t.Context(), ledger.RefundFilter{
			MerchantID: pick(0, "m"), PaymentID: pick(1, "pay_1"), InvoiceID: pick(2, "inv_1"), Status: invoice.RefundStatus(pick(3, "pending")),
			ChainKey: pick(4, "base"), TxHash: pick(5, invoice.Hash{1}.String()), Before: pick(6, "l5"), Limit: 50,
		}))
	}
}

// recordReports reads first and later pages of reports.
func recordReports(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	for _, merchant := range []string{"", "m"} {
		for _, after := range []string{"", "x"} {
			f := report.ReportFilter{MerchantID: merchant, From: rowtest.At(1), To: rowtest.At(1000), After: rowtest.At(7), AfterID: after, Limit: 500}
			run("report: of " + merchant + " after " + after)(report.NewReader(read).ReportedPayments(t.Context(), f))
			run("report: of " + merchant + " after " + after)(report.NewReader(read).ReportedRefunds(t.Context(), f))
			run("report: of " + merchant + " after " + after)(report.NewReader(read).TxShares(t.Context(), f))
			run("report: of " + merchant + " after " + after)(report.NewReader(read).SettledAmounts(t.Context(), f))
		}
	}
	for _, merchant := range []string{"", "m"} {
		run("summary: of " + merchant)(report.NewReader(read).Rollups(t.Context(), report.RollupFilter{MerchantID: merchant, From: rowtest.At(1), To: rowtest.At(1000), Limit: 500}))
		run("summary: of " + merchant)(report.NewReader(read).DayRollups(t.Context(), report.RollupFilter{MerchantID: merchant, From: rowtest.At(1), To: rowtest.At(1000), Limit: 500}))
		run("sums: of " + merchant)(report.NewReader(read).InvoicedAmounts(t.Context(), merchant, invoice.Expired, rowtest.At(1), 500))
	}
	run("summary: progress")(ledger.NewReader(read).RollupsThrough(t.Context()))
	run("summary: progress")(report.NewReader(read).StaleRollups(t.Context(), rowtest.At(1), rowtest.At(1000), 100))
	run("summary: progress")(report.RollupsBetween(t.Context(), read, rowtest.At(1), rowtest.At(1000)))
	for _, after := range []string{"", "inv_1"} {
		run("report: stated after " + after)(report.NewReader(read).StatedInvoices(t.Context(), report.StatedFilter{MerchantID: "m", From: rowtest.At(1), To: rowtest.At(1000), After: after, End: "inv_9", Limit: 500}))
	}
	run("report: stated earlier")(report.NewReader(read).EarlierInvoices(t.Context(), report.EarlierFilter{MerchantID: "m", From: rowtest.At(100), To: rowtest.At(1000), End: "inv_9", Limit: 1}, func([]report.StatedInvoice) error { return nil }))
	run("report: between")(report.NewReader(read).ConfirmedPaymentsBetween(t.Context(), "inv_1", invoice.Position{BlockNumber: 1}, invoice.Position{BlockNumber: 9}, 500))
}

// filteredPayments are lists of payments by filters that few rows may match.
var filteredPayments = map[string]ledger.PaymentFilter{
	"of invoice":             {InvoiceID: "inv_1"},
	"of invoice, with all":   {InvoiceID: "inv_1", From: hexOf("b", 40), Amount: "1", IncludePending: true, IncludeUnattributed: true},
	"from":                   {From: hexOf("b", 40)},
	"from, unattributed":     {From: hexOf("b", 40), IncludeUnattributed: true, Before: ledger.PaymentPosition{SeenID: "seen"}},
	"amount":                 {Amount: "100"},
	"amount, on base":        {Amount: "100", ChainKey: "base", To: hexOf("a", 40)},
	"to":                     {To: hexOf("a", 40)},
	"confirmed":              {Confirmed: db.Span{From: rowtest.At(1), To: rowtest.At(100)}},
	"confirmed, with all":    {Confirmed: db.Span{From: rowtest.At(1)}, ChainKey: "base", IncludeUnattributed: true},
	"confirmed, second page": {Confirmed: db.Span{To: rowtest.At(100)}, Before: ledger.PaymentPosition{Confirmed: 5, SeenID: "seen"}},
}

// filterIndexes are the indexes that these lists must use.
var filterIndexes = map[string]string{
	"reference": "_reference", "reference, with all": "_reference", "metadata": "_pair", "metadata, of paid": "_pair",
	"price": "invoices_of_price", "price of open": "invoices_of_price",
	"customer": "invoice_details_by_customer", "customer, with all": "invoice_details_by_customer",
	"exception": "_state", "exception of paid": "_state",
	"invoices to": "invoices_by_address", "invoices to, in may": "invoices_by_address",
	"paid": "_state", "paid, second page": "_state",
	"of invoice": "payments_of_invoice", "of invoice, with all": "payments_of_invoice",
	"from": "payments_by_payer", "from, unattributed": "payments_by_payer",
	"amount": "payments_by_price", "amount, on base": "payments_by_price",
	"to":        "payments_by_address",
	"confirmed": "confirmation", "confirmed, with all": "confirmation", "confirmed, second page": "confirmation",
}

// filteredInvoices are lists of invoices by filters that few rows may match.
var filteredInvoices = map[string]ledger.InvoiceFilter{
	"reference":           {Reference: "order-1"},
	"reference, with all": {Reference: "order-1", Metadata: []ledger.MetadataPair{{Key: "k", Value: "v"}}, Status: invoice.Open, Before: "inv_5"},
	"metadata":            {Metadata: []ledger.MetadataPair{{Key: "k", Value: "v"}}},
	"metadata, of paid":   {Metadata: []ledger.MetadataPair{{Key: "k", Value: "v"}, {Key: "l", Value: "w"}}, Status: invoice.Paid, Before: "inv_5"},
	"price":               {Amount: "100"},
	"price of open":       {Amount: "100", Status: invoice.Open, Exception: invoice.Late, To: hexOf("a", 40), Before: "inv_5"},
	"exception":           {Exception: invoice.Late},
	"exception of paid":   {Exception: invoice.Overpaid, Status: invoice.Paid, To: hexOf("a", 40), Before: "inv_5"},
	"invoices to":         {To: hexOf("a", 40)},
	"invoices to, in may": {To: hexOf("a", 40), Created: db.Span{From: rowtest.At(100), To: rowtest.At(2000)}},
	"customer":            {MerchantID: "m", Customer: "c"},
	"customer, with all":  {MerchantID: "m", Customer: "c", Reference: "order-1", Metadata: []ledger.MetadataPair{{Key: "k", Value: "v"}}, Status: invoice.Open, Before: "inv_5"},
	"created":             {Created: db.Span{From: rowtest.At(100)}},
	"paid":                {Status: invoice.Paid},
	"paid, second page":   {Status: invoice.Paid, Before: "inv_5"},
}

// recordInbox reads the items of the inbox.
func recordInbox(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	for _, merchant := range []string{"", "m"} {
		for _, kind := range invoice.ItemKinds {
			run("inbox: " + string(kind) + " of " + merchant)(ledger.InboxEntries(t.Context(), read, ledger.InboxFilter{MerchantID: merchant, Kind: kind, Before: "06", Limit: 50}, rowtest.At(1)))
		}
		run("inbox: counts of " + merchant)(ledger.CountInbox(t.Context(), read, merchant, rowtest.At(1), 101))
	}
	run("inbox: objects")(ledger.InvoicesByID(t.Context(), read, []string{"inv_1", "inv_2"}))
	run("inbox: objects")(ledger.PaymentsSeen(t.Context(), read, []string{"01", "02"}))
	run("inbox: objects")(ledger.RefundRecordsByID(t.Context(), read, []string{"ref_1", "ref_2"}))
	run("inbox: refunds of payments")(ledger.RecordsOfPayments(t.Context(), read, []string{"pay_1", "pay_2"}))
}

// recordOperator runs the operator's reads.
func recordOperator(t *testing.T, read *db.DB, run runner) {
	t.Helper()
	run("operator: counts")(api.CountMerchant(t.Context(), read, "m", rowtest.At(10)))
	run("operator: costs")(txmgr.DailyCosts(t.Context(), read, "base", rowtest.At(10)))
}

// hexOf returns 0x and n times a digit.
func hexOf(digit string, n int) string { return "0x" + strings.Repeat(digit, n) }
