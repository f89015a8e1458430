package api

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"

	"github.com/quittance/quittance/apitypes"
)

// reportTables are the tables of a report, each with its header.
var reportTables = map[string]func(apitypes.SettlementReport) [][]string{
	"lines": reportLines,
	"fees":  func(r apitypes.SettlementReport) [][]string { return feeRows(r.Fees) },
}

// chosenTable returns the table that a request for CSV wants, and nil for one for JSON.
func chosenTable[R any](q *query, r *http.Request, tables map[string]func(R) [][]string) func(R) [][]string {
	name, given := q.get("table")
	switch {
	case !wantsCSV(r):
		if given {
			q.reject("table", "applies to CSV alone (Accept: text/csv)")
		}
		return nil
	case !given:
		name = "lines"
	case tables[name] == nil:
		q.reject("table", "must be lines or fees; it is %.40q", name)
	}
	return tables[name]
}

// reportLines returns the lines of a report as a table.
func reportLines(made apitypes.SettlementReport) [][]string {
	rows := [][]string{{
		"day", "chainKey", "currency", "decimals", "payments", "gross", "settled", "underpaid", "suffixes", "overpaid", "late", "duplicate", "refunds", "refunded", "net",
	}}
	for _, l := range made.Lines {
		decimals := ""
		if l.Decimals != nil {
			decimals = strconv.Itoa(*l.Decimals)
		}
		rows = append(rows, []string{
			l.Day, l.ChainKey, l.Currency, decimals, strconv.FormatInt(l.Payments, 10), l.Gross, l.Settled, l.Underpaid, l.Suffixes, l.Overpaid, l.Late, l.Duplicate,
			strconv.FormatInt(l.Refunds, 10), l.Refunded, l.Net,
		})
	}
	return rows
}

// feeRows returns fees as a table.
func feeRows(fees []apitypes.TransactionFee) [][]string {
	rows := [][]string{{"chainKey", "kind", "merchantId", "items", "costGwei"}}
	for _, f := range fees {
		rows = append(rows, []string{f.ChainKey, string(f.Kind), f.MerchantID, strconv.FormatInt(f.Items, 10), f.CostGwei})
	}
	return rows
}

// writeTable answers with a table as CSV (RFC 4180).
func writeTable(w http.ResponseWriter, rows [][]string) error {
	var buffer bytes.Buffer
	c := csv.NewWriter(&buffer)
	c.UseCRLF = true
	for _, row := range rows {
		// A number may begin with a minus sign, and only texts can be formulas.
		for i := range row[:min(3, len(row))] {
			row[i] = harmless(row[i])
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	_, err := w.Write(buffer.Bytes())
	return err
}
