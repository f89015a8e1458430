package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
)

// Limits of summaries.
const (
	// MaxSummaryPeriod bounds the period of a summary.
	MaxSummaryPeriod = 93 * 24 * time.Hour
	// MaxSummedInvoices bounds the invoices per state that a summary adds up, and the invoices of a report.
	MaxSummedInvoices = 5000
)

// SummaryReader reads the rows for a summary or a statement from the database. NewReader returns one.
type SummaryReader interface {
	report.StatementReader
	// InvoicedAmounts returns the amounts of up to limit invoices of a merchant in a state
	// that were created at a time or later, newest first.
	InvoicedAmounts(ctx context.Context, merchantID string, status invoice.Status, since time.Time, limit int) ([]report.InvoicedAmount, error)
	// Cursor returns the cursor of a chain, or db.ErrNotFound.
	Cursor(ctx context.Context, chainKey string) (ledger.Cursor, error)
}

// summary answers GET /api/reports/summary.
func (a *API) summary(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	request := a.summaryRequest(r.Context(), q)
	if q.err != nil {
		return q.err
	}
	days, err := report.Days(r.Context(), a.conf.Summarized, request)
	if err != nil {
		return fmt.Errorf("add days up: %w", err)
	}
	out := apitypes.Summary{
		MerchantID: request.MerchantID, From: request.From.Unix(), To: request.To.Unix(), Timezone: request.Location.String(), Days: db.Each(days, summaryLine),
		Chains: []apitypes.SummaryChain{},
	}
	if out.Open, err = a.sumInvoices(r, request.MerchantID, invoice.Open, time.Unix(0, 0)); err != nil {
		return err
	}
	if out.Expired, err = a.sumInvoices(r, request.MerchantID, invoice.Expired, request.From); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(a.chains)) {
		c, err := a.conf.Summarized.Cursor(r.Context(), key)
		switch {
		case errors.Is(err, db.ErrNotFound): // the chain was never read
		case err != nil:
			return fmt.Errorf("read cursor of %s: %w", key, err)
		default:
			out.Chains = append(out.Chains, apitypes.SummaryChain{
				ChainKey: key, BlockNumber: int64(c.Indexed.Number), BlockTime: c.Indexed.Time.Unix(), ConfirmedBlockNumber: int64(c.Confirmed.Number), Halted: c.Halted != "",
			})
		}
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.SummaryResponse{Summary: out}, nil)
}

func summaryLine(l *report.Line) apitypes.SummaryLine {
	return apitypes.SummaryLine{
		Day: l.Day, ChainKey: l.ChainKey, Currency: l.Currency, Decimals: decimals(l.Key), Payments: l.Payments, Gross: l.Gross.String(),
		Refunds: l.Refunds, Refunded: l.Refunded.String(), Net: l.Net.String(),
	}
}

// sumInvoices adds up the newest invoices of a state that were created at a time or later.
func (a *API) sumInvoices(r *http.Request, merchantID string, status invoice.Status, since time.Time) (apitypes.InvoiceSums, error) {
	amounts, err := a.conf.Summarized.InvoicedAmounts(r.Context(), merchantID, status, since, MaxSummedInvoices+1)
	sums := report.SumInvoices(amounts[:min(len(amounts), MaxSummedInvoices)], a.decimals)
	return apitypes.InvoiceSums{Truncated: len(amounts) > MaxSummedInvoices, Sums: db.Each(sums, func(sum *report.Sum) apitypes.InvoiceSum {
		return apitypes.InvoiceSum{ChainKey: sum.ChainKey, Currency: sum.Currency, Decimals: decimals(sum.Key), Invoices: sum.Invoices, Amount: sum.Amount.String()}
	})}, db.During("add invoices up", err)
}

// summaryRequest parses the parameters of a summary, which ends now. Without a time zone, its days are
// in the merchant's.
func (a *API) summaryRequest(ctx context.Context, q *query) report.Request {
	r := report.Request{MerchantID: a.reportMerchant(q), Decimals: a.decimals, To: a.conf.Now().UTC().Truncate(time.Second).Add(time.Second)}
	r.Location = a.reportZone(ctx, q, r.MerchantID)
	r.From = q.instant("from", r.Location)
	switch {
	case !r.From.Before(r.To):
		q.reject("from", "must not lie in the future")
	case r.To.Sub(r.From) > MaxSummaryPeriod:
		q.reject("from", "must be at most %d days ago", int(MaxSummaryPeriod.Hours()/24))
	}
	return r
}

// reportMerchant returns the merchant of a report, or "" for all.
func (a *API) reportMerchant(q *query) string {
	id := q.merchantID()
	if q.none {
		q.reject("merchantId", "must be an id of a merchant; it is %.80q", id)
	}
	return id
}

// reportZone returns the time zone of a report: the parameter or, without it, the merchant's.
func (a *API) reportZone(ctx context.Context, q *query, merchantID string) *time.Location {
	zone := q.timezone()
	if q.values.Has("timezone") || merchantID == "" || q.err != nil {
		return zone
	}
	m, err := a.conf.Merchants.Get(ctx, access.FromContext(ctx), merchantID)
	if err != nil && !errors.Is(err, access.ErrNotFound) {
		q.err = err
	}
	return m.Zone()
}

// decimals returns the decimals of a line, or nil if they are not known.
func decimals(k report.Key) *int {
	if k.Decimals < 0 {
		return nil
	}
	return &k.Decimals
}

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
