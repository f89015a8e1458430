package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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
	// CreateWait is how long a create waits for a transaction to begin.
	CreateWait = 5 * time.Second
)

// ErrCreatesWait is the error of a create with a transaction that did not begin within CreateWait, or before the
// request's deadline, because earlier creates keep the database busy. It created no invoice, and will not.
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
	// errKeyUnused: a request with the same idempotency key was refused in the same batch.
	errKeyUnused = errors.New("idempotency key unused")
)

// insert inserts an invoice in one transaction with the invoices that are created at the same time. It returns
// errKeyTaken or errReserved, and inserts no row, if the key was used or the reference is reserved, errKeyUnused if it
// has to be tried again, errNotHeld if the merchant may not use the address, and ErrCreatesWait if it has waited too
// long. If ctx ends while the transaction runs, the invoice may still be inserted.
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

// GiveWay waits until no create waits or is in progress, for at most the given time, and reports whether there was one.
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

// createAll inserts the invoices of a batch, and finishes their calls.
func (s *Service) createAll(ctx context.Context, calls []*createCall) {
	ctx = db.WithShare(context.WithoutCancel(ctx), 0) // the batch is not limited to the request that started the lane
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	ctx, span := tracing.StartRoot(ctx, "create invoices")
	span.SetAttributes(attribute.Int("quittance.invoices", len(calls)))
	defer span.End()
	defer func() {
		if panicked := recover(); panicked != nil { // no request's goroutine runs this
			err := fmt.Errorf("create invoices: panic: %v\n%s", panicked, debug.Stack())
			for _, c := range calls {
				c.Abandon(err)
			}
		}
	}()
	s.createTogether(ctx, calls, 0)
}

// createTogether inserts invoices in one transaction, and finishes their calls. If another transaction has taken a
// transfer amount or a key since this one read it as free, this one is rolled back, and each half of the calls gets a
// transaction that reads again. If references are not free, the calls without them get one. try counts from 0 how
// often an invoice was rolled back alone.
func (s *Service) createTogether(ctx context.Context, calls []*createCall, try int) {
	var refused map[*createCall]error
	err := s.update(ctx, func(tx *db.Tx, out *outbox) (err error) {
		refused, err = s.createIn(ctx, tx, out, calls, try)
		return err
	})
	half := len(calls) / 2
	switch taken := db.Taken(err); {
	case errors.Is(err, errReserved):
		others := slices.DeleteFunc(slices.Clone(calls), func(c *createCall) bool { return errors.Is(refused[c], errReserved) })
		if len(others) > 0 {
			s.createTogether(ctx, others, try)
		}
		for _, c := range calls { // after the others, of which one may have the reference now
			if errors.Is(refused[c], errReserved) {
				c.Finish(errReserved)
			}
		}
	case half > 0 && taken:
		s.createTogether(ctx, calls[:half], 0)
		s.createTogether(ctx, calls[half:], 0)
	case taken && try < maxTries:
		s.createTogether(ctx, calls, try+1)
	default:
		for _, c := range calls {
			c.Finish(cmp.Or(err, refused[c]))
		}
	}
}

// createIn inserts invoices, and returns those that are refused. If the transaction has to be rolled back, it returns
// an error, which is errReserved if some are refused because of their references. It takes two round trips to
// PostgreSQL: bind flushes what is read, and the commit what is written.
//
// Before bind has taken the lock on from_block, it does not write. The indexer takes the same lock and
// waits for all that hold it.
func (s *Service) createIn(ctx context.Context, tx *db.Tx, out *outbox, calls []*createCall, try int) (refused map[*createCall]error, err error) {
	firsts, repeats := splitRepeats(calls)
	used, err := sendUsedKeys(ctx, tx, keysOf(firsts), s.conf.Schedule())
	if err != nil {
		return nil, err
	}
	settled, err := sendSettled(ctx, tx, firsts)
	if err != nil {
		return nil, err
	}
	invoices := db.Each(firsts, func(c *createCall) *invoice.Invoice { return &c.Value.inv })
	if err := s.bind(ctx, tx, invoices, try); err != nil {
		return nil, err
	}
	refused = make(map[*createCall]error)
	allowed := slices.DeleteFunc(firsts, func(c *createCall) bool {
		if used[c.Value.inv.ID] {
			refused[c] = errKeyTaken
		}
		return refused[c] != nil
	})
	if !settled() {
		denied, err := s.hold(ctx, tx, out, allowed)
		if err != nil {
			return nil, err
		}
		allowed = slices.DeleteFunc(allowed, func(c *createCall) bool {
			if denied[c] {
				refused[c] = errNotHeld
			}
			return denied[c]
		})
	}
	reserved, err := s.insertAll(ctx, tx, out, allowed)
	if err != nil {
		return nil, err
	}
	for _, c := range allowed {
		if reserved[c.Value.inv.ID] {
			refused[c], err = errReserved, errReserved
		}
	}
	for c, first := range repeats {
		refused[c] = refusalOfRepeat(c.Value, first.Value, refused[first])
	}
	return refused, err
}

