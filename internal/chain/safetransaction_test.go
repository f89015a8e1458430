package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// TestSafeTransactionHash compares hashes with those of go-ethereum. TestExtraSafe compares one with a Safe's.
func TestSafeTransactionHash(t *testing.T) {
	t.Parallel()
	field := func(name, kind string) apitypes.Type { return apitypes.Type{Name: name, Type: kind} }
	types := apitypes.Types{
		"EIP712Domain": {field("chainId", "uint256"), field("verifyingContract", "address")},
		"SafeTx": {
			field("to", "address"), field("value", "uint256"), field("data", "bytes"), field("operation", "uint8"), field("safeTxGas", "uint256"),
			field("baseGas", "uint256"), field("gasPrice", "uint256"), field("gasToken", "address"), field("refundReceiver", "address"), field("nonce", "uint256"),
		},
	}
	rapid.Check(t, func(rt *rapid.T) {
		chainID, nonce := rapid.Uint64().Draw(rt, "chain id"), rapid.Uint64().Draw(rt, "nonce")
		bytesOf := func(n int, name string) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(rt, name) }
		safe, to, data := invoice.Address(bytesOf(20, "Safe")), invoice.Address(bytesOf(20, "to")), rapid.SliceOf(rapid.Byte()).Draw(rt, "data")
		want, _, err := apitypes.TypedDataAndHash(apitypes.TypedData{
			Types: types, PrimaryType: "SafeTx",
			Domain: apitypes.TypedDataDomain{ChainId: (*math.HexOrDecimal256)(new(big.Int).SetUint64(chainID)), VerifyingContract: safe.String()},
			Message: apitypes.TypedDataMessage{
				"to": to.String(), "value": "0", "data": hexutil.Encode(data), "operation": "0", "safeTxGas": "0", "baseGas": "0", "gasPrice": "0",
				"gasToken": common.Address{}.String(), "refundReceiver": common.Address{}.String(), "nonce": new(big.Int).SetUint64(nonce).String(),
			},
		})
		if err != nil {
			rt.Fatal(err)
		}
		if got := chain.SafeTransactionHash(chainID, safe, to, data, nonce); got != invoice.Hash(want) {
			rt.Errorf("hash %s, want 0x%x", got, want)
		}
	})
}

// safeNode answers about the account of a refund's sender. The answers to nonce() are quoted, or errors.
type safeNode struct {
	code          string
	latest, final string
	err           error
}

const through = 5 // last final block

func (n safeNode) BatchCallContext(_ context.Context, batch []rpc.BatchElem) error {
	if n.err != nil {
		return n.err
	}
	for i, elem := range batch {
		answer := map[string]string{"eth_getCode latest": n.code, "eth_call latest": n.latest, "eth_call 0x5": n.final}[fmt.Sprint(elem.Method, " ", elem.Args[1])]
		if answer == "" {
			batch[i].Error = errors.New("missing trie node")
			continue
		}
		if err := json.Unmarshal([]byte(`"`+answer+`"`), elem.Result); err != nil {
			return err
		}
	}
	return nil
}

// safeNodes are the nodes of a chain.
type safeNodes []safeNode

func (s safeNodes) BatchCallContext(context.Context, []rpc.BatchElem) error {
	return errors.New("only one node was asked")
}

func (s safeNodes) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) (err error) {
	for _, n := range s {
		failed := ask(ctx, n)
		if failed == nil {
			defer func() { err = nil }()
		}
		err = errors.Join(err, failed)
	}
	return err
}

