package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/quittance/quittance/apitypes"
)

// PrepareRefund reserves part of a payment, and returns the transaction that sends it back, for the merchant's wallet
// to sign. The request has an idempotency key, so retries do not prepare a second refund. The error's code is
// [apitypes.CodeRefundExceedsPayment] if less is left of the payment.
func (c *Client) PrepareRefund(ctx context.Context, paymentID string, r apitypes.PrepareRefundRequest, options ...Option) (apitypes.RefundResponse, error) {
	var answer apitypes.RefundResponse
	err := c.With(options...).send(ctx, request{method: http.MethodPost, url: c.path("api/payments", paymentID, "refunds"), repeatable: true}, r, &answer)
	return c.withClaimURL(answer), err
}

// withClaimURL returns a response with an absolute ClaimURL.
func (c *Client) withClaimURL(r apitypes.RefundResponse) apitypes.RefundResponse {
	if strings.HasPrefix(r.ClaimURL, "/") { // the service is not configured with its public URL
		r.ClaimURL = strings.TrimSuffix(c.base.String(), "/") + r.ClaimURL
	}
	return r
}

// Refund returns the current state of a refund, with the transaction while it can be sent. The id is the refund's, or
// the id of the transfer that paid it. includeSafe also asks nodes what a contract that sends the refund will do with the
// submission in force. The error's code is [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Refund(ctx context.Context, id string, includeSafe bool) (apitypes.RefundResponse, error) {
	var answer apitypes.RefundResponse
	refund := c.path("api/refunds", id)
	if includeSafe {
		refund.RawQuery = "include=safe"
	}
	err := c.get(ctx, refund, &answer)
	return c.withClaimURL(answer), err
}

// CancelRefund cancels a prepared refund before its transaction is signed. It is idempotent. The error's code is
// [apitypes.CodeRefundNotOpen] if the refund was sent.
func (c *Client) CancelRefund(ctx context.Context, id string) (apitypes.RefundResponse, error) {
	var answer apitypes.RefundResponse
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/refunds", id, "cancel"), repeatable: true}, &answer)
	return c.withClaimURL(answer), err
}

// ApproveRefund approves the address that a payer named without a signature. It is
// idempotent. The error's code is [apitypes.CodeRefundNotOpen] if the refund does not await
// the approval of that address.
func (c *Client) ApproveRefund(ctx context.Context, id string, r apitypes.ApproveRefundRequest) (apitypes.RefundResponse, error) {
	var answer apitypes.RefundResponse
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("api/refunds", id, "approve"), repeatable: true}, r, &answer)
	return c.withClaimURL(answer), err
}

// SubmitRefund records that you are sending a refund, before its transaction is signed, so that no one else sends it.
// The request has an idempotency key, so a retry after a lost answer finds the same submission. The error's code is
// [apitypes.CodeRefundSubmitted] if somebody else is sending the refund.
func (c *Client) SubmitRefund(ctx context.Context, id string, r apitypes.SubmitRefundRequest, options ...Option) (apitypes.Submission, error) {
	var answer apitypes.SubmissionResponse
	err := c.With(options...).send(ctx, request{method: http.MethodPost, url: c.path("api/refunds", id, "submissions"), repeatable: true}, r, &answer, is("refund", id, &answer.Submission.RefundID))
	return answer.Submission, err
}

// RecordTransaction records the transaction of a submission. It is idempotent.
func (c *Client) RecordTransaction(ctx context.Context, refundID, id string, r apitypes.RecordTransactionRequest) (apitypes.Submission, error) {
	var answer apitypes.SubmissionResponse
	err := c.send(ctx, request{method: http.MethodPut, url: c.path("api/refunds", refundID, "submissions", id), repeatable: true}, r, &answer, is("submission", id, &answer.Submission.ID))
	return answer.Submission, err
}

// WithdrawSubmission records that no transaction was sent, so that the refund can be submitted again. It is idempotent.
// The error's code is [apitypes.CodeRefundSubmitted] if its transaction may still be mined.
//
// checkedInWallet declares that a person made sure in the wallet that the transaction was not and will not be executed.
// The service asks for it if a contract sends the refund and it cannot find that out.
func (c *Client) WithdrawSubmission(ctx context.Context, refundID, id string, checkedInWallet bool) (apitypes.Submission, error) {
	var answer apitypes.SubmissionResponse
	withdraw := c.path("api/refunds", refundID, "submissions", id, "withdraw")
	if checkedInWallet {
		withdraw.RawQuery = "checkedInWallet=true"
	}
	err := c.call(ctx, request{method: http.MethodPost, url: withdraw, repeatable: true}, &answer, is("submission", id, &answer.Submission.ID))
	return answer.Submission, err
}

// RefundFilter selects refunds. The zero value selects all.
type RefundFilter struct {
	MerchantID string
	PaymentID  string
	InvoiceID  string
	TxHash     string
	Status     apitypes.RefundStatus
	ChainKey   string
	PageSize   int // refunds per request, 1 to 200; 0 means the service's default
}

func (f RefundFilter) query() url.Values {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "paymentId", f.PaymentID)
	set(query, "invoiceId", f.InvoiceID)
	set(query, "txHash", f.TxHash)
	set(query, "status", string(f.Status))
	set(query, "chainKey", f.ChainKey)
	return query
}

// Refunds lists refunds, newest first. It requests pages as needed, and ends after an error.
func (c *Client) Refunds(ctx context.Context, f RefundFilter) iter.Seq2[apitypes.RefundRecord, error] {
	return list(ctx, c, c.path("api/refunds"), f.query(), f.PageSize, refundsOf)
}

// PaymentRefunds lists the refunds of a payment, newest first; status is "" for all. It
// requests pages as needed, and ends after an error.
func (c *Client) PaymentRefunds(ctx context.Context, paymentID string, status apitypes.RefundStatus) iter.Seq2[apitypes.RefundRecord, error] {
	query := make(url.Values)
	set(query, "status", string(status))
	return list(ctx, c, c.path("api/payments", paymentID, "refunds"), query, 0, refundsOf)
}

func refundsOf(page apitypes.RefundList) ([]apitypes.RefundRecord, string) {
	return page.Refunds, page.NextCursor
}