// refusalOfRepeat returns how a call is refused that has the key of the first one, which was inserted or refused.
func refusalOfRepeat(c, first *create, refused error) error {
	switch {
	case !errors.Is(refused, errNotHeld):
		return cmp.Or(refused, errKeyTaken)
	case c.settlement() == first.settlement() && c.byMerchant == first.byMerchant:
		return errNotHeld
	}
	return errKeyUnused // its address may be allowed
}

// splitRepeats splits calls into the first ones with their key, and the others with their first one.
func splitRepeats(calls []*createCall) (firsts []*createCall, repeats map[*createCall]*createCall) {
	type usedKey struct{ scope, key string }
	seen := make(map[usedKey]*createCall)
	repeats = make(map[*createCall]*createCall)
	for _, c := range calls {
		if k := c.Value.key; k != nil {
			if first := seen[usedKey{k.Scope, k.Key}]; first != nil {
				repeats[c] = first
				continue
			}
			seen[usedKey{k.Scope, k.Key}] = c
		}
		firsts = append(firsts, c)
	}
	return firsts, repeats
}

// insertAll inserts invoices, their idempotency keys and events. It assumes that transfer amounts and keys that were
// read as free stay free, because it would take two round trips more to ask which were inserted. It returns the ids of
// invoices with references that are not free; then the transaction must be rolled back.
//
// Two transactions that insert the same transfer amounts, keys or references wait for each other. So
// they are inserted in sorted order, amounts first and references last. The indexer assigns transfer amounts in
// another order; if it deadlocks with a create, db.Update runs one of the two transactions again.
func (s *Service) insertAll(ctx context.Context, tx *db.Tx, out *outbox, calls []*createCall) (reserved map[string]bool, err error) {
	invoices := make([]invoice.Invoice, len(calls))
	for i, c := range calls {
		invoices[i] = c.Value.inv
		if c.Value.inv.Status == invoice.Open {
			if err := s.emitCreated(out, c.Value.inv); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(invoices, func(a, b invoice.Invoice) int {
		return cmp.Or(bytes.Compare(a.Merchant[:], b.Merchant[:]), a.TransferAmount.Cmp(b.TransferAmount), cmp.Compare(a.ID, b.ID))
	})
	if err := insertFree(ctx, tx, invoices); err != nil {
		return nil, err
	}
	if err := InsertIdempotencyKeys(ctx, tx, keysOf(calls), s.conf.Schedule()); err != nil {
		return nil, err
	}
	return reserveReferences(ctx, tx, invoices)
}

// keysOf returns the idempotency keys of calls that have one.
func keysOf(calls []*createCall) (keys []IdempotencyKey) {
	for _, c := range calls {
		if c.Value.key != nil {
			keys = append(keys, *c.Value.key)
		}
	}
	return keys
}

// bind sets the transfer amounts of open direct invoices, and the blocks from which they can be paid.
// Drafts cannot be paid.
func (s *Service) bind(ctx context.Context, tx *db.Tx, invoices []*invoice.Invoice, try int) error {
	var chains []string
	var bases []AmountKey
	var open []*invoice.Invoice
	for _, inv := range invoices {
		if !slices.Contains(chains, inv.ChainKey) {
			chains = append(chains, inv.ChainKey)
		}
		if inv.Status == invoice.Open && !inv.IsDeposit() {
			open, bases = append(open, inv), append(bases, amountKey(*inv, inv.Amount))
		}
	}
	heights, err := sendHeightsForNewInvoices(ctx, tx, chains)
	if err != nil {
		return err
	}
	amounts, err := s.chooseAmounts(ctx, tx, bases, try)
	if err == nil {
		err = tx.Flush(ctx)
	}
	if err != nil {
		return err
	}
	for _, inv := range invoices {
		inv.FromBlock = heights[inv.ChainKey]
		if inv.Status == invoice.Drafted {
			inv.ClosedBlock = inv.FromBlock
		}
	}
	for i, inv := range open {
		inv.TransferAmount = amounts[i]
	}
	return nil
}

// amountKey returns the key of an amount at the invoice's address.
func amountKey(inv invoice.Invoice, a invoice.Amount) AmountKey {
	return AmountKey{ChainKey: inv.ChainKey, Merchant: inv.Merchant, Token: inv.Token, Amount: a}
}
