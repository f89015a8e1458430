package client

import (
	"context"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// settleWait is how long the service may wait for the block of a payment.
const settleWait = 20 * time.Second

// X402Supported returns the kinds of payment that the x402 facilitator accepts.
func (c *Client) X402Supported(ctx context.Context) (apitypes.X402Supported, error) {
	var answer apitypes.X402Supported
	err := c.get(ctx, c.path("x402/supported"), &answer)
	return answer, err
}

// VerifyX402 checks a payment for a resource of the merchant. An invalid payment is not an error. Package x402 in this
// folder charges for the routes of an HTTP server.
func (c *Client) VerifyX402(ctx context.Context, r apitypes.X402Request) (apitypes.X402VerifyResponse, error) {
	var answer apitypes.X402VerifyResponse
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("x402/verify"), repeatable: true}, r, &answer)
	return answer, err
}

// SettleX402 makes a payment for a resource of the merchant, and returns when it is in a block. It is idempotent: the
// same payment is made once. A failed payment is not an error. If ErrorReason is settlement_pending, or after an error,
// the payment may still be made; repeat the call to get its outcome.
func (c *Client) SettleX402(ctx context.Context, r apitypes.X402Request) (apitypes.X402SettleResponse, error) {
	var answer apitypes.X402SettleResponse
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("x402/settle"), repeatable: true, wait: settleWait}, r, &answer)
	return answer, err
}
