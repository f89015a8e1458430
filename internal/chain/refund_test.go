package chain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// several are the nodes of a chain.
type several []*node

func (s several) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return s[0].BatchCallContext(ctx, batch)
}

func (s several) Nodes() int { return len(s) }

func (s several) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) (err error) {
	answered := false
	for _, n := range s {
		failed := ask(ctx, n)
		answered, err = answered || failed == nil, errors.Join(err, failed)
	}
	if answered {
		return nil
	}
	return err
}

func TestRefundTransaction(t *testing.T) {
	c, usdc := inspectBase(t)
	refund := invoice.RefundRecord{ChainKey: c.Key, Token: usdc, From: payer, To: merchant}
	for name, test := range map[string]struct {
		node node
		want chain.TransactionState
	}{
		"unknown":         {node{}, chain.Unknown},
		"it waits":        {node{tx: carrying(usdc, "0x0")}, chain.Queued},
		"reverted":        {node{receipt: receipt(0)}, chain.Failed},
		"it was mined":    {node{receipt: receipt(1, log(usdc, chain.TransferTopic, payer, merchant, 5))}, chain.Mined},
		"another token":   {node{receipt: receipt(1, log(bridged, chain.TransferTopic, payer, merchant, 5))}, chain.Failed},
		"another sender":  {node{receipt: receipt(1, log(usdc, chain.TransferTopic, other, merchant, 5))}, chain.Failed},
		"to another":      {node{receipt: receipt(1, log(usdc, chain.TransferTopic, payer, other, 5))}, chain.Failed},
		"nothing at all":  {node{receipt: receipt(1)}, chain.Failed},
		"among transfers": {node{receipt: receipt(1, log(usdc, chain.TransferTopic, payer, other, 7), log(usdc, chain.TransferTopic, payer, merchant, 5))}, chain.Mined},
	} {
		got, err := chain.NewInspector([]chain.Source{{Chain: c, Node: &test.node}}).RefundTransaction(t.Context(), refund, tx)
		if err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.want)
		}
	}
	for name, test := range map[string]struct {
		nodes several
		want  chain.TransactionState
	}{
		"the second one has it":    {several{{}, {tx: carrying(usdc, "0x0")}}, chain.Queued},
		"only the first one":       {several{{tx: carrying(usdc, "0x0")}, {}}, chain.Queued},
		"one has another receipt":  {several{{receipt: receipt(0)}, {tx: carrying(usdc, "0x0")}}, chain.Queued},
		"one of them is behind":    {several{{receipt: receipt(0)}, {}}, chain.Failed},
		"one of them has mined it": {several{{}, {receipt: receipt(1, log(usdc, chain.TransferTopic, payer, merchant, 5))}}, chain.Mined},
		"one of them fails":        {several{{err: errors.New("down")}, {}}, chain.Unknown},
		"all that answer":          {several{{}, {}}, chain.Unknown},
	} {
		got, err := chain.NewInspector([]chain.Source{{Chain: c, Node: test.nodes}}).RefundTransaction(t.Context(), refund, tx)
		if err != nil || got != test.want {
			t.Errorf("of several nodes, %s: %s, %v; want %s", name, got, err, test.want)
		}
	}
	down := chain.NewInspector([]chain.Source{{Chain: c, Node: several{{err: errors.New("down")}, {err: errors.New("down")}}}})
	expect.Error(t, chain.ErrUnavailable, "no node answers")(down.RefundTransaction(t.Context(), refund, tx))
}

func TestHasWaiting(t *testing.T) {
	c, _ := inspectBase(t)
	for name, test := range map[string]struct {
		node node
		want bool
	}{
		"nothing waits": {node{receipt: `"0x7"`, tx: `"0x7"`}, false},
		"one waits":     {node{receipt: `"0x7"`, tx: `"0x8"`}, true},
		"the nodes lag": {node{receipt: `"0x8"`, tx: `"0x7"`}, false},
	} {
		got, err := chain.NewInspector([]chain.Source{{Chain: c, Node: &test.node}}).HasWaiting(t.Context(), c.Key, payer)
		if err != nil || got != test.want {
			t.Errorf("%s: %t, %v; want %t", name, got, err, test.want)
		}
	}
	idle, busy := &node{receipt: `"0x7"`, tx: `"0x7"`}, &node{receipt: `"0x7"`, tx: `"0x8"`}
	for _, nodes := range []several{{idle, busy}, {busy, idle}, {{err: errors.New("down")}, busy}} {
		if waits, err := chain.NewInspector([]chain.Source{{Chain: c, Node: nodes}}).HasWaiting(t.Context(), c.Key, payer); !waits || err != nil {
			t.Errorf("one waits at a node of several: %t, %v", waits, err)
		}
	}
	down := chain.NewInspector([]chain.Source{{Chain: c, Node: &node{err: errors.New("down")}}})
	for _, key := range []string{c.Key, "mars"} {
		expect.Error(t, chain.ErrUnavailable, "no node of %s answers", key)(down.HasWaiting(t.Context(), key, payer))
	}
}
