package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/report"
)

// monthLayout is how a month is written, such as 2026-11.
const monthLayout = "2006-01"

// statement answers GET /api/reports/statement.
func (a *API) statement(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	request, month, err := a.statementRequest(r.Context(), q)
	if err != nil {
		return err
	}
	rows, table, format := chosenTable(q, r, statementTables)
	if q.err != nil {
		return q.err
	}
	var made report.Statement
	err = a.makeReport(w, r, func(ctx context.Context) (err error) {
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

// statementRequest parses the parameters of a statement. Without a time zone, the month is in the
// merchant's.
func (a *API) statementRequest(ctx context.Context, q *query) (r report.Request, month string, err error) {
	r.Location, r.Decimals = q.timezone(), a.decimals
	var possible bool
	switch r.MerchantID, possible = q.merchantID(); {
	case r.MerchantID == "":
		q.reject("merchantId", "is required with a key of the operator")
	case !possible:
		q.reject("merchantId", "must be an id of a merchant; it is %.80q", r.MerchantID)
	}
	if _, given := q.get("timezone"); !given && q.err == nil {
		m, err := a.conf.Merchants.Get(ctx, access.FromContext(ctx), r.MerchantID)
		if err != nil && !errors.Is(err, access.ErrNotFound) {
			return r, "", err
		}
		r.Location = m.Zone()
	}
	month, _ = q.get("month")
	first, err := time.Parse(monthLayout, month)
	if err != nil || first.Year() < 1970 || clock.Format(first, time.UTC, monthLayout) != month {
		q.reject("month", "must be a month such as 2026-11; it is %.40q", month)
		return r, month, q.err
	}
	r.From, r.To = invoice.DayStart(clock.Format(first, time.UTC, time.DateOnly), r.Location), invoice.DayStart(clock.Format(first.AddDate(0, 1, 0), time.UTC, time.DateOnly), r.Location)
	switch {
	case r.From.Unix() < 0:
		q.reject("month", "must not begin before 1970 in UTC; it is %s", month)
	case a.conf.Now().Before(r.From):
		q.reject("month", "must have begun; it is %s", month)
	}
	return r, month, q.err
}

// statementTables are the tables of a statement, each with its header.
var statementTables = map[string]func(apitypes.Statement) [][]string{
	"lines": func(s apitypes.Statement) [][]string { return withPeriod(statementLines(s), s.From, s.To, s.Timezone) },
	"fees":  func(s apitypes.Statement) [][]string { return withPeriod(feeRows(s.Fees), s.From, s.To, s.Timezone) },
}

// statementLines returns the lines of a statement as a table.
func statementLines(s apitypes.Statement) [][]string {
	rows := [][]string{{
		"chainKey", "currency", "decimals", "month", "opening", "invoiced", "settled", "canceled", "expired", "waived", "closing",
		"heldBefore", "received", "refunded", "held", "payments", "refunds",
	}}
	for _, l := range s.Lines {
		decimals := ""
		if l.Decimals != nil {
			decimals = strconv.Itoa(*l.Decimals)
		}
		rows = append(rows, []string{
			l.ChainKey, l.Currency, decimals, s.Month, l.Opening, l.Invoiced, l.Settled, l.Canceled, l.Expired, l.Waived, l.Closing,
			l.HeldBefore, l.Received, l.Refunded, l.Held, strconv.FormatInt(l.Payments, 10), strconv.FormatInt(l.Refunds, 10),
		})
	}
	return withDecimals(rows, "opening", "invoiced", "settled", "canceled", "expired", "waived", "closing", "heldBefore", "received", "refunded", "held")
}
