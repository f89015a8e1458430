package chain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

// several are the nodes of a chain.
type several []*node

func (s several) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return s[0].BatchCallContext(ctx, batch)
}

func (s several) Nodes() int { return len(s) }

func (s several) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) (all bool, err error) {
	answered := 0
	for _, n := range s {
		failed := ask(ctx, n)
		if failed == nil {
			answered++
		}
		err = errors.Join(err, failed)
	}
	if answered > 0 {
		err = nil
	}
	return answered == len(s), err
}

// oneOfTwo is one node of a chain with two, of which the other one is not asked.
type oneOfTwo struct{ *node }

func (oneOfTwo) Nodes() int { return 2 }

func TestRefundTransaction(t *testing.T) {
	c, usdc := inspectBase(t)
	const block = 9 // of the receipts
	down, waits := &node{err: errors.New("down")}, &node{tx: carrying(usdc, "0x0")}
	sent, reverted := &node{receipt: receipt(1, log(usdc, chain.TransferTopic, payer, merchant, 5))}, &node{receipt: receipt(0)}
	for name, test := range map[string]struct {
		nodes   chain.TransactionNode
		through uint64
		want    chain.TransactionState
		err     error
	}{
		"unknown":                    {several{{}}, block, chain.Unknown, nil},
		"it waits":                   {several{waits}, block, chain.Queued, nil},
		"reverted":                   {several{reverted}, block, chain.Settled, nil},
		"mined":                      {several{sent}, block, chain.Settled, nil},
		"reverted, not final":        {several{reverted}, block - 1, chain.Mined, nil},
		"mined, not final":           {several{sent}, block - 1, chain.Mined, nil},
		"mined, no block is read":    {several{sent}, 0, chain.Mined, nil},
		"the second one has it":      {several{{}, waits}, block, chain.Queued, nil},
		"only the first one":         {several{waits, {}}, block, chain.Queued, nil},
		"one has another receipt":    {several{reverted, waits}, block, chain.Queued, nil},
		"one lacks a final block":    {several{reverted, {}}, block, chain.Unknown, nil},
		"one lacks a block":          {several{reverted, {}}, block - 1, chain.Mined, nil},
		"all have it":                {several{reverted, sent}, block, chain.Settled, nil},
		"all lack it":                {several{{}, {}}, block, chain.Unknown, nil},
		"one fails, the other lacks": {several{down, {}}, block, chain.Unknown, chain.ErrIncomplete},
		"one of three fails":         {several{{}, {}, down}, block, chain.Unknown, chain.ErrIncomplete},
		"one fails, it reverted":     {several{down, reverted}, block, chain.Settled, chain.ErrIncomplete},
		"one fails, it waits":        {several{down, waits}, block, chain.Queued, nil},
		"one fails, it is not final": {several{down, reverted}, block - 1, chain.Mined, nil},
		"one is not asked":           {oneOfTwo{&node{}}, block, chain.Unknown, chain.ErrIncomplete},
		"one is not asked, it waits": {oneOfTwo{waits}, block, chain.Queued, nil},
	} {
		got, err := chain.NewInspector([]chain.Source{{Chain: c, Node: test.nodes}}).RefundTransaction(t.Context(), c.Key, tx, test.through)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %s, %v; want %s, %v", name, got, err, test.want, test.err)
		}
	}
	gone := chain.NewInspector([]chain.Source{{Chain: c, Node: several{down, down}}})
	expect.Error(t, chain.ErrUnavailable, "no node answers")(gone.RefundTransaction(t.Context(), c.Key, tx, block))
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
	for _, nodes := range []chain.TransactionNode{several{{err: errors.New("down")}, idle}, oneOfTwo{idle}} {
		i := chain.NewInspector([]chain.Source{{Chain: c, Node: nodes}})
		expect.Error(t, chain.ErrIncomplete, "one waits maybe at the other node")(i.HasWaiting(t.Context(), c.Key, payer))
	}
	down := chain.NewInspector([]chain.Source{{Chain: c, Node: &node{err: errors.New("down")}}})
	for _, key := range []string{c.Key, "mars"} {
		expect.Error(t, chain.ErrUnavailable, "no node of %s answers", key)(down.HasWaiting(t.Context(), key, payer))
	}
}
