package api

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
)

// reportTables are the tables of a report, each with its header.
var reportTables = map[string]func(apitypes.SettlementReport) [][]string{
	"lines": func(r apitypes.SettlementReport) [][]string {
		return withPeriod(reportLines(r), r.From, r.To, r.Timezone)
	},
	"fees": func(r apitypes.SettlementReport) [][]string {
		return withPeriod(feeRows(r.Fees), r.From, r.To, r.Timezone)
	},
}

// chosenTable returns the table that a request for CSV asks for, its name, and its CSV format. The
// table is nil for a request for JSON.
func chosenTable[R any](q *query, r *http.Request, tables map[string]func(R) [][]string) (rows func(R) [][]string, name string, format csvFormat) {
	format = q.csvFormat(wantsCSV(r), nil)
	name, given := q.get("table")
	switch {
	case !wantsCSV(r):
		if given {
			q.reject("table", "applies to CSV alone (Accept: text/csv)")
		}
		return nil, "", format
	case !given:
		name = "lines"
	case tables[name] == nil:
		q.reject("table", "must be lines or fees; it is %.40q", name)
	}
	return tables[name], name, format
}

// tableName returns the name of the file with a table of a report, such as settlement-2026-11-01,
// or settlement-fees-2026-11-01 with another table than its lines.
func tableName(report, table, period string) string {
	if table != "lines" {
		report += "-" + table
	}
	return report + "-" + period
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
	return withDecimals(rows, "gross", "settled", "underpaid", "suffixes", "overpaid", "late", "duplicate", "refunded", "net")
}

// withDecimals appends to each row the sums in some columns, which are in minor units, as decimal
// numbers. They are empty if the row's decimals are.
func withDecimals(rows [][]string, columns ...string) [][]string {
	header := rows[0]
	decimals := slices.Index(header, "decimals")
	for _, name := range columns {
		sum := slices.Index(header, name)
		rows[0] = append(rows[0], name+decimalSuffix)
		for i, row := range rows[1:] {
			text := ""
			if places, err := strconv.Atoi(row[decimals]); err == nil {
				text = invoice.MajorSum(row[sum], places)
			}
			rows[i+1] = append(row, text)
		}
	}
	return rows
}

// withPeriod appends the period of a report to each row, and the time zone of its days.
func withPeriod(rows [][]string, from, to apitypes.Time, timezone string) [][]string {
	zone, ok := invoice.ParseTimezone(timezone)
	if !ok {
		zone = time.UTC
	}
	at := csvFormat{zone: zone}.at
	rows[0] = append(rows[0], "from", "to", "timezone")
	for i, row := range rows[1:] {
		rows[i+1] = append(row, at(fromSeconds(from)), at(fromSeconds(to)), timezone)
	}
	return rows
}

// gweiDecimals is the number of decimals of a Gwei in a network's coin.
const gweiDecimals = 9

// feeRows returns fees as a table.
func feeRows(fees []apitypes.TransactionFee) [][]string {
	rows := [][]string{{"chainKey", "kind", "merchantId", "items", "costGwei", "costDecimal"}}
	for _, f := range fees {
		rows = append(rows, []string{
			f.ChainKey, string(f.Kind), f.MerchantID, strconv.FormatInt(f.Items, 10), f.CostGwei, invoice.MajorSum(f.CostGwei, gweiDecimals),
		})
	}
	return rows
}

// writeTable answers with a table as CSV (RFC 4180), as a file with a name, which is without
// .csv.
func writeTable(w http.ResponseWriter, r *http.Request, format csvFormat, name string, rows [][]string) error {
	var buffer bytes.Buffer
	c := format.writer(&buffer)
	for n, row := range rows {
		if n > 0 {
			format.localize(rows[0], row)
		}
		// Only texts can be formulas: a number may begin with a minus sign.
		for i := range row[:min(3, len(row))] {
			row[i] = format.harmless(row[i])
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	setCSV(w.Header(), name)
	return webpage.SendData(w, r, http.StatusOK, typeCSV, buffer.Bytes())
}
