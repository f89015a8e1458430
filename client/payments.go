package client

import (
	"context"
	"net/http"

	"github.com/quittance/quittance/apitypes"
)

// Payment returns the current state of a payment, confirmed or not, attributed or not. The
// error's code is [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Payment(ctx context.Context, id string) (apitypes.Payment, error) {
	var answer apitypes.PaymentResponse
	err := c.get(ctx, c.path("api/payments", id), &answer, is("payment", id, &answer.Payment.ID))
	return answer.Payment, err
}

// AttributePayment attributes an unattributed payment to an invoice, and returns the
// payment. It is idempotent. The error's code is [apitypes.CodeNotFound] if there is no
// payment with the id, [apitypes.CodeInvalidField] with the field invoiceId if the
// invoice does not match, [apitypes.CodeAlreadyAttributed] if the payment belongs to
// another invoice, [apitypes.CodePaymentOrphaned] if it is no longer on the chain, and
// [apitypes.CodePaymentUndecided] while it waits for older blocks to be indexed.
func (c *Client) AttributePayment(ctx context.Context, id string, r apitypes.AttributePaymentRequest) (apitypes.Payment, error) {
	var answer apitypes.PaymentResponse
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("api/payments", id, "attribution"), repeatable: true}, r, &answer, is("payment", id, &answer.Payment.ID))
	return answer.Payment, err
}
