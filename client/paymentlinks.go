package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
)

// CreatePaymentLink creates a payment link. The request has an idempotency key, so retries do not create a second link.
// The error's code is [apitypes.CodeSlugTaken] if another link of the merchant has the slug.
func (c *Client) CreatePaymentLink(ctx context.Context, r apitypes.CreatePaymentLinkRequest, options ...Option) (apitypes.PaymentLink, error) {
	var answer apitypes.PaymentLinkResponse
	err := c.With(options...).send(ctx, request{method: http.MethodPost, url: c.path("api/payment-links"), repeatable: true}, r, &answer)
	return c.withURL(answer.Link), err
}

// withURL returns a link with an absolute URL.
func (c *Client) withURL(l apitypes.PaymentLink) apitypes.PaymentLink {
	if strings.HasPrefix(l.URL, "/") { // the service is not configured with its public URL
		l.URL = c.URL(l.URL)
	}
	return l
}

// PaymentLink returns a payment link. The error's code is [apitypes.CodeNotFound] if the id is
// unknown.
func (c *Client) PaymentLink(ctx context.Context, id string) (apitypes.PaymentLink, error) {
	var answer apitypes.PaymentLinkResponse
	err := c.get(ctx, c.path("api/payment-links", id), &answer, is("payment link", id, &answer.Link.ID))
	return c.withURL(answer.Link), err
}

// UpdatePaymentLink changes a payment link, or archives it, and returns it. Absent members stay as they are, and the
// members in remove, such as "description", are removed. The error's code is [apitypes.CodeLinkArchived] if the link is
// archived already.
func (c *Client) UpdatePaymentLink(ctx context.Context, id string, r apitypes.UpdatePaymentLinkRequest, remove ...string) (apitypes.PaymentLink, error) {
	members, err := removing(r, remove)
	if err != nil {
		return apitypes.PaymentLink{}, err
	}
	var answer apitypes.PaymentLinkResponse
	err = c.send(ctx, request{method: http.MethodPatch, url: c.path("api/payment-links", id), repeatable: true}, members, &answer, is("payment link", id, &answer.Link.ID))
	return c.withURL(answer.Link), err
}

// PaymentLinkFilter selects payment links. The zero value selects all.
type PaymentLinkFilter struct {
	MerchantID string
	Slug       string
	Archived   *bool // nil selects both
	PageSize   int   // links per request, 1 to 200; 0 means the service's default
}

func (f PaymentLinkFilter) query() url.Values {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "slug", f.Slug)
	if f.Archived != nil {
		query.Set("archived", strconv.FormatBool(*f.Archived))
	}
	return query
}

// PaymentLinks lists payment links, newest first. It requests pages as needed, and ends after
// an error.
func (c *Client) PaymentLinks(ctx context.Context, f PaymentLinkFilter) iter.Seq2[apitypes.PaymentLink, error] {
	return list(ctx, c, c.path("api/payment-links"), f.query(), f.PageSize, c.linksOf)
}
