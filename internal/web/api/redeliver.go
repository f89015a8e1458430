package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// redeliverEvent answers POST /api/events/{id}/redeliver.
func (a *API) redeliverEvent(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !access.FromContext(r.Context()).IsOperator() {
		if _, _, err := a.visibleEvent(r.Context(), id); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
	}
	if err := a.conf.Events.Redeliver(r.Context(), id, a.conf.Now()); err != nil {
		return fmt.Errorf("send event again: %w", err)
	}
	return a.writeEvent(w, r, false)
}

// redeliverEvents answers POST /api/events/redeliver, in transactions of bounded size within RedeliverTime.
func (a *API) redeliverEvents(w http.ResponseWriter, r *http.Request, o object) error {
	filter, scope, after, err := parseRedeliver(r.Context(), o)
	if err != nil {
		return err
	}
	h, err := a.history(r.Context(), "")
	if err != nil {
		return err
	}
	if after, err = h.move(scope, after); err != nil {
		return err
	}
	leave, err := a.redelivering.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	filter.After = after.Event
	var answer apitypes.RedeliverEventsResponse
	for begun := a.conf.Now(); ; {
		now := a.conf.Now()
		n, next, err := a.conf.Events.RedeliverMany(r.Context(), filter, now, RedeliverBatch)
		if err != nil {
			return fmt.Errorf("send events again: %w", err)
		}
		answer.Redelivered += n
		if next == 0 {
			break
		}
		filter.After = next
		if now.Sub(begun) >= RedeliverTime {
			answer.NextCursor = formatCursor(scope, h.at(next, -1, 0).key())
			break
		}
	}
	return a.writeJSON(w, r, http.StatusOK, answer, nil)
}

// parseRedeliver parses the filter of the events to redeliver, and returns the scope of its cursors
// and the position in the given cursor. It returns an *invoice.FieldError for the first invalid member.
func parseRedeliver(ctx context.Context, o object) (f webhooks.RedeliverFilter, scope string, after position, err error) {
	var cursor string
	err = cmp.Or(
		optional(o, "merchantId", func(n string) error { return text(o, "", n, &f.MerchantID, parseMerchantID) }),
		optional(o, "type", func(n string) error { return text(o, "", n, &f.Type, parseEventType) }),
		optional(o, "invoiceId", func(n string) error { return text(o, "", n, &f.InvoiceID, parseInvoiceID) }),
		optional(o, "from", func(n string) error { return seconds(o, n, &f.CreatedFrom) }),
		optional(o, "to", func(n string) error { return seconds(o, n, &f.CreatedTo) }),
		optional(o, "failedOnly", func(n string) error { return boolean(o, n, &f.OnlyFailed) }),
		optional(o, "cursor", func(n string) error { return text(o, "", n, &cursor, asIs) }),
	)
	if err == nil {
		f.MerchantID, err = ownMerchant(ctx, f.MerchantID)
	}
	_, from := o["from"]
	_, to := o["to"]
	switch {
	case err != nil:
		return f, "", after, err
	case !from && !f.OnlyFailed:
		return f, "", after, invalidField("from", "is required unless failedOnly is true: it keeps all events from being sent again by mistake")
	case to && (f.CreatedTo.Before(f.CreatedFrom) || f.CreatedTo.Unix() == 0):
		return f, "", after, invalidField("to", "must not lie before from")
	}
	scope = fmt.Sprintf("redeliver %q %q %q %d %d %t", f.MerchantID, f.Type, f.InvoiceID, invoice.UnixSeconds(f.CreatedFrom), invoice.UnixSeconds(f.CreatedTo), f.OnlyFailed)
	if cursor != "" {
		var ok bool
		if after, ok = parsePosition(scope, cursor); !ok {
			return f, "", after, invalidField("cursor", "must be the nextCursor of an answer to a request with the same members")
		}
	}
	return f, scope, after, nil
}

// optional reads a member if it is present.
func optional(o object, name string, read func(name string) error) error {
	if _, ok := o[name]; !ok {
		return nil
	}
	return read(name)
}

// boolean reads true or false.
func boolean(o object, name string, dst *bool) error {
	v, ok := o[name].(bool)
	if !ok {
		return invalidField(name, "must be true or false; it is %s", kind(o[name]))
	}
	*dst = v
	return nil
}

func parseMerchantID(s string) (string, error) {
	if !invoice.ValidMerchantID(s) {
		return "", fmt.Errorf("must be 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", invoice.MaxMerchantID)
	}
	return s, nil
}
