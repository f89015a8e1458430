package api

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of reports.
const (
	// MaxReportPeriod bounds the period of a report.
	MaxReportPeriod = 366 * 24 * time.Hour
	// ReportTimeout bounds the time that a report takes.
	ReportTimeout = 2 * time.Minute
	// MaxReports bounds the reports that are made at a time.
	MaxReports = 8
	// MaxOwnReports bounds the reports of one owner of keys at a time.
	MaxOwnReports = 2
)

// settlementReport answers GET /api/reports/settlement.
func (a *API) settlementReport(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	request := a.reportRequest(q)
	rows, table, format := chosenTable(q, r, reportTables)
	if q.err != nil {
		return q.err
	}
	var made report.Report
	err := a.makeReport(w, r, func(ctx context.Context) (err error) {
		made, err = report.Settlement(ctx, a.conf.Reader, request)
		return err
	})
	if err != nil {
		return err
	}
	answer := SettlementReport(request, made)
	if rows != nil {
		period := clock.Format(request.From, request.Location, time.DateOnly) + "-" + clock.Format(request.To.Add(-time.Second), request.Location, time.DateOnly)
		return writeTable(w, r, format, tableName("settlement", table, period), rows(answer))
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.SettlementReportResponse{Report: answer}, nil)
}

// makeReport makes a report that may take longer than RequestTimeout, in one of the slots of reports.
func (a *API) makeReport(w http.ResponseWriter, r *http.Request, report func(ctx context.Context) error) error {
	leave, err := a.reports.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	return db.During("make report", a.long(w, r, ReportTimeout, report))
}

// reportRequest parses the parameters of a report.
func (a *API) reportRequest(q *query) (r report.Request) {
	r.Location, r.Decimals = q.timezone(), a.decimals
	r.MerchantID = a.reportMerchant(q)
	r.From, r.To = q.instant("from", r.Location), q.instant("to", r.Location)
	switch {
	case !r.From.Before(r.To):
		q.reject("to", "must be after from")
	case r.To.Sub(r.From) > MaxReportPeriod:
		q.reject("to", "must be at most %d days after from", int(MaxReportPeriod.Hours()/24))
	}
	r.GroupBy = cmp.Or(report.Group(one(q, "groupBy", report.Groups)), report.ByCurrency)
	return r
}

// SettlementReport converts a report.
func SettlementReport(r report.Request, made report.Report) apitypes.SettlementReport {
	return apitypes.SettlementReport{
		MerchantID: r.MerchantID, From: r.From.Unix(), To: r.To.Unix(), Timezone: r.Location.String(), GroupBy: apitypes.ReportGroup(r.GroupBy),
		Lines: db.Each(made.Lines, settlementLine), Totals: db.Each(made.Totals, settlementLine), Fees: transactionFees(made.Fees),
	}
}

func transactionFees(lines []*report.FeeLine) []apitypes.TransactionFee {
	return db.Each(lines, func(l *report.FeeLine) apitypes.TransactionFee {
		return apitypes.TransactionFee{ChainKey: l.ChainKey, Kind: apitypes.FeeKind(l.Kind), MerchantID: l.MerchantID, Items: l.Items, CostGwei: l.Gwei.String()}
	})
}

func settlementLine(l *report.Line) apitypes.ReportLine {
	return apitypes.ReportLine{
		Day: l.Day, ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key),
		Payments: l.Payments, Gross: l.Gross.String(), Settled: l.Settled.String(), Underpaid: l.Underpaid.String(), Suffixes: l.Suffixes.String(),
		Overpaid: l.Overpaid.String(), Late: l.Late.String(), Duplicate: l.Duplicate.String(),
		Refunds: l.Refunds, Refunded: l.Refunded.String(), Net: l.Net.String(),
	}
}

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
	rows := columnsOf(made.Lines, "day chainKey currency decimals payments gross settled underpaid suffixes overpaid late duplicate refunds refunded net")
	return withDecimals(rows, "gross", "settled", "underpaid", "suffixes", "overpaid", "late", "duplicate", "refunded", "net")
}

// columnsOf returns members of lines as a table with a header. An absent member is empty.
func columnsOf[T any](lines []T, names string) [][]string {
	header, known := strings.Fields(names), memberNames[T]()
	return append([][]string{header}, db.Each(lines, func(line T) []string {
		return db.Each(header, func(name string) string {
			if v := reflect.Indirect(reflect.ValueOf(line).Field(slices.Index(known, name))); v.IsValid() {
				return fmt.Sprint(v)
			}
			return ""
		})
	})...)
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
	rows := columnsOf(fees, "chainKey kind merchantId items costGwei")
	rows[0] = append(rows[0], "costDecimal")
	for i, f := range fees {
		rows[i+1] = append(rows[i+1], invoice.MajorSum(f.CostGwei, gweiDecimals))
	}
	return rows
}

// writeTable answers with a table as CSV (RFC 4180), as a file with a name, which is without .csv.
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
