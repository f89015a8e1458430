package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/report"
)

// monthLayout is how a month is written, such as 2026-11.
const monthLayout = "2006-01"

// statement answers GET /api/reports/statement.
func (a *API) statement(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	request, month := a.statementRequest(r.Context(), q)
	rows, table, format := chosenTable(q, r, statementTables)
	if q.err != nil {
		return q.err
	}
	var made report.Statement
	err := a.makeReport(w, r, func(ctx context.Context) (err error) {
		made, err = report.NewStatement(ctx, a.conf.Summarized, request)
		return err
	})
	if err != nil {
		return err
	}
	answer := Statement(request, month, made)
	answer.Preliminary = a.conf.Now().Before(request.To.Add(report.RollupDelay))
	if rows != nil {
		return writeTable(w, r, format, tableName("statement", table, month), rows(answer))
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.StatementResponse{Statement: answer}, nil)
}

// statementRequest parses the parameters of a statement. Without a time zone, the month is in the merchant's.
func (a *API) statementRequest(ctx context.Context, q *query) (r report.Request, month string) {
	r.Decimals = a.decimals
	if r.MerchantID = a.reportMerchant(q); r.MerchantID == "" {
		q.reject("merchantId", "is required with a key of the operator")
	}
	r.Location = a.reportZone(ctx, q, r.MerchantID)
	month, _ = q.get("month")
	first, err := time.Parse(monthLayout, month)
	if err != nil || first.Year() < 1970 || clock.Format(first, time.UTC, monthLayout) != month {
		q.reject("month", "must be a month such as 2026-11; it is %.40q", month)
		return r, month
	}
	day := func(at time.Time) time.Time {
		return invoice.DayStart(clock.Format(at, time.UTC, time.DateOnly), r.Location)
	}
	r.From, r.To = day(first), day(first.AddDate(0, 1, 0))
	switch {
	case r.From.Unix() < 0:
		q.reject("month", "must not begin before 1970 in UTC; it is %s", month)
	case a.conf.Now().Before(r.From):
		q.reject("month", "must have begun; it is %s", month)
	}
	return r, month
}

// statementTables are the tables of a statement, each with its header.
var statementTables = map[string]func(apitypes.Statement) [][]string{
	"lines": func(s apitypes.Statement) [][]string { return withPeriod(statementLines(s), s.From, s.To, s.Timezone) },
	"fees":  func(s apitypes.Statement) [][]string { return withPeriod(feeRows(s.Fees), s.From, s.To, s.Timezone) },
}

// statementLines returns the lines of a statement as a table.
func statementLines(s apitypes.Statement) [][]string {
	rows := columnsOf(s.Lines, "chainKey currency decimals opening invoiced settled canceled expired waived closing heldBefore received refunded held payments refunds")
	for i, row := range rows {
		month := s.Month
		if i == 0 {
			month = "month"
		}
		rows[i] = slices.Insert(row, 3, month)
	}
	return withDecimals(rows, "opening", "invoiced", "settled", "canceled", "expired", "waived", "closing", "heldBefore", "received", "refunded", "held")
}

// Statement converts the statement of a month.
func Statement(r report.Request, month string, made report.Statement) apitypes.Statement {
	return apitypes.Statement{
		MerchantID: r.MerchantID, Month: month, From: r.From.Unix(), To: r.To.Unix(), Timezone: r.Location.String(),
		Lines: db.Each(made.Lines, statementLine), Fees: transactionFees(made.Fees),
	}
}

func statementLine(l *report.StatementLine) apitypes.StatementLine {
	return apitypes.StatementLine{
		ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key),
		Opening: l.Opening.String(), Invoiced: l.Invoiced.String(), Settled: l.Settled.String(), Canceled: l.Canceled.String(),
		Expired: l.Expired.String(), Waived: l.Waived.String(), Closing: l.Closing.String(),
		HeldBefore: l.HeldBefore.String(), Received: l.Received.String(), Refunded: l.Refunded.String(), Held: l.Held.String(),
		Payments: l.Payments, Refunds: l.Refunds,
	}
}
