package inspect_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/inspect"
	"github.com/quittance/quittance/internal/invoice"
)

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
	down := inspect.New([]inspect.Source{{Chain: c, Node: &node{err: errors.New("down")}}})
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
	down := inspect.New([]inspect.Source{{Chain: c, Node: &node{err: errors.New("down")}}})
	for _, key := range []string{c.Key, "mars"} {
		if _, err := down.HasWaiting(t.Context(), key, payer); !errors.Is(err, inspect.ErrUnavailable) {
			t.Errorf("no node of %s answers: %v", key, err)
		}
	}
}
