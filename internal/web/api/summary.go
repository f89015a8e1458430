package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
)

// Limits of summaries.
const (
	// MaxSummaryPeriod bounds the period of a summary.
	MaxSummaryPeriod = 93 * 24 * time.Hour
	// MaxSummedInvoices bounds the invoices per state that a summary adds up, and the invoices of a
	// report.
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
	request, err := a.summaryRequest(r.Context(), q)
	if err != nil {
		return err
	}
	made := Summary{Request: request}
	if made.Days, err = report.Days(r.Context(), a.conf.Summarized, request); err != nil {
		return fmt.Errorf("add days up: %w", err)
	}
	if made.Open, err = a.sumInvoices(r, request.MerchantID, invoice.Open, time.Unix(0, 0)); err != nil {
		return err
	}
	if made.Expired, err = a.sumInvoices(r, request.MerchantID, invoice.Expired, request.From); err != nil {
		return err
	}
	for key := range a.chains {
		cursor, err := a.conf.Summarized.Cursor(r.Context(), key)
		switch {
		case errors.Is(err, db.ErrNotFound): // the chain was never read
		case err != nil:
			return fmt.Errorf("read cursor of %s: %w", key, err)
		default:
			made.Chains = append(made.Chains, ReadChain{Key: key, Cursor: cursor})
		}
	}
	slices.SortFunc(made.Chains, ReadChain.Compare)
	return a.writeJSON(w, r, http.StatusOK, apitypes.SummaryResponse{Summary: made.Convert()}, nil)
}

// sumInvoices adds up the newest invoices of a state that were created at a time or later.
func (a *API) sumInvoices(r *http.Request, merchantID string, status invoice.Status, since time.Time) (InvoiceSums, error) {
	amounts, err := a.conf.Summarized.InvoicedAmounts(r.Context(), merchantID, status, since, MaxSummedInvoices+1)
	if err != nil {
		return InvoiceSums{}, fmt.Errorf("add %s invoices up: %w", status, err)
	}
	return InvoiceSums{
		Sums: report.SumInvoices(amounts[:min(len(amounts), MaxSummedInvoices)], a.decimals), Truncated: len(amounts) > MaxSummedInvoices,
	}, nil
}

// summaryRequest parses the parameters of a summary, which ends now. Without a time zone, its days are
// in the merchant's.
func (a *API) summaryRequest(ctx context.Context, q *query) (report.Request, error) {
	r := report.Request{Location: q.timezone(), Decimals: a.decimals, To: a.conf.Now().UTC().Truncate(time.Second).Add(time.Second)}
	var possible bool
	if r.MerchantID, possible = q.merchantID(); !possible {
		q.reject("merchantId", "must be an id of a merchant; it is %.80q", r.MerchantID)
	}
	if _, given := q.get("timezone"); !given && r.MerchantID != "" && q.err == nil {
		m, err := a.conf.Merchants.Get(ctx, access.FromContext(ctx), r.MerchantID)
		if err != nil && !errors.Is(err, access.ErrNotFound) {
			return r, err
		}
		r.Location = m.Zone()
	}
	r.From = q.instant("from", r.Location)
	switch {
	case !r.From.Before(r.To):
		q.reject("from", "must not lie in the future")
	case r.To.Sub(r.From) > MaxSummaryPeriod:
		q.reject("from", "must be at most %d days ago", int(MaxSummaryPeriod.Hours()/24))
	}
	return r, q.err
}
