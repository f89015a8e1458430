package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// InvoiceFilter says which invoices to list. Its zero value lists all.
type InvoiceFilter struct {
	MerchantID string
	Status     InvoiceStatus
	PageSize   int // invoices per request, 1 to 200; 0 for the service's default
}

// Invoices lists invoices, newest first, page by page as they are asked for.
// After an error the list ends.
func (c *Client) Invoices(ctx context.Context, f InvoiceFilter) iter.Seq2[Invoice, error] {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "status", string(f.Status))
	return list(ctx, c, "api/invoices", query, f.PageSize, func(page InvoiceList) ([]Invoice, string) {
		return page.Invoices, page.NextCursor
	})
}

// PaymentFilter says which payments to list. Its zero value lists all that
// have confirmed.
type PaymentFilter struct {
	MerchantID string
	ChainKey   string
	// IncludePending lists payments that are not confirmed yet and orphaned
	// ones too; each has a Status then.
	IncludePending bool
	PageSize       int // payments per request, 1 to 200; 0 for the service's default
}

// Payments lists on-chain payments, the latest seen first, page by page as
// they are asked for. After an error the list ends.
func (c *Client) Payments(ctx context.Context, f PaymentFilter) iter.Seq2[Payment, error] {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "chainKey", f.ChainKey)
	if f.IncludePending {
		query.Set("include", string(PaymentPending))
	}
	return list(ctx, c, "api/payments", query, f.PageSize, func(page PaymentList) ([]Payment, string) {
		return page.Payments, page.NextCursor
	})
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

var errSamePage = errors.New("client: a page's nextCursor leads to the same page again")

// list yields the elements of all pages; split takes a page apart into its
// elements and its next cursor.
func list[P, T any](ctx context.Context, c *Client, path string, query url.Values, pageSize int, split func(P) ([]T, string)) iter.Seq2[T, error] {
	if pageSize != 0 {
		query.Set("limit", strconv.Itoa(pageSize))
	}
	return func(yield func(T, error) bool) {
		var none T
		for cursor := ""; ; {
			u := *c.base.JoinPath(path)
			asked := make(url.Values, len(query)+1)
			for name, values := range query {
				asked[name] = values
			}
			set(asked, "cursor", cursor)
			u.RawQuery = asked.Encode()
			var page P
			if err := c.call(ctx, http.MethodGet, &u, nil, nil, &page); err != nil {
				yield(none, err)
				return
			}
			elements, next := split(page)
			for _, element := range elements {
				if !yield(element, nil) {
					return
				}
			}
			switch next {
			case "":
				return
			case cursor:
				yield(none, errSamePage)
				return
			}
			cursor = next
		}
	}
}
