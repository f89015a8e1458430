package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// Limits of long requests: those that may take longer than RequestTimeout.
const (
	// MaxWaiting bounds the event streams and the requests with wait that are served at a time.
	MaxWaiting = 500
	// MaxOwnWaiting bounds the waiting requests of one owner of keys.
	MaxOwnWaiting = 100
	// keyCheckInterval is how often the key of a stream or an export is checked.
	keyCheckInterval = 500 * time.Millisecond
)

// Limits of requests that wait for an external party, the endpoint of a merchant or a chain, or that take long.
const (
	// MaxPings bounds the pings of endpoints at a time, also those before a secret is promoted.
	MaxPings = 64
	// MaxOwnPings bounds the pings of one owner of keys at a time.
	MaxOwnPings = 4
	// MaxRedelivering bounds the requests to send many events again, which hold the database's writer.
	MaxRedelivering = 8
	// MaxOwnRedelivering bounds these requests of one owner of keys.
	MaxOwnRedelivering = 2
	// MaxSettling bounds the requests to settle payments by x402.
	MaxSettling = 256
	// MaxOwnSettling bounds the requests to settle of one owner of keys.
	MaxOwnSettling = 64
)

// slots bounds how many requests of a kind are served at a time, for all owners together and for each.
// An owner has a limit and a share of the free slots.
type slots struct {
	shares  *limits.Shares[limits.Party]
	mostOwn int64              // 0: its share
	refused func(limit string) // called with the name of the shares, or "all_" and the name
}

func newSlots(name string, mostOwn, mostAll int64, refused func(limit string)) *slots {
	return &slots{shares: limits.NewShares[limits.Party](name, mostAll), mostOwn: mostOwn, refused: refused}
}

// enter takes a slot for the owner of the context's key, and returns a function that
// frees it. Errors are *limits.ExceededError and limits.ErrBusy.
func (s *slots) enter(ctx context.Context) (leave func(), err error) {
	owner := limits.PartyOf(access.FromContext(ctx).MerchantID)
	return s.enterAs(limits.Claim[limits.Party]{Client: owner, Weight: 1, Most: s.mostOwn})
}

// enterPayer takes a slot for the context's client at a merchant, and for an object that has its own limit.
func (s *slots) enterPayer(ctx context.Context, merchantID, object string) (leave func(), err error) {
	of := limits.Claim[limits.Party]{Client: limits.Party{Object: object}, Weight: 1, Most: s.mostOwn}
	return s.enterAs(append(limits.Payer(ctx, merchantID), of)...)
}

func (s *slots) enterAs(claims ...limits.Claim[limits.Party]) (leave func(), err error) {
	switch err := s.shares.Take(1, claims...); {
	case errors.Is(err, limits.ErrBusy):
		s.refused("all_" + s.shares.Name())
		return nil, err
	case err != nil:
		s.refused(s.shares.Name())
		return nil, &limits.ExceededError{Limit: s.shares.Name(), RetryAfter: strconv.Itoa(retryLong)}
	}
	return func() { s.shares.Give(1, claims...) }, nil
}

// long runs a part of a request that may take longer than RequestTimeout: for up to most, and while the client is
// connected, the service runs, and the key of the request is accepted. The error is of run, or of a key that is refused
// now.
func (a *API) long(w http.ResponseWriter, r *http.Request, most time.Duration, run func(ctx context.Context) error) error {
	whole, cancel := webpage.RequestContext(a.conf.Stopping, r)
	defer cancel()
	accepted, stop := a.whileAccepted(whole, r)
	defer stop()
	ctx, cancel := context.WithTimeout(accepted, most)
	defer cancel()
	if err := webpage.ClearDeadlines(w); err != nil {
		return err
	}
	err := errors.Join(run(ctx), webpage.ExtendDeadlines(w))
	return cmp.Or(a.checkKey(context.WithoutCancel(whole), r), err)
}

// await is long for a run that waits for a change. The end of its time is not an error.
func (a *API) await(w http.ResponseWriter, r *http.Request, most time.Duration, run func(ctx context.Context) error) error {
	return a.long(w, r, most, func(ctx context.Context) error {
		if err := run(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

// retryLong is the Retry-After of an owner beyond its slots, in seconds.
const retryLong = 5

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

// awaitInvoice returns an invoice as soon as its status is not the known one or the invoice changes. It also returns
// when the time is over, when the client or the service ends the request, and when the key is no longer accepted.
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
