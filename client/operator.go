package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// ServiceStatus returns the state of the process that answers. Like all methods in this file, it needs a key of the
// operator.
func (c *Client) ServiceStatus(ctx context.Context) (apitypes.ServiceStatus, error) {
	var answer apitypes.ServiceStatus
	err := c.get(ctx, c.path("api/operator/status"), &answer)
	return answer, err
}

// MerchantOverviews lists merchants with their figures, in the order of their ids. It requests pages of pageSize, or of
// the service's default if it is 0, as needed, and ends after an error.
func (c *Client) MerchantOverviews(ctx context.Context, pageSize int) iter.Seq2[apitypes.MerchantOverview, error] {
	return list(ctx, c, c.path("api/operator/merchants"), make(url.Values), pageSize, func(page apitypes.MerchantOverviewList) ([]apitypes.MerchantOverview, string) {
		return page.Merchants, page.NextCursor
	})
}

// RescanChain makes the service read the blocks of a chain again, from a number to the newest indexed one.
func (c *Client) RescanChain(ctx context.Context, chainKey string, from int64) (apitypes.RescanResponse, error) {
	var answer apitypes.RescanResponse
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("api/operator/chains", chainKey, "rescan"), repeatable: true}, apitypes.RescanRequest{From: from}, &answer)
	return answer, err
}

// ResumeChain ends the halt of a chain. The answer contains the reason of the halt.
func (c *Client) ResumeChain(ctx context.Context, chainKey string) (apitypes.ResumeResponse, error) {
	var answer apitypes.ResumeResponse
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/operator/chains", chainKey, "resume"), repeatable: true}, &answer)
	return answer, err
}

// VerifyAudit verifies the audit log, which may take minutes. head is an earlier head, or empty.
func (c *Client) VerifyAudit(ctx context.Context, head string) (apitypes.AuditVerification, error) {
	var answer apitypes.AuditVerification
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("api/operator/audit/verify"), repeatable: true}, apitypes.VerifyAuditRequest{Head: head}, &answer)
	return answer, err
}

// ReportMail reports a mail that came back. The message is the delivery status notification (RFC 3464) that its sender
// got.
func (c *Client) ReportMail(ctx context.Context, message []byte) (apitypes.MailReport, error) {
	var answer apitypes.MailReport
	err := c.call(ctx, request{
		method: http.MethodPost, url: c.path("api/operator/mails/report"), repeatable: true, header: http.Header{"Content-Type": {"message/rfc822"}}, body: message,
	}, &answer)
	return answer, err
}
