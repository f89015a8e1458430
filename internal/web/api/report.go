package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
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
	long, cancel := webpage.RequestContext(a.conf.Stopping, r)
	defer cancel()
	accepted, stop := a.whileAccepted(long, r)
	defer stop()
	ctx, cancel := context.WithTimeout(accepted, ReportTimeout)
	defer cancel()
	if err := webpage.ClearDeadlines(w); err != nil {
		return err
	}
	made := errors.Join(report(ctx), webpage.ExtendDeadlines(w))
	if err := a.checkKey(long, r); err != nil {
		return err
	}
	if made != nil {
		return fmt.Errorf("make report: %w", made)
	}
	return nil
}

// reportRequest parses the parameters of a report.
func (a *API) reportRequest(q *query) (r report.Request) {
	r.Location, r.GroupBy, r.Decimals = q.timezone(), report.ByCurrency, a.decimals
	var possible bool
	if r.MerchantID, possible = q.merchantID(); !possible {
		q.reject("merchantId", "must be an id of a merchant; it is %.80q", r.MerchantID)
	}
	r.From, r.To = q.instant("from", r.Location), q.instant("to", r.Location)
	switch {
	case !r.From.Before(r.To):
		q.reject("to", "must be after from")
	case r.To.Sub(r.From) > MaxReportPeriod:
		q.reject("to", "must be at most %d days after from", int(MaxReportPeriod.Hours()/24))
	}
	if group, ok := q.get("groupBy"); ok {
		r.GroupBy = report.Group(group)
		if !slices.Contains(report.Groups, r.GroupBy) {
			q.reject("groupBy", "must be one of %s; it is %.40q", enumerate(report.Groups), group)
		}
	}
	return r
}
