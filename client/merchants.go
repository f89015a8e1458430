package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// Merchants lists merchants in the order of their ids. It requests pages as needed, and ends
// after an error.
func (c *Client) Merchants(ctx context.Context, pageSize int) iter.Seq2[apitypes.Merchant, error] {
	return list(ctx, c, c.path("api/merchants"), make(url.Values), pageSize, func(page apitypes.MerchantList) ([]apitypes.Merchant, string) {
		return page.Merchants, page.NextCursor
	})
}

// Merchant returns a merchant. The error's code is [apitypes.CodeNotFound] if it is unknown.
func (c *Client) Merchant(ctx context.Context, id string) (apitypes.Merchant, error) {
	var answer apitypes.MerchantResponse
	err := c.get(ctx, c.path("api/merchants", id), &answer, is("merchant", id, &answer.Merchant.ID))
	return answer.Merchant, err
}

// CreateMerchant creates a merchant. The error's code is [apitypes.CodeMerchantExists] if the id is in use.
func (c *Client) CreateMerchant(ctx context.Context, r apitypes.CreateMerchantRequest) (apitypes.Merchant, error) {
	var answer apitypes.MerchantResponse
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("api/merchants")}, r, &answer, is("merchant", r.ID, &answer.Merchant.ID))
	return answer.Merchant, err
}

// UpdateMerchant changes a merchant, and returns it. An empty map of default addresses removes all; nil leaves them
// unchanged. A new list of allowed addresses may be pending at first. The error's code is
// [apitypes.CodeConfiguredMerchant] if the merchant is set in the service's configuration.
func (c *Client) UpdateMerchant(ctx context.Context, id string, r apitypes.UpdateMerchantRequest) (apitypes.Merchant, error) {
	var answer apitypes.MerchantResponse
	err := c.send(ctx, request{method: http.MethodPatch, url: c.path("api/merchants", id), repeatable: true}, r, &answer, is("merchant", id, &answer.Merchant.ID))
	return answer.Merchant, err
}

// SetMerchantLogo sets a merchant's logo, a PNG, JPEG or GIF image, and returns the merchant.
func (c *Client) SetMerchantLogo(ctx context.Context, id string, image []byte) (apitypes.Merchant, error) {
	var answer apitypes.MerchantResponse
	err := c.call(ctx, request{
		method: http.MethodPut, url: c.path("api/merchants", id, "logo"), repeatable: true,
		header: http.Header{"Content-Type": {http.DetectContentType(image)}}, body: image,
	}, &answer, is("merchant", id, &answer.Merchant.ID))
	return answer.Merchant, err
}

// MerchantLogo returns a merchant's logo as PNG. The error's code is [apitypes.CodeNotFound] if the merchant has no
// logo.
func (c *Client) MerchantLogo(ctx context.Context, id string) ([]byte, error) {
	var png []byte
	err := c.call(ctx, request{
		method: http.MethodGet, url: c.path("api/merchants", id, "logo"), repeatable: true, header: http.Header{"Accept": {"image/png, application/problem+json"}},
	}, &png)
	return png, err
}

// DeleteMerchantLogo removes a merchant's logo, if it has one. The error's code is
// [apitypes.CodeConfiguredMerchant] if the merchant is set in the service's configuration.
func (c *Client) DeleteMerchantLogo(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, url: c.path("api/merchants", id, "logo"), repeatable: true}, nil)
}

// ReleaseAddress takes a settlement address away from a merchant. Its existing invoices keep the address. The error's
// code is [apitypes.CodeNotFound] if the merchant does not hold it, and [apitypes.CodeInvalidField] if the merchant's
// lists contain it.
func (c *Client) ReleaseAddress(ctx context.Context, merchantID, address string) error {
	return c.call(ctx, request{method: http.MethodDelete, url: c.path("api/merchants", merchantID, "addresses", address)}, nil)
}
