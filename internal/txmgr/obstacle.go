package txmgr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// What can stand in the way of every transaction, whatever it carries. Each
// ends by what somebody does elsewhere, and the writer then goes on by itself.
var (
	errFunds  = errors.New("the operator's account has too little for gas; send it funds")
	errDear   = errors.New("gas costs more than allowed")
	errStuck  = errors.New("a transaction is not mined, though it offers more than what others pay")
	errBudget = errors.New("the writer's daily budget is used up")
	errRole   = errors.New("the registry refuses the operator's account; grant it OPERATOR_ROLE, or correct the registry's address or the key")
)

// obstacles are all of them, and what the metric calls them.
var obstacles = []struct {
	err    error
	reason string
}{{errFunds, "funds"}, {errDear, "fees"}, {errBudget, "budget"}, {errStuck, "stuck"}, {errRole, "role"}}

// obstacle is one of these. While it stands nothing is looked up that could be
// sent: a full batch is 200 questions to the node.
type obstacle struct {
	err error
	gas uint64    // of the transaction that met it
	at  time.Time // when it was last looked at
	met time.Time // when it was met
}

// obstructed remembers an obstacle that a transaction of so much gas met, and
// returns the error, be it one or not.
func (w *Writer) obstructed(gas uint64, err error) error {
	if obstacleOf(err) != nil {
		now := w.conf.Now()
		w.obstacle = &obstacle{err, gas, now, now}
	}
	return err
}

// obstacleOf returns which obstacle an error tells of, if any.
func obstacleOf(err error) error {
	for _, o := range obstacles {
		if errors.Is(err, o.err) {
			return o.err
		}
	}
	return nil
}

// blocked returns the obstacle that stands. It looks at it now and then.
func (w *Writer) blocked(ctx context.Context) error {
	o, now := w.obstacle, w.conf.Now()
	if o == nil {
		return nil
	}
	if now.Sub(o.at) < obstacleEvery {
		return o.err
	}
	if now.Sub(o.met) >= obstacleAnew {
		w.obstacle = nil // what its gas is measured by may have been a wrong answer
		return nil
	}
	err := w.admitted(ctx)
	if err == nil {
		err = w.payable(ctx, o.gas)
	}
	if err != nil {
		o.err, o.at = err, now
		return err
	}
	w.obstacle = nil
	return nil
}

// admitted fails when the registry refuses even to do nothing for the operator.
func (w *Writer) admitted(ctx context.Context) error {
	_, err := w.node.estimate(ctx, w.sender, w.registry(), pack(invoice.IntentOpen, nil))
	if refused(err) {
		return fmt.Errorf("%w: account %s, registry %s: %w", errRole, common.Address(w.sender), w.registry(), err)
	}
	return err
}

// turnedDown finds out what it is that the registry refuses: the operator or
// the commitments.
func (w *Writer) turnedDown(ctx context.Context, kind invoice.IntentKind, commitments []invoice.Hash, why error) error {
	if err := w.admitted(ctx); err != nil {
		return w.obstructed(0, err)
	}
	w.shrink(kind, commitments)
	return fmt.Errorf("the registry refuses to %s %d commitments: %w", kind, len(commitments), why)
}

// price returns the newest block and what a transaction should offer now.
func (w *Writer) price(ctx context.Context) (*block, fees, error) {
	head, err := w.node.head(ctx)
	if err != nil {
		return nil, fees{}, err
	}
	offer, err := w.market(ctx, head)
	return head, offer, err
}

// payable fails when the sender cannot or may not pay for so much gas now.
func (w *Writer) payable(ctx context.Context, gas uint64) error {
	_, offer, err := w.price(ctx)
	if err != nil {
		return err
	}
	return w.afford(ctx, costOf(gas, offer.cap), "")
}

// market returns the fees that the chain asks for now.
func (w *Writer) market(ctx context.Context, head *block) (fees, error) {
	if head.BaseFee == nil {
		return fees{}, fmt.Errorf("block %d has no base fee; want a chain with the fees of EIP-1559", uint64(*head.Number))
	}
	tip, err := w.node.tip(ctx)
	if err != nil {
		return fees{}, err
	}
	return marketFees(head.BaseFee.ToInt(), tip, w.conf.Chain.Limits)
}

// short says what is missing for a form of a transaction that the node refused
// for want of funds.
func (w *Writer) short(ctx context.Context, form store.TxAttempt, refusal error) error {
	tx, err := decode(form)
	if err == nil {
		err = w.afford(ctx, costOf(tx.Gas(), form.FeeCap), "")
	}
	if errors.Is(err, errFunds) {
		return err
	}
	return fmt.Errorf("%w: %w", errFunds, refusal) // the node counts more than the gas, or has counted meanwhile
}
