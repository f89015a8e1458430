package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"

	"github.com/quittance/quittance/apitypes"
)

// Page is a page of a list.
type Page[T any] struct {
	Items      []T
	NextCursor string // of the next page; "" after the last one
}

// Collect returns the first elements of a list, at most limit, such as
//
//	newest, err := client.Collect(c.Invoices(ctx, client.InvoiceFilter{}), 10)
//
// After an error it also returns the elements that it has got.
func Collect[T any](list iter.Seq2[T, error], limit int) ([]T, error) {
	if limit < 1 {
		return nil, fmt.Errorf("client: the limit must be at least 1; it is %d", limit)
	}
	var all []T
	for element, err := range list {
		if err != nil {
			return all, err
		}
		if all = append(all, element); len(all) == limit {
			break
		}
	}
	return all, nil
}

// InvoicesPage returns one page of Invoices: the first one, or the one after a cursor.
func (c *Client) InvoicesPage(ctx context.Context, f InvoiceFilter, cursor string) (Page[apitypes.Invoice], error) {
	return onePage(ctx, c, c.path("api/invoices"), f.query(), f.PageSize, cursor, invoicesOf)
}

// PaymentsPage returns one page of Payments: the first one, or the one after a cursor.
func (c *Client) PaymentsPage(ctx context.Context, f PaymentFilter, cursor string) (Page[apitypes.Payment], error) {
	return onePage(ctx, c, c.path("api/payments"), f.query(), f.PageSize, cursor, paymentsOf)
}

// RefundsPage returns one page of Refunds: the first one, or the one after a cursor.
func (c *Client) RefundsPage(ctx context.Context, f RefundFilter, cursor string) (Page[apitypes.RefundRecord], error) {
	return onePage(ctx, c, c.path("api/refunds"), f.query(), f.PageSize, cursor, refundsOf)
}

// CustomersPage returns one page of Customers: the first one, or the one after a cursor.
func (c *Client) CustomersPage(ctx context.Context, f CustomerFilter, cursor string) (Page[apitypes.CustomerRecord], error) {
	return onePage(ctx, c, c.path("api/customers"), f.query(), f.PageSize, cursor, customersOf)
}

// PaymentLinksPage returns one page of PaymentLinks: the first one, or the one after a cursor.
func (c *Client) PaymentLinksPage(ctx context.Context, f PaymentLinkFilter, cursor string) (Page[apitypes.PaymentLink], error) {
	return onePage(ctx, c, c.path("api/payment-links"), f.query(), f.PageSize, cursor, c.linksOf)
}

// EventsPage returns one page of Events: the first one, or the one after a cursor.
func (c *Client) EventsPage(ctx context.Context, f EventFilter, cursor string) (Page[apitypes.EventRecord], error) {
	return onePage(ctx, c, c.path("api/events"), f.query(), f.PageSize, cursor, eventsOf)
}

// onePage fetches a page of a list. split returns the page's elements and its next cursor.
func onePage[P, T any](ctx context.Context, c *Client, u *url.URL, query url.Values, size int, cursor string, split func(P) ([]T, string)) (Page[T], error) {
	if size != 0 {
		query.Set("limit", strconv.Itoa(size))
	}
	page, err := getPage[P](ctx, c, u, query, cursor)
	if err != nil {
		return Page[T]{}, err
	}
	items, next := split(page)
	return Page[T]{Items: items, NextCursor: next}, nil
}

func invoicesOf(page apitypes.InvoiceList) ([]apitypes.Invoice, string) {
	return page.Invoices, page.NextCursor
}

func paymentsOf(page apitypes.PaymentList) ([]apitypes.Payment, string) {
	return page.Payments, page.NextCursor
}

func eventsOf(page apitypes.EventList) ([]apitypes.EventRecord, string) {
	return page.Events, page.NextCursor
}

func customersOf(page apitypes.CustomerList) ([]apitypes.CustomerRecord, string) {
	return page.Customers, page.NextCursor
}

func (c *Client) linksOf(page apitypes.PaymentLinkList) ([]apitypes.PaymentLink, string) {
	for i, l := range page.Links {
		page.Links[i] = c.withURL(l)
	}
	return page.Links, page.NextCursor
}
