package client

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// InvoiceFilter selects invoices. The zero value selects all.
type InvoiceFilter struct {
	MerchantID string
	Status     apitypes.InvoiceStatus
	Query      string // any id, reference, hash or address that identifies the invoice
	Reference  string
	Customer   string            // id of a customer, or the e-mail address of a customer without an id
	Metadata   map[string]string // key-value pairs of the invoice
	Exception  apitypes.InvoiceException
	Amount     string // in minor units
	To         string // settlement address
	// CreatedAfter and CreatedBefore are in whole seconds; zero for no bound.
	CreatedAfter, CreatedBefore time.Time
	PageSize                    int // invoices per request, 1 to 200; 0 means the service's default
}

func (f InvoiceFilter) query() url.Values {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "status", string(f.Status))
	set(query, "q", f.Query)
	set(query, "reference", f.Reference)
	set(query, "customer", f.Customer)
	for key, value := range f.Metadata {
		query.Set("metadata["+key+"]", value)
	}
	set(query, "exception", string(f.Exception))
	set(query, "amount", f.Amount)
	set(query, "to", f.To)
	setTime(query, "createdAfter", f.CreatedAfter)
	setTime(query, "createdBefore", f.CreatedBefore)
	return query
}

// Invoices lists invoices, newest first. It requests pages as needed, and ends after an
// error.
func (c *Client) Invoices(ctx context.Context, f InvoiceFilter) iter.Seq2[apitypes.Invoice, error] {
	return list(ctx, c, c.path("api/invoices"), f.query(), f.PageSize, invoicesOf)
}

// PaymentFilter selects payments. The zero value selects all confirmed and attributed
// ones.
type PaymentFilter struct {
	MerchantID string
	ChainKey   string
	InvoiceID  string
	TxHash     string
	From, To   string // addresses
	Amount     string // in minor units
	// ConfirmedAfter and ConfirmedBefore are in whole seconds; zero for no bound.
	ConfirmedAfter, ConfirmedBefore time.Time
	// IncludePending also selects pending and orphaned payments. Each payment then has a Status.
	IncludePending bool
	// IncludeUnattributed also selects unattributed payments; with a MerchantID, only payments to its addresses. Each
	// payment then has a Status.
	IncludeUnattributed bool
	PageSize            int // payments per request, 1 to 200; 0 means the service's default
}

func (f PaymentFilter) query() url.Values {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "chainKey", f.ChainKey)
	set(query, "invoiceId", f.InvoiceID)
	set(query, "txHash", f.TxHash)
	set(query, "from", f.From)
	set(query, "to", f.To)
	set(query, "amount", f.Amount)
	setTime(query, "confirmedAfter", f.ConfirmedAfter)
	setTime(query, "confirmedBefore", f.ConfirmedBefore)
	var include []string
	if f.IncludePending {
		include = append(include, "pending")
	}
	if f.IncludeUnattributed {
		include = append(include, "unattributed")
	}
	set(query, "include", strings.Join(include, ","))
	return query
}

// Payments lists on-chain payments, last observed first. It requests pages as needed, and
// ends after an error.
func (c *Client) Payments(ctx context.Context, f PaymentFilter) iter.Seq2[apitypes.Payment, error] {
	return list(ctx, c, c.path("api/payments"), f.query(), f.PageSize, paymentsOf)
}

// EventFilter selects events. The zero value selects all.
type EventFilter struct {
	MerchantID string
	Type       apitypes.EventType
	InvoiceID  string
	// Delivery is the current state of the delivery, such as [apitypes.WithFailed].
	// EventsAfter does not support it.
	Delivery apitypes.DeliveryFilter
	PageSize int // events per request, 1 to 200; 0 means the service's default
}

func (f EventFilter) query() url.Values {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "type", string(f.Type))
	set(query, "invoiceId", f.InvoiceID)
	set(query, "delivery", string(f.Delivery))
	return query
}

// Events lists events with the state of their deliveries, newest first. It requests pages
// as needed, and ends after an error.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[apitypes.EventRecord, error] {
	all := list(ctx, c, c.path("api/events"), f.query(), f.PageSize, eventsOf)
	return func(yield func(apitypes.EventRecord, error) bool) {
		var got recent
		for e, err := range all {
			got.before = got.ids // the list may begin again
			if (err != nil || !got.repeats(e.ID())) && !yield(e, err) {
				return
			}
		}
	}
}

// Positions at which EventsAfter can begin.
const (
	AfterStart = "start" // before the oldest stored event
	AfterEnd   = "end"   // after the newest event
)

