package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
)

// monthLayout is how a month is written in an address, such as 2026-11.
const monthLayout = "2006-01"

// statementPage is the account of a month.
type statementPage struct {
	apitypes.Statement
	Export         string // address of the CSV
	ExportFees     string // address of the CSV of the fees
	Earlier, Later string // addresses of the previous and the next month; Later is empty for the current one
	First, Last    string // days
	Now            int64  // Unix seconds
	Error          string // refusal by the interface, or empty
}

// statement shows the account of a month, the present one by default.
func (d *Dashboard) statement(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	if v.merchant == "" {
		return d.chooseMerchant(w, r, "nav.statement")
	}
	query := v.query()
	month := r.URL.Query().Get("month")
	if month == "" {
		month = clock.Format(d.cfg.Now(), v.Zone(), monthLayout)
	}
	query.Set("month", month)
	var answer apitypes.StatementResponse
	err := d.service.get(r.Context(), "/api/reports/statement", query, &answer)
	body := statementPage{Statement: answer.Statement, Now: d.cfg.Now().Unix()}
	if body.Error, err = detail(err); err != nil {
		return err
	}
	if body.Error == "" {
		if err := d.fillStatement(v, &body); err != nil {
			return err
		}
	}
	body.Month = month
	return d.render(w, r, status(body.Error), "statement.html", "nav.statement", body)
}

// fillStatement adds the shown values of the statement.
func (d *Dashboard) fillStatement(v *visit, body *statementPage) error {
	first, err := time.Parse(monthLayout, body.Month)
	if err != nil {
		return fmt.Errorf("month of a statement: %w", err)
	}
	link := func(months int) string {
		return v.Link("/dashboard/statement", "month", clock.Format(first.AddDate(0, months, 0), time.UTC, monthLayout))
	}
	body.Earlier = link(-1)
	if body.To <= body.Now {
		body.Later = link(1)
	}
	body.First, body.Last = clock.Format(first, time.UTC, time.DateOnly), clock.Format(first.AddDate(0, 1, -1), time.UTC, time.DateOnly)
	body.Export = filteredPage(v, "/dashboard/statement.csv", url.Values{"month": {body.Month}})
	body.ExportFees = filteredPage(v, "/dashboard/statement.csv", url.Values{"month": {body.Month}, "table": {"fees"}})
	return nil
}

// exportStatement answers with a table of the statement as CSV.
func (d *Dashboard) exportStatement(w http.ResponseWriter, r *http.Request) error {
	query := visitOf(r).query()
	query.Set("month", r.URL.Query().Get("month"))
	if table := r.URL.Query().Get("table"); table != "" {
		query.Set("table", table)
	}
	return d.passCSV(w, r, "/api/reports/statement", query)
}
