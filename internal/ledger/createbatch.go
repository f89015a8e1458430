package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/tracing"
)

const (
	// createBatch is how many invoices one transaction creates.
	createBatch = 128
	// createLanes is the largest number of such transactions at the same time. The second runs while
	// createBatch invoices wait, or while the first takes longer than createPatience.
	createLanes, createPatience = 2, 50 * time.Millisecond
	// createTimeout bounds the transactions of one batch.
	createTimeout = 30 * time.Second
	// askAfterCollision is how many batches ask which transfer amounts and keys they have inserted, after
	// a batch found that another transaction had taken some.
	askAfterCollision = 16
	// CreateWait is how long a create waits for a transaction to begin.
	CreateWait = 5 * time.Second
)

// ErrCreatesWait is the error of a create with a transaction that did not begin within CreateWait, or
// before the request's deadline, because earlier creates keep the database busy. It created no
// invoice, and will not.
var ErrCreatesWait = fmt.Errorf("creates wait for the database: %w", limits.ErrBusy)

// create is an invoice to be inserted, with the idempotency key of its request.
type create struct {
	inv        invoice.Invoice
	key        *IdempotencyKey // nil without one
	byMerchant bool            // the merchant asks, not the operator
	origin     access.Origin   // of the request
}

// createCall is a request that waits for its invoice.
type createCall = db.Call[*create, error]

var (
	// errKeyTaken: another request has used the idempotency key.
	errKeyTaken = errors.New("idempotency key taken")
	// errReserved: another invoice has reserved the reference.
	errReserved = errors.New("reference reserved")
	// errRefused: a transaction was rolled back because some of its invoices were refused.
	errRefused = errors.New("invoices refused")
)

// insert inserts an invoice in one transaction with the invoices that are created at the same time. It
// returns errKeyTaken or errReserved, and inserts no row, if the key was used or the reference is
// reserved, errNotHeld if the merchant may not use the address, and ErrCreatesWait if it has waited
// too long. If ctx ends while the transaction runs, the invoice may still be inserted.
func (s *Service) insert(ctx context.Context, c create) (invoice.Invoice, error) {
	c.origin = access.OriginFrom(ctx)
	result := s.creates.Submit(ctx, &c)
	queued := time.NewTimer(CreateWait)
	defer queued.Stop()
	select {
	case err := <-result:
		return c.inv, err
	case <-queued.C:
		if s.creates.Withdraw(result) {
			return invoice.Invoice{}, ErrCreatesWait
		}
	case <-ctx.Done():
		if s.creates.Withdraw(result) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return invoice.Invoice{}, ErrCreatesWait
		}
		return invoice.Invoice{}, ctx.Err()
	}
	select { // the transaction has started
	case err := <-result:
		return c.inv, err
	case <-ctx.Done():
		return invoice.Invoice{}, ctx.Err()
	}
}

// CreatesWaiting returns how many creates wait for a transaction.
func (s *Service) CreatesWaiting() int { return s.creates.Waiting() }

// GiveWay waits until no create waits or is in progress, for at most the given time, and reports
// whether there was one.
func (s *Service) GiveWay(ctx context.Context, most time.Duration) (waited bool) {
	idle := s.creates.Idle()
	select {
	case <-idle:
		return false
	default:
		clock.Sleep(ctx, most, idle)
		return true
	}
}

// createAll inserts the invoices of a batch, in as many transactions as necessary until each has a
// unique transfer amount, and finishes their calls. It assumes that amounts which the first
// transaction reads as free stay free, unless that was wrong for one of the previous batches.
func (s *Service) createAll(ctx context.Context, calls []*createCall) {
	ctx = db.WithShare(context.WithoutCancel(ctx), 0) // the batch is not limited to the request that started the lane
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	ctx, span := tracing.StartRoot(ctx, "create invoices")
	span.SetAttributes(attribute.Int("quittance.invoices", len(calls)))
	defer span.End()
	calls, repeats := splitRepeats(calls)
	assume, collided := s.asking.Load() <= 0, false
	for try := 0; len(calls) > 0; {
		got, err := s.tryCreate(ctx, calls, try, assume)
		if assume && db.Taken(err) { // rolled back: all are inserted again
			assume, collided = false, true
			continue
		}
		collided = collided || got.collided
		result := func(id string) (bool, error) { return got.inserted[id], nil } //nolint:unparam // it is replaced below
		switch {
		case errors.Is(err, errRefused): // rolled back: the others are inserted again
			result = func(id string) (bool, error) { return got.refused[id] != nil, got.refused[id] }
		case err != nil:
			result = func(string) (bool, error) { return true, err }
		default:
			calls = finish(calls, repeats, func(c *createCall) (bool, error) { return got.repeated[c.Value.inv.ID], errKeyTaken })
			calls = finish(calls, repeats, func(c *createCall) (bool, error) { return got.held.refused[c], errNotHeld })
			s.holdings.remember(got.held)
			try++
		}
		s.settlements.remember(calls, err == nil)
		if err != nil {
			s.holdings.forget(calls)
		}
		calls = finish(calls, repeats, func(c *createCall) (bool, error) { return result(c.Value.inv.ID) })
	}
	switch {
	case collided:
		s.asking.Store(askAfterCollision)
	case !assume:
		s.asking.Add(-1)
	}
}

