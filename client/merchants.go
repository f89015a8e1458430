package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// Merchants lists merchants in the order of their ids. It requests pages as needed, and ends
// after an error.
func (c *Client) Merchants(ctx context.Context, pageSize int) iter.Seq2[apitypes.Merchant, error] {
	return list(ctx, c, "api/merchants", make(url.Values), pageSize, func(page apitypes.MerchantList) ([]apitypes.Merchant, string) {
		return page.Merchants, page.NextCursor
	})
}

// merchant returns the path of a merchant.
func (c *Client) merchant(id string, rest ...string) *url.URL {
	return c.base.JoinPath(append([]string{"api/merchants", url.PathEscape(id)}, rest...)...)
}

// Merchant returns a merchant. The error's code is [apitypes.CodeNotFound] if it is unknown.
func (c *Client) Merchant(ctx context.Context, id string) (apitypes.Merchant, error) {
	var answer apitypes.MerchantResponse
	err := c.call(ctx, http.MethodGet, c.merchant(id), nil, nil, &answer)
	return answer.Merchant, answered(err, "merchant", id, answer.Merchant.ID)
}

// CreateMerchant creates a merchant. The error's code is [apitypes.CodeMerchantExists] if
// there is one with the id.
func (c *Client) CreateMerchant(ctx context.Context, r apitypes.CreateMerchantRequest) (apitypes.Merchant, error) {
	var answer apitypes.MerchantResponse
	err := c.post(ctx, c.base.JoinPath("api/merchants"), make(http.Header), r, &answer)
	return answer.Merchant, answered(err, "merchant", r.ID, answer.Merchant.ID)
}

// UpdateMerchant changes a merchant, and returns it. An empty map of default addresses
// removes all; nil leaves them. A list of allowed addresses may be pending then. The error's code is [apitypes.CodeConfiguredMerchant] if the merchant is
// set in the service's configuration.
func (c *Client) UpdateMerchant(ctx context.Context, id string, r apitypes.UpdateMerchantRequest) (apitypes.Merchant, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return apitypes.Merchant{}, fmt.Errorf("client: encode the request: %w", err)
	}
	var answer apitypes.MerchantResponse
	err = c.call(ctx, http.MethodPatch, c.merchant(id), http.Header{"Content-Type": {"application/json"}}, body, &answer)
	return answer.Merchant, answered(err, "merchant", id, answer.Merchant.ID)
}

// SetMerchantLogo sets a merchant's logo, a PNG, JPEG or GIF image, and returns the merchant.
func (c *Client) SetMerchantLogo(ctx context.Context, id string, image []byte) (apitypes.Merchant, error) {
	var answer apitypes.MerchantResponse
	header := http.Header{"Content-Type": {http.DetectContentType(image)}}
	err := c.call(ctx, http.MethodPut, c.merchant(id, "logo"), header, image, &answer)
	return answer.Merchant, answered(err, "merchant", id, answer.Merchant.ID)
}

// DeleteMerchantLogo removes a merchant's logo, if it has one. The error's code is
// [apitypes.CodeConfiguredMerchant] if the merchant is set in the service's configuration.
func (c *Client) DeleteMerchantLogo(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, c.merchant(id, "logo"), nil, nil, nil)
}
