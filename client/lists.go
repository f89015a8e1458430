package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
)

// InvoiceFilter says which invoices to list. Its zero value lists all.
type InvoiceFilter struct {
	MerchantID string
	Status     apitypes.InvoiceStatus
	PageSize   int // invoices per request, 1 to 200; 0 for the service's default
}

// Invoices lists invoices, newest first, page by page as they are asked for.
// After an error the list ends.
func (c *Client) Invoices(ctx context.Context, f InvoiceFilter) iter.Seq2[apitypes.Invoice, error] {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "status", string(f.Status))
	return list(ctx, c, "api/invoices", query, f.PageSize, func(page apitypes.InvoiceList) ([]apitypes.Invoice, string) {
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
	// IncludeUnattributed lists payments that belong to no invoice too; again
	// each has a Status. With a MerchantID, they are those to its addresses.
	IncludeUnattributed bool
	PageSize            int // payments per request, 1 to 200; 0 for the service's default
}

// Payments lists on-chain payments, the latest seen first, page by page as
// they are asked for. After an error the list ends.
func (c *Client) Payments(ctx context.Context, f PaymentFilter) iter.Seq2[apitypes.Payment, error] {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "chainKey", f.ChainKey)
	var include []string
	if f.IncludePending {
		include = append(include, "pending")
	}
	if f.IncludeUnattributed {
		include = append(include, "unattributed")
	}
	set(query, "include", strings.Join(include, ","))
	return list(ctx, c, "api/payments", query, f.PageSize, func(page apitypes.PaymentList) ([]apitypes.Payment, string) {
		return page.Payments, page.NextCursor
	})
}

// EventFilter says which events to list. Its zero value lists all.
type EventFilter struct {
	MerchantID string
	Type       apitypes.EventType
	InvoiceID  string
	// Delivery is the state of the delivery now, such as [apitypes.WithFailed]. It
	// cannot be asked for with EventsAfter.
	Delivery apitypes.DeliveryFilter
	PageSize int // events per request, 1 to 200; 0 for the service's default
}

func (f EventFilter) query() url.Values {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "type", string(f.Type))
	set(query, "invoiceId", f.InvoiceID)
	set(query, "delivery", string(f.Delivery))
	return query
}

// Events lists events with the state of their deliveries, newest first, page by
// page as they are asked for. After an error the list ends.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[apitypes.EventRecord, error] {
	return list(ctx, c, "api/events", f.query(), f.PageSize, func(page apitypes.EventList) ([]apitypes.EventRecord, string) {
		return page.Events, page.NextCursor
	})
}

// Where EventsAfter can begin.
const (
	AfterStart = "start" // the oldest event that is kept
	AfterEnd   = "end"   // what is recorded from now on
)

// EventsAfter returns the next events in the order in which they were recorded,
// and where to go on: AfterStart, AfterEnd or what the call before returned,
// which may be kept for as long as events are. Each event comes exactly once.
// When there is no more yet, the page is empty.
func (c *Client) EventsAfter(ctx context.Context, f EventFilter, after string) (events []apitypes.EventRecord, next string, err error) {
	query := f.query()
	query.Set("after", after)
	if f.PageSize != 0 {
		query.Set("limit", strconv.Itoa(f.PageSize))
	}
	u := *c.base.JoinPath("api/events")
	u.RawQuery = query.Encode()
	var page apitypes.EventList
	if err := c.call(ctx, http.MethodGet, &u, nil, nil, &page); err != nil {
		return nil, after, err
	}
	if page.NextCursor == "" {
		return nil, after, errors.New("client: the answer does not say where to go on")
	}
	return page.Events, page.NextCursor, nil
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