// triedCreates is the result of a transaction with creates.
type triedCreates struct {
	inserted map[string]bool  // ids of the invoices
	repeated map[string]bool  // ids of invoices with keys that were used before
	refused  map[string]error // error by the id of the invoice
	held     holdings
	collided bool // a transfer amount or key was free when it was looked up, but no longer
}

// tryCreate inserts invoices in one transaction. With assume it fails with an error for which db.Taken holds if
// a transfer amount or key is no longer free.
func (s *Service) tryCreate(ctx context.Context, calls []*createCall, try int, assume bool) (got triedCreates, err error) {
	err = s.update(ctx, func(tx *db.Tx, out *outbox) (err error) {
		if assume {
			tx.AssumeFree()
		}
		got, err = s.createIn(ctx, tx, out, calls, try)
		return err
	})
	return got, err
}

// createIn inserts invoices. If the transaction has to be rolled back, it returns an error.
//
// Before bind has taken the lock on from_block, it does not write. The indexer takes the same lock and
// waits for all that hold it.
func (s *Service) createIn(ctx context.Context, tx *db.Tx, out *outbox, calls []*createCall, try int) (got triedCreates, err error) {
	if got.repeated, err = sendUsedKeys(ctx, tx, keysOf(calls), s.conf.Schedule()); err != nil {
		return got, err
	}
	held, settled, err := s.sendHoldings(ctx, tx, calls)
	if err != nil {
		return got, err
	}
	if err := s.bind(ctx, tx, calls, try); err != nil { // which flushes
		return got, err
	}
	if got.held = held; !settled() {
		if got.held, err = s.hold(ctx, tx, out, calls, got.repeated); err != nil {
			return got, err
		}
	}
	allowed := slices.DeleteFunc(without(calls, got.repeated), func(c *createCall) bool { return got.held.refused[c] })
	return got, s.insertInvoices(ctx, tx, out, allowed, &got)
}

// finish finishes the calls that have a result, and returns the others.
func finish(calls []*createCall, repeats repeatedCalls, result func(*createCall) (finished bool, err error)) []*createCall {
	return slices.DeleteFunc(calls, func(c *createCall) bool {
		finished, err := result(c)
		if finished {
			c.Finish(err)
			repeats.finish(c.Value.key, err)
		}
		return finished
	})
}

// repeatedCalls are calls of a batch with the key of another call of the batch.
type repeatedCalls map[usedKey][]*createCall

// usedKey identifies an idempotency key.
type usedKey struct{ scope, key string }

// splitRepeats splits calls into the first ones with their key, and the others.
func splitRepeats(calls []*createCall) (first []*createCall, repeats repeatedCalls) {
	repeats = make(repeatedCalls)
	seen := make(map[usedKey]bool)
	for _, c := range calls {
		k := c.Value.key
		if k == nil {
			first = append(first, c)
			continue
		}
		used := usedKey{k.Scope, k.Key}
		if seen[used] {
			repeats[used] = append(repeats[used], c)
		} else {
			seen[used] = true
			first = append(first, c)
		}
	}
	return first, repeats
}

// finish finishes the repeats of a call that ended with err.
func (r repeatedCalls) finish(k *IdempotencyKey, err error) {
	if k == nil {
		return
	}
	if err == nil {
		err = errKeyTaken
	}
	for _, c := range r[usedKey{k.Scope, k.Key}] {
		c.Finish(err)
	}
}
