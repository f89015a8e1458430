package inspect_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/inspect"
	"github.com/quittance/quittance/internal/invoice"
)

// several are the nodes of a chain.
type several []*node

func (s several) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return s[0].BatchCallContext(ctx, batch)
}

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
	c, usdc := base(t)
	refund := invoice.RefundRecord{ChainKey: c.Key, Token: usdc, From: payer, To: merchant}
	for name, test := range map[string]struct {
		node node
		want inspect.State
	}{
		"unknown":         {node{}, inspect.Unknown},
		"it waits":        {node{tx: carrying(usdc, "0x0")}, inspect.Queued},
		"reverted":        {node{receipt: receipt(0)}, inspect.Failed},
		"it was mined":    {node{receipt: receipt(1, log(usdc, chain.TransferTopic, payer, merchant, 5))}, inspect.Mined},
		"another token":   {node{receipt: receipt(1, log(bridged, chain.TransferTopic, payer, merchant, 5))}, inspect.Failed},
		"another sender":  {node{receipt: receipt(1, log(usdc, chain.TransferTopic, other, merchant, 5))}, inspect.Failed},
		"to another":      {node{receipt: receipt(1, log(usdc, chain.TransferTopic, payer, other, 5))}, inspect.Failed},
		"nothing at all":  {node{receipt: receipt(1)}, inspect.Failed},
		"among transfers": {node{receipt: receipt(1, log(usdc, chain.TransferTopic, payer, other, 7), log(usdc, chain.TransferTopic, payer, merchant, 5))}, inspect.Mined},
	} {
		got, err := inspect.New([]inspect.Source{{Chain: c, Node: &test.node}}).RefundTransaction(t.Context(), refund, tx)
		if err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.want)
		}
	}
	for name, test := range map[string]struct {
		nodes several
		want  inspect.State
	}{
		"the second one has it":    {several{{}, {tx: carrying(usdc, "0x0")}}, inspect.Queued},
		"only the first one":       {several{{tx: carrying(usdc, "0x0")}, {}}, inspect.Queued},
		"one has another receipt":  {several{{receipt: receipt(0)}, {tx: carrying(usdc, "0x0")}}, inspect.Queued},
		"one of them is behind":    {several{{receipt: receipt(0)}, {}}, inspect.Failed},
		"one of them has mined it": {several{{}, {receipt: receipt(1, log(usdc, chain.TransferTopic, payer, merchant, 5))}}, inspect.Mined},
		"one of them fails":        {several{{err: errors.New("down")}, {}}, inspect.Unknown},
		"all that answer":          {several{{}, {}}, inspect.Unknown},
	} {
		got, err := inspect.New([]inspect.Source{{Chain: c, Node: test.nodes}}).RefundTransaction(t.Context(), refund, tx)
		if err != nil || got != test.want {
			t.Errorf("of several nodes, %s: %s, %v; want %s", name, got, err, test.want)
		}
	}
	down := inspect.New([]inspect.Source{{Chain: c, Node: several{{err: errors.New("down")}, {err: errors.New("down")}}}})
	if _, err := down.RefundTransaction(t.Context(), refund, tx); !errors.Is(err, inspect.ErrUnavailable) {
		t.Errorf("no node answers: %v", err)
	}
}

func TestHasWaiting(t *testing.T) {
	c, _ := base(t)
	for name, test := range map[string]struct {
		node node
		want bool
	}{
		"nothing waits": {node{receipt: `"0x7"`, tx: `"0x7"`}, false},
		"one waits":     {node{receipt: `"0x7"`, tx: `"0x8"`}, true},
		"the nodes lag": {node{receipt: `"0x8"`, tx: `"0x7"`}, false},
	} {
		got, err := inspect.New([]inspect.Source{{Chain: c, Node: &test.node}}).HasWaiting(t.Context(), c.Key, payer)
		if err != nil || got != test.want {
			t.Errorf("%s: %t, %v; want %t", name, got, err, test.want)
		}
	}
	idle, busy := &node{receipt: `"0x7"`, tx: `"0x7"`}, &node{receipt: `"0x7"`, tx: `"0x8"`}
	for _, nodes := range []several{{idle, busy}, {busy, idle}, {{err: errors.New("down")}, busy}} {
		if waits, err := inspect.New([]inspect.Source{{Chain: c, Node: nodes}}).HasWaiting(t.Context(), c.Key, payer); !waits || err != nil {
			t.Errorf("one waits at a node of several: %t, %v", waits, err)
		}
	}
	down := inspect.New([]inspect.Source{{Chain: c, Node: &node{err: errors.New("down")}}})
	for _, key := range []string{c.Key, "mars"} {
		if _, err := down.HasWaiting(t.Context(), key, payer); !errors.Is(err, inspect.ErrUnavailable) {
			t.Errorf("no node of %s answers: %v", key, err)
		}
	}
}
