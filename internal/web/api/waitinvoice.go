package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// MaxWait bounds the parameter wait, in seconds.
const MaxWait = 60

// invoiceWait is the wait parameters of GET /api/invoices/{id}.
type invoiceWait struct {
	seconds int
	status  invoice.Status // that the caller knows
}

// invoiceWait parses the parameters. ok is false if the request does not wait.
func (q *query) invoiceWait() (wait invoiceWait, ok bool) {
	wait.status = invoice.Status(one(q, "status", invoice.Statuses))
	text, ok := q.get("wait")
	if !ok {
		if q.values.Has("status") {
			q.err = invalidField("wait", "is required with status")
		}
		return wait, false
	}
	wait.seconds = q.waitSeconds(text, MaxWait)
	wait.status = cmp.Or(wait.status, invoice.Open)
	return wait, true
}

// waitSeconds parses the value of the parameter wait, a number of seconds up to most.
func (q *query) waitSeconds(text string, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most || text != strconv.Itoa(n) {
		q.reject("wait", "must be an integer from 0 to %d, without sign or leading zero", most)
	}
	return n
}

// visibleInvoice returns an invoice, or db.ErrNotFound unless the principal may see it.
func (a *API) visibleInvoice(ctx context.Context, id string) (invoice.Invoice, error) {
	inv, err := a.conf.Reader.Invoice(ctx, id)
	if err == nil && !access.FromContext(ctx).Sees(inv.MerchantID) {
		err = db.ErrNotFound
	}
	if err != nil {
		return invoice.Invoice{}, fmt.Errorf("read invoice: %w", err)
	}
	return inv, nil
}

// awaitInvoice returns an invoice as soon as its status is not the known one or the invoice changes.
// It also returns when the time is over, when the client or the service ends the request, and when the
// key is no longer accepted.
func (a *API) awaitInvoice(w http.ResponseWriter, r *http.Request, id string, known invoiceWait) (invoice.Invoice, error) {
	leave, err := a.waiting.enter(r.Context())
	if err != nil {
		return invoice.Invoice{}, err
	}
	defer leave()
	first, err := a.visibleInvoice(r.Context(), id)
	if err != nil || first.Status != known.status || known.seconds == 0 {
		return first, err
	}
	err = a.await(w, r, time.Duration(known.seconds)*time.Second, func(ctx context.Context) error { return a.awaitChange(ctx, first) })
	if err != nil {
		return invoice.Invoice{}, err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), RequestTimeout)
	defer cancel()
	return a.visibleInvoice(last, id)
}

// rereadInterval is how often a request that waits reads its invoice, in addition to reads after
// events and audit entries about it. Some changes are in neither log: confirmations that do not settle
// the invoice, and changes of its details.
const rereadInterval = 2 * time.Second

// awaitChange waits until the invoice differs from the known state.
func (a *API) awaitChange(ctx context.Context, known invoice.Invoice) error {
	after, err := a.conf.Feed.Head(ctx)
	if err != nil {
		return err
	}
	for {
		now, err := a.conf.Reader.Invoice(ctx, known.ID)
		if err != nil || !reflect.DeepEqual(now, known) {
			return err
		}
		if after, err = a.nextAbout(ctx, known, after); err != nil {
			return err
		}
	}
}

// nextAbout waits after a position for an event about an invoice or a change of its merchant,
// at most for rereadInterval, and returns the position that it has reached.
func (a *API) nextAbout(ctx context.Context, inv invoice.Invoice, after webhooks.Position) (webhooks.Position, error) {
	return a.conf.Feed.NextMatching(ctx, after, rereadInterval, func(n webhooks.News) bool {
		return n.IsAbout(inv.ID) || slices.ContainsFunc(n.Changes, func(c access.ChangeRow) bool { return c.MerchantID == inv.MerchantID })
	})
}