func TestSafeTransaction(t *testing.T) {
	t.Parallel()
	c, usdc := inspectBase(t)
	r := invoice.RefundRecord{ChainKey: c.Key, Token: usdc, From: merchant, To: payer, Amount: invoice.NewAmount(5), Tag: invoice.Hash{7}}
	tagged := common.FromHex(chain.TaggedTransfer(r.To, r.Amount, r.Tag))
	signed := func(data []byte, nonce uint64) invoice.Hash {
		return chain.SafeTransactionHash(c.ID, r.From, r.Token, data, nonce)
	}
	word := func(n uint64) string { return common.BigToHash(new(big.Int).SetUint64(n)).String() }
	const code = "0x60806040"
	next := func(latest, final uint64) safeNode {
		return safeNode{code: code, latest: word(latest), final: word(final)}
	}
	for name, test := range map[string]struct {
		hash  invoice.Hash
		nodes safeNodes
		want  chain.SafeState
		nonce uint64
	}{
		"no code":                      {signed(tagged, 7), safeNodes{{code: "0x"}}, chain.SafeNone, 0},
		"a key that delegates":         {signed(tagged, 7), safeNodes{{code: "0xef0100" + word(0)[26:]}}, chain.SafeNone, 0},
		"next":                         {signed(tagged, 7), safeNodes{next(7, 7)}, chain.SafeWaiting, 7},
		"after others":                 {signed(tagged, 7), safeNodes{next(4, 4)}, chain.SafeWaiting, 7},
		"without the tag":              {signed(tagged[:68], 7), safeNodes{next(7, 7)}, chain.SafeWaiting, 7},
		"used just now":                {signed(tagged, 7), safeNodes{next(8, 7)}, chain.SafeSettling, 7},
		"used":                         {signed(tagged, 7), safeNodes{next(8, 8)}, chain.SafeUsed, 7},
		"used long ago":                {signed(tagged, 7), safeNodes{next(4103, 4103)}, chain.SafeUsed, 7},
		"too long ago":                 {signed(tagged, 7), safeNodes{next(4104, 4104)}, chain.SafeUnknown, 0},
		"the last of the queue":        {signed(tagged, 1030), safeNodes{next(7, 7)}, chain.SafeWaiting, 1030},
		"beyond the queue":             {signed(tagged, 1031), safeNodes{next(7, 7)}, chain.SafeUnknown, 0},
		"another call":                 {signed(tagged[1:], 7), safeNodes{next(7, 7)}, chain.SafeUnknown, 0},
		"no hash":                      {invoice.Hash{}, safeNodes{next(7, 7)}, chain.SafeUnknown, 0},
		"no Safe":                      {signed(tagged, 7), safeNodes{{code: code, latest: "0x", final: "0x"}}, chain.SafeUnknown, 0},
		"no sensible number":           {signed(tagged, 7), safeNodes{{code: code, latest: word(1 << 40), final: word(1 << 40)}}, chain.SafeUnknown, 0},
		"reverted":                     {signed(tagged, 7), safeNodes{{code: code}}, chain.SafeUnknown, 0},
		"no old state":                 {signed(tagged, 7), safeNodes{{code: code, latest: word(8)}}, chain.SafeUnknown, 7},
		"not deployed in final blocks": {signed(tagged, 7), safeNodes{{code: code, latest: word(8), final: "0x"}}, chain.SafeUnknown, 7},
		"one node is down":             {signed(tagged, 7), safeNodes{{err: errors.New("down")}, next(8, 8)}, chain.SafeUsed, 7},
		"one has no old state":         {signed(tagged, 7), safeNodes{next(8, 8), {code: code, latest: word(8)}}, chain.SafeUsed, 7},
		"one knows that it waits":      {signed(tagged, 7), safeNodes{next(8, 8), next(7, 7)}, chain.SafeWaiting, 7},
		"one knows that it is new":     {signed(tagged, 7), safeNodes{next(8, 7), next(8, 8)}, chain.SafeSettling, 7},
		"one sees no Safe":             {signed(tagged, 7), safeNodes{next(8, 8), {code: code, latest: "0x", final: "0x"}}, chain.SafeUnknown, 0},
		"one sees no code":             {signed(tagged, 7), safeNodes{{code: "0x"}, next(7, 7)}, chain.SafeWaiting, 7},
	} {
		got, err := chain.NewInspector([]chain.Source{{Chain: c, Node: test.nodes}}).SafeTransaction(t.Context(), r, test.hash, through)
		if want := (chain.SafeReport{State: test.want, Nonce: test.nonce}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	for name, nodes := range map[string]safeNodes{"down": {{err: errors.New("down")}}, "no code is read": {{latest: word(7), final: word(7)}}} {
		if got, err := chain.NewInspector([]chain.Source{{Chain: c, Node: nodes}}).SafeTransaction(t.Context(), r, signed(tagged, 7), through); !errors.Is(err, chain.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
