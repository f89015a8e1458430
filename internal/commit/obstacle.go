package commit

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// What can stand in the way of every transaction, whatever it carries. Each
// ends by what somebody does elsewhere, and the writer then goes on by itself.
var (
	errFunds = errors.New("the operator's account has too little for gas; send it funds")
	errDear  = errors.New("gas costs more than allowed")
	errRole  = errors.New("the registry refuses the operator's account; grant it OPERATOR_ROLE, or correct the registry's address or the key")
)

// obstacle is one of these. While it stands nothing is looked up that could be
// sent: a full batch is 200 questions to the node.
type obstacle struct {
	err error
	gas uint64    // of the transaction that met it
	at  time.Time // when it was last looked at
}

// obstructed remembers an obstacle that a transaction of so much gas met, and
// returns the error, be it one or not.
func (w *Writer) obstructed(gas uint64, err error) error {
	if obstacleOf(err) != nil {
		w.obstacle = &obstacle{err, gas, w.conf.Now()}
	}
	return err
}

// obstacleOf returns which obstacle an error tells of, if any.
func obstacleOf(err error) error {
	for _, known := range []error{errFunds, errDear, errRole} {
		if errors.Is(err, known) {
			return known
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
	err := w.admitted(ctx)
	if err == nil {
		_, _, err = w.price(ctx, o.gas)
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

// price returns the newest block and what a transaction should offer now. It
// fails when the sender cannot or may not pay that for so much gas.
func (w *Writer) price(ctx context.Context, gas uint64) (*block, fees, error) {
	head, err := w.node.head(ctx)
	if err != nil {
		return nil, fees{}, err
	}
	offer, err := w.market(ctx, head)
	if err == nil {
		err = w.afford(ctx, gas, offer)
	}
	return head, offer, err
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
	return marketFees(head.BaseFee.ToInt(), tip, w.conf.MaxFee)
}

// afford fails when the sender cannot pay for so much gas.
func (w *Writer) afford(ctx context.Context, gas uint64, offer fees) error {
	has, err := w.node.balance(ctx, w.sender)
	if err != nil {
		return err
	}
	needs := new(big.Int).Mul(new(big.Int).SetUint64(gas), offer.cap)
	wei, _ := has.Float64()
	w.conf.Metrics.balance.WithLabelValues(w.conf.Chain.Key).Set(wei)
	w.update(func(s *Status) { s.Balance, s.Needed = has, needs })
	if has.Cmp(needs) < 0 {
		return fmt.Errorf("%w: %s has %s wei, and the next transaction may cost %s", errFunds, common.Address(w.sender), has, needs)
	}
	return nil
}

// short says what is missing for a form of a transaction that the node refused
// for want of funds.
func (w *Writer) short(ctx context.Context, form store.TxAttempt, refusal error) error {
	tx, err := decode(form)
	if err == nil {
		err = w.afford(ctx, tx.Gas(), fees{cap: form.FeeCap})
	}
	if errors.Is(err, errFunds) {
		return err
	}
	return fmt.Errorf("%w: %w", errFunds, refusal) // the node counts more than the gas, or has counted meanwhile
}