// EventsAfter returns the events after a position, in the order in which they were recorded, and the position after
// them. after is AfterStart, AfterEnd or the position that the previous call returned, which is valid while events are
// stored. Each event is returned exactly once. Without new events the page is empty.
//
// If the service's database was restored from a backup, it returns the events since the backup, except events with the
// ids of the last [MaxRecentEvents] that this client returned before after. If events after the position are no longer
// stored, the error is an [*EventsLostError], and next is the position to continue at.
func (c *Client) EventsAfter(ctx context.Context, f EventFilter, after string) (events []apitypes.EventRecord, next string, err error) {
	query := f.query()
	query.Set("after", after)
	if f.PageSize != 0 {
		query.Set("limit", strconv.Itoa(f.PageSize))
	}
	got := c.positions.take(after)
	next = after
	defer func() { c.positions.put(next, got) }()
	for moved := moves(0); ; {
		query.Set("after", after)
		u := c.path("api/events")
		u.RawQuery = query.Encode()
		var page apitypes.EventList
		if err := c.get(ctx, u, &page, hasPosition(&page)); err != nil {
			if after, err = moved.follow(err, got, &next); err != nil {
				return nil, next, err
			}
			continue
		}
		events = slices.DeleteFunc(page.Events, func(e apitypes.EventRecord) bool { return got.repeats(e.ID()) })
		if len(events) > 0 || len(page.Events) == 0 {
			next = page.NextCursor
			return events, next, nil
		}
		after = page.NextCursor // the caller has all of them
	}
}

// hasPosition checks that a page contains the position to continue at.
func hasPosition(page *apitypes.EventList) check {
	return func() string {
		if page.NextCursor == "" {
			return "it has no position"
		}
		return ""
	}
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

func setTime(query url.Values, name string, at time.Time) {
	if !at.IsZero() {
		query.Set(name, strconv.FormatInt(at.Unix(), 10))
	}
}

var errSamePage = errors.New("client: a page's nextCursor leads to the same page again")

// list yields the elements of all pages. split returns the elements and the next cursor
// of a page.
func list[P, T any](ctx context.Context, c *Client, from *url.URL, query url.Values, pageSize int, split func(P) ([]T, string)) iter.Seq2[T, error] {
	if pageSize != 0 {
		query.Set("limit", strconv.Itoa(pageSize))
	}
	return func(yield func(T, error) bool) {
		var none T
		moved := moves(0)
		for cursor := ""; ; {
			page, next, err := listPage[P](ctx, c, from, query, cursor, &moved)
			if err != nil {
				yield(none, err)
				return
			}
			cursor = next
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

// listPage returns the page of a list at a cursor, or at the cursor from which the list continues.
func listPage[P any](ctx context.Context, c *Client, from *url.URL, query url.Values, cursor string, moved *moves) (page P, at string, err error) {
	for {
		if page, err = getPage[P](ctx, c, from, query, cursor); err == nil {
			return page, cursor, nil
		}
		if cursor, err = moved.from(err); err != nil {
			return page, "", err
		}
	}
}

// getPage fetches the page of a list at a cursor.
func getPage[P any](ctx context.Context, c *Client, from *url.URL, query url.Values, cursor string) (page P, err error) {
	u, asked := *from, maps.Clone(query)
	set(asked, "cursor", cursor)
	u.RawQuery = asked.Encode()
	err = c.get(ctx, &u, &page)
	return page, err
}

// Claims lists payers' claims to unattributed payments, newest first; merchantID and
// paymentID are "" for all. It requests pages as needed, and ends after an error.
func (c *Client) Claims(ctx context.Context, merchantID, paymentID string) iter.Seq2[apitypes.Claim, error] {
	query := make(url.Values)
	set(query, "merchantId", merchantID)
	set(query, "paymentId", paymentID)
	return list(ctx, c, c.path("api/claims"), query, 0, func(page apitypes.ClaimList) ([]apitypes.Claim, string) {
		return page.Claims, page.NextCursor
	})
}

// InvoicePayments lists the payments of an invoice. It requests pages as needed, and ends
// after an error.
func (c *Client) InvoicePayments(ctx context.Context, invoiceID string) iter.Seq2[apitypes.Payment, error] {
	return list(ctx, c, c.path("api/invoices", invoiceID, "payments"), make(url.Values), 0, paymentsOf)
}

// ErrTruncated is the last error of a list that is incomplete, because it exceeds its limit.
var ErrTruncated = errors.New("client: the service left out a part of the list, which is too long")

// InvoiceTimeline lists the history of an invoice, in order. It requests pages as needed, and ends after an error: with
// ErrTruncated after the last entry if the timeline is incomplete.
func (c *Client) InvoiceTimeline(ctx context.Context, invoiceID string) iter.Seq2[apitypes.TimelineEntry, error] {
	return func(yield func(apitypes.TimelineEntry, error) bool) {
		truncated := false
		for entry, err := range list(ctx, c, c.path("api/invoices", invoiceID, "timeline"), make(url.Values), 0, func(page apitypes.Timeline) ([]apitypes.TimelineEntry, string) {
			truncated = page.Truncated
			return page.Entries, page.NextCursor
		}) {
			if !yield(entry, err) || err != nil {
				return
			}
		}
		if truncated {
			yield(apitypes.TimelineEntry{}, ErrTruncated)
		}
	}
}
