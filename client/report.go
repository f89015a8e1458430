package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// reportTime is how long the service may take to make a report: two minutes, and 15 s around them.
const reportTime = 135 * time.Second

// ReportFilter selects the contents of a settlement report. From and To are required, as Unix seconds or dates in the
// time zone; To is not part of the period.
type ReportFilter struct {
	MerchantID string
	From, To   string
	GroupBy    apitypes.ReportGroup // the currency by default
	Timezone   string               // a name such as Europe/Berlin; UTC by default
}

// SettlementReport adds up the payments and refunds that were confirmed in a period.
func (c *Client) SettlementReport(ctx context.Context, f ReportFilter) (apitypes.SettlementReport, error) {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "from", f.From)
	set(query, "to", f.To)
	set(query, "groupBy", string(f.GroupBy))
	set(query, "timezone", f.Timezone)
	u := c.path("api/reports/settlement")
	u.RawQuery = query.Encode()
	var answer apitypes.SettlementReportResponse
	err := c.call(ctx, request{method: http.MethodGet, url: u, repeatable: true, wait: reportTime}, &answer)
	return answer.Report, err
}

// Statement returns the account of a merchant's month, such as 2026-11. merchantID is required with a key of the
// operator. timezone is the merchant's by default.
func (c *Client) Statement(ctx context.Context, merchantID, month, timezone string) (apitypes.Statement, error) {
	query := make(url.Values)
	set(query, "merchantId", merchantID)
	set(query, "month", month)
	set(query, "timezone", timezone)
	u := c.path("api/reports/statement")
	u.RawQuery = query.Encode()
	var answer apitypes.StatementResponse
	err := c.call(ctx, request{method: http.MethodGet, url: u, repeatable: true, wait: reportTime}, &answer)
	return answer.Statement, err
}

// InvoiceReport adds up the newest 5,000 invoices that a filter without Query selects.
func (c *Client) InvoiceReport(ctx context.Context, f InvoiceFilter) (apitypes.InvoiceReport, error) {
	u := c.path("api/reports/invoices")
	u.RawQuery = f.query().Encode()
	var answer apitypes.InvoiceReportResponse
	err := c.get(ctx, u, &answer)
	return answer.Report, err
}

// Summary returns the confirmed sums by day, from a date in a time zone or a time in Unix seconds until now, the sums
// of open and expired invoices, and how far chains are read. With a key of the operator, an empty merchantID selects
// all merchants. timezone is UTC by default.
func (c *Client) Summary(ctx context.Context, merchantID, from, timezone string) (apitypes.Summary, error) {
	query := make(url.Values)
	set(query, "merchantId", merchantID)
	set(query, "from", from)
	set(query, "timezone", timezone)
	u := c.path("api/reports/summary")
	u.RawQuery = query.Encode()
	var answer apitypes.SummaryResponse
	err := c.get(ctx, u, &answer)
	return answer.Summary, err
}
