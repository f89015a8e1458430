package txmgr

import (
	"context"
	"errors"
	"time"
)

// Errors that block every transaction of one kind of work. Each ends through an event outside of the writer, which then
// continues without a restart.
var (
	errInsufficientFunds = errors.New("the operator's account has too little for gas; send it funds")
	errFeeCapExceeded    = errors.New("gas costs more than allowed")
	errStuck             = errors.New("a transaction is not mined, though it offers more than what others pay")
	errBudget            = errors.New("the writer's daily budget is used up")
	errRole              = errors.New("the registry refuses the operator's account; grant it OPERATOR_ROLE, or correct the registry's address or the key")
)

// blockers are all blockers, with their names in the metric.
var blockers = []struct {
	err    error
	reason string
}{{errInsufficientFunds, "funds"}, {errFeeCapExceeded, "fees"}, {errBudget, "budget"}, {errStuck, "stuck"}, {errRole, "role"}}

// blocker is the reason why no transaction of one kind of work can be sent. While there is one, the work is not asked
// for more: a full batch of intents takes 200 calls.
type blocker struct {
	err       error
	gas       uint64    // gas of the transaction that was blocked
	checkedAt time.Time // time of the last check
	since     time.Time // time of the first occurrence
}

// noteBlocker records err as a blocker of a kind of work if it is one, with the gas of the blocked transaction, and
// returns err unchanged.
func (w *Writer) noteBlocker(k work, gas uint64, err error) error {
	if blockerOf(err) != nil {
		now := w.conf.Now()
		w.blockers[k] = &blocker{err, gas, now, now}
	}
	return err
}

// blockerOf returns the blocker that err wraps, or nil.
func blockerOf(err error) error {
	for _, b := range blockers {
		if errors.Is(err, b.err) {
			return b.err
		}
	}
	return nil
}

// blocked returns the present blocker of a kind of work, or nil. It checks every
// blockerCheckEvery whether the blocker is gone.
func (w *Writer) blocked(ctx context.Context, k work) error {
	b, now := w.blockers[k], w.conf.Now()
	if b == nil {
		return nil
	}
	if now.Sub(b.checkedAt) < blockerCheckEvery {
		return b.err
	}
	if now.Sub(b.since) >= blockerMaxAge {
		delete(w.blockers, k) // the recorded gas may come from a wrong answer
		return nil
	}
	err := k.check(ctx)
	if err == nil {
		err = w.checkAffordable(ctx, k, b.gas)
	}
	if err != nil {
		b.err, b.checkedAt = err, now
		return err
	}
	delete(w.blockers, k)
	return nil
}

// checkAffordable fails if the sender cannot, or may not, pay for this much gas for a kind of work now.
func (w *Writer) checkAffordable(ctx context.Context, k work, gas uint64) error {
	_, offer, err := w.price(ctx)
	if err != nil {
		return err
	}
	return w.checkSpend(ctx, costOf(gas, offer.cap), "", k.budgetPercent())
}
