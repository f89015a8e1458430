package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// CustomerFilter selects customers. MerchantID is required with a key of the operator.
type CustomerFilter struct {
	MerchantID string
	Query      string // the beginning of an id or e-mail address; a search returns only one page
	PageSize   int    // customers per request, 1 to 200; 0 means the service's default
}

func (f CustomerFilter) query() url.Values {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "q", f.Query)
	return query
}

// Customers lists the customers of a merchant's invoices, in the order of their ids. It requests pages as needed, and
// ends after an error.
func (c *Client) Customers(ctx context.Context, f CustomerFilter) iter.Seq2[apitypes.CustomerRecord, error] {
	return list(ctx, c, c.path("api/customers"), f.query(), f.PageSize, customersOf)
}

// EraseCustomer removes the personal data of a customer, wherever it is stored. It cannot be undone. merchantID is
// required with a key of the operator. While the status is apitypes.ErasureRunning, the same call with the same
// [IdempotencyKey] returns the progress of the erasure. Make a random key, and keep it until the status changes. A call
// without the option has a new key each time. Each call with a new key is a new request, and also erases the invoices
// that were created since.
func (c *Client) EraseCustomer(ctx context.Context, merchantID, customer string, options ...Option) (apitypes.Erasure, error) {
	var answer apitypes.ErasureResponse
	err := c.With(options...).send(ctx, request{method: http.MethodPost, url: c.path("api/customers/erase"), repeatable: true}, apitypes.EraseCustomerRequest{MerchantID: merchantID, Customer: customer}, &answer)
	return answer.Erasure, err
}
