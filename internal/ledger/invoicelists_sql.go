package ledger

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// InvoiceFilter selects invoices. Empty fields match all.
type InvoiceFilter struct {
	MerchantID string
	Status     invoice.Status
	Exception  invoice.Exception
	Reference  string
	Customer   string         // key of a customer; only with a merchant
	Metadata   []MetadataPair // the invoices have all of them
	Amount     string         // in minor units
	To         string         // the settlement address, in lower case
	Created    db.Span
	Before     string // an invoice's id; lists invoices created before it
	Limit      int
}

// MetadataPair is a key and its value.
type MetadataPair struct{ Key, Value string }

// Invoices lists invoices with their details, newest first. The cost does not depend on their number. If it examined
// MaxExamined invoices without finding enough, it also returns the id of the last, before which the list continues.
func (q Reader) Invoices(ctx context.Context, f InvoiceFilter) (found []invoice.Invoice, last string, err error) {
	return db.List(ctx, q, f.selection(q), detailedColumns, joinedDetails, f.Limit, detailedTable.Scan, db.ScanID)
}

// selection reads the invoices by an index, and examines them for the filters that it does not answer.
func (f InvoiceFilter) selection(q db.Querier) *db.Selection {
	s := &db.Selection{Rows: "invoices", From: "invoices"}
	rest := f.byIndex(q, s)
	if rest.Reference != "" {
		s.Args, s.Narrows = append(s.Args, rest.Reference), true
		s.Examined = append(s.Examined, fmt.Sprintf("(SELECT reference FROM invoice_details d WHERE d.invoice_id = invoices.id) = $%d", len(s.Args)))
	}
	s.Examine("invoices.merchant_id = ?", rest.MerchantID)
	s.Examine("invoices.status = ?", string(rest.Status))
	s.Examine("invoices.exception = ?", string(rest.Exception))
	s.Examine("invoices.amount = ?", rest.Amount)
	s.Examine("invoices.merchant_address = ?", rest.To)
	s.ExamineTime("invoices.created_at", rest.Created)
	for _, pair := range rest.Metadata {
		s.Args, s.Narrows = append(s.Args, pair.Key, pair.Value), true
		s.Examined = append(s.Examined, fmt.Sprintf(
			"(SELECT count(*) FROM invoice_metadata p WHERE p.invoice_id = invoices.id AND p.key = $%d AND p.value = $%d) > 0", len(s.Args)-1, len(s.Args)))
	}
	if !s.Narrows {
		s.Args, s.Examined = s.Args[:s.Found], nil
	}
	return s
}

// byIndex chooses the index of the filter that the fewest invoices usually match, and returns the
// filters that the index does not answer.
func (f InvoiceFilter) byIndex(q db.Querier, s *db.Selection) (rest InvoiceFilter) {
	first, end := f.Created.Ids(invoice.PrefixInvoice)
	if f.Before != "" {
		end = min(end, f.Before)
	}
	rest = f
	switch {
	case f.Customer != "":
		byCustomer(s, q, f, first, end)
		rest.Customer, rest.MerchantID = "", ""
	case f.Reference != "":
		byDetail(s, "invoice_details", "invoice_details_by", f.MerchantID, "reference", []string{"reference"}, []string{f.Reference}, first, end)
		rest.Reference, rest.MerchantID = "", ""
	case len(f.Metadata) > 0:
		byDetail(s, "invoice_metadata", "invoice_metadata_by", f.MerchantID, "pair", []string{"key", "value"}, []string{f.Metadata[0].Key, f.Metadata[0].Value}, first, end)
		rest.Metadata, rest.MerchantID = f.Metadata[1:], ""
	case f.Amount != "":
		s.Conditions = []string{"length(invoices.id) > 0"} // the condition of the index
		s.Between("invoices_of_price", []string{"invoices.amount", "invoices.id"}, []string{f.Amount}, first, end)
		rest.Amount = ""
	case f.To != "" && f.Exception == "":
		s.Between("invoices_by_address", []string{"invoices.merchant_address", "invoices.id"}, []string{f.To}, first, end)
		rest.To = ""
	default:
		f.ByState(s, first, end)
		rest.MerchantID, rest.Status, rest.Exception = "", "", ""
	}
	return rest
}

// ByState makes the statement read the invoices of a merchant, in a status and with an exception, if the filter has
// them. A merchant with very many invoices may have few in a status, and only old ones.
func (f InvoiceFilter) ByState(s *db.Selection, first, end string) {
	switch {
	case f.Status != "" || f.Exception != "":
		byStates(s, f.MerchantID, states(invoice.State{Status: f.Status, Exception: f.Exception}), first, end)
	case f.MerchantID != "":
		s.Between("invoices_by_merchant", []string{"invoices.merchant_id", "invoices.id"}, []string{f.MerchantID}, first, end)
	default:
		s.Between("", []string{"invoices.id"}, nil, first, end)
	}
}

// states returns the states of invoices that match, as SQL. Empty fields match all.
func states(match invoice.State) (all [][]string) {
	for _, s := range invoice.States() {
		if (match.Status == "" || s.Status == match.Status) && (match.Exception == "" || s.Exception == match.Exception) && (match.Item == "" || s.Item == match.Item) {
			all = append(all, []string{"'" + string(s.Status) + "'", "'" + string(s.Exception) + "'", "'" + string(s.Item) + "'"})
		}
	}
	return all
}

// byStates makes the statement read the invoices in some states, of a merchant unless merchantID is empty.
func byStates(s *db.Selection, merchantID string, states [][]string, first, end string) {
	index, columns := "invoices_by_state", []string{"status", "exception", "item", "id"}
	if merchantID != "" {
		s.Args = append(s.Args, merchantID)
		index, columns = "invoices_by_merchant_state", append([]string{"merchant_id"}, columns...)
		for i, state := range states {
			states[i] = append([]string{db.Parameter(len(s.Args))}, state...)
		}
	}
	s.BetweenAny(index, columns, states, first, end)
}

// byDetail makes the statement read an index of a table of details. Its columns are the merchant's,
// unless merchantID is empty, then those given, then the invoice's id.
func byDetail(s *db.Selection, table, index, merchantID, name string, columns, values []string, first, end string) {
	s.From, s.Joined = table, "invoices"
	s.On = "invoices.id = " + table + ".invoice_id"
	s.Conditions = []string{table + "." + columns[0] + " IS NOT NULL"} // a condition of the partial indexes
	if merchantID != "" {
		index += "_merchant"
		columns, values = append([]string{"merchant_id"}, columns...), append([]string{merchantID}, values...)
	}
	qualified := make([]string, 0, len(columns)+1)
	for _, c := range append(columns, "invoice_id") {
		qualified = append(qualified, table+"."+c)
	}
	s.Between(index+"_"+name, qualified, values, first, end)
}
