package chain_test

import (
	"errors"
	"fmt"
	"math/big"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
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
		expect.OK(rt, err)
		if got := chain.SafeTransactionHash(chainID, safe, to, data, nonce); got != invoice.Hash(want) {
			rt.Errorf("hash %s, want 0x%x", got, want)
		}
	})
}

// safeNode is a node that answers about the account of a refund's sender. The answers to nonce() are hexadecimal; an
// empty one is an error with the node's code and text.
type safeNode struct {
	code          string
	latest, final string
	refusal       refusal
	failing       bool          // refuses calls of other contracts, too
	refusals      *atomic.Int64 // how often it refuses nonce() before it answers; nil for never
	asked         *atomic.Int64
}

// refusal is a node's error answer.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string  { return r.text }
func (r refusal) ErrorCode() int { return r.code }

var reverts, pruned = refusal{3, "execution reverted"}, refusal{-32000, "missing trie node"}

// safeAPI holds the methods of the node's eth namespace.
type safeAPI struct{ safeNode }

// ChainId answers eth_chainId.
func (safeAPI) ChainId() hexutil.Uint64 { return 5 }

// GetCode answers eth_getCode.
func (a safeAPI) GetCode(common.Address, string) (hexutil.Bytes, error) { return a.answer(a.code) }

// Call answers eth_call.
func (a safeAPI) Call(call struct{ To, Data string }, at any) (hexutil.Bytes, error) {
	final := map[string]any{"blockHash": through.Hash.String(), "requireCanonical": true}
	switch {
	case call.Data == "0x313ce567" && at == "latest":
		if a.failing {
			return a.answer("")
		}
		return a.answer(nonceAnswer(6))
	case !strings.EqualFold(call.To, merchant.String()) || call.Data != "0xaffed0e0":
		return nil, fmt.Errorf("called %+v", call)
	case at == "latest" && a.refusals != nil && a.refusals.Add(-1) >= 0:
		return a.answer("")
	case at == "latest":
		return a.answer(a.latest)
	case at == "0x5" || reflect.DeepEqual(at, final):
		return a.answer(a.final)
	}
	return nil, fmt.Errorf("called at %v", at)
}

func (a safeAPI) answer(text string) (hexutil.Bytes, error) {
	if a.asked != nil {
		a.asked.Add(1)
	}
	if text == "" {
		return nil, a.refusal
	}
	return hexutil.Decode(text)
}

// through is the last final block that is read.
var through = invoice.Header{Number: 5, Hash: invoice.Hash{0x55}}

// inspectSafe returns an inspector with a pool of nodes, and the refund that it is asked about.
func inspectSafe(t *testing.T, nodes ...safeNode) (*chain.Inspector, invoice.RefundRecord) {
	t.Helper()
	var urls []string
	for _, n := range nodes {
		urls = append(urls, serveSafe(t, n))
	}
	c, usdc := inspectBase(t)
	c.ID = 5
	return chain.NewInspector([]chain.Source{{Chain: c, Node: checked(t, start(), urls...).Requests()}}), safeRefund(c, usdc)
}

// serveSafe serves a node, and returns its URL.
func serveSafe(t *testing.T, n safeNode) string {
	t.Helper()
	server := rpc.NewServer()
	expect.OK(t, server.RegisterName("eth", safeAPI{n}))
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	return listener.URL
}

// safeRefund is a refund that a Safe sends.
func safeRefund(c chain.Chain, token invoice.Address) invoice.RefundRecord {
	return invoice.RefundRecord{ChainKey: c.Key, Token: token, From: merchant, To: payer, Amount: invoice.NewAmount(5), Tag: invoice.Hash{7}}
}

// safeCode is the code of a contract.
const safeCode = "0x60806040"

// nonceAnswer is what a Safe answers to nonce().
func nonceAnswer(n uint64) string { return common.BigToHash(new(big.Int).SetUint64(n)).String() }

// safeAt is a node of a Safe with the numbers of its next transactions at the newest and at the final block.
func safeAt(latest, final uint64) safeNode {
	return safeNode{code: safeCode, latest: nonceAnswer(latest), final: nonceAnswer(final)}
}

func TestSafeTransaction(t *testing.T) {
	t.Parallel()
	_, r := inspectSafe(t, safeNode{})
	tagged := common.FromHex(chain.TaggedTransfer(r.To, r.Amount, r.Tag))
	signed := func(data []byte, nonce uint64) invoice.Hash {
		return chain.SafeTransactionHash(5, r.From, r.Token, data, nonce)
	}
	type nodes = []safeNode
	word, seventh, foreign, delegates := nonceAnswer, signed(tagged, 7), invoice.Hash{9}, "0xef0100"+nonceAnswer(0)[26:]
	down, refusedOnce := safeNode{failing: true, refusal: refusal{-32603, "down"}}, safeAt(7, 7)
	refusedOnce.refusal, refusedOnce.refusals = refusal{-32000, "execution reverted"}, new(atomic.Int64)
	refusedOnce.refusals.Store(1)
	for name, test := range map[string]struct {
		hash  invoice.Hash
		nodes nodes
		want  chain.SafeState
		nonce uint64
	}{
		"a key":                               {foreign, nodes{{code: "0x"}}, chain.SafeNone, 0},
		"a key, and old states are gone":      {foreign, nodes{{code: "0x", refusal: pruned}}, chain.SafeNone, 0},
		"a key that delegates":                {foreign, nodes{{code: delegates, latest: "0x"}}, chain.SafeNone, 0},
		"a key that delegates to a Safe":      {seventh, nodes{{code: delegates, latest: word(7)}}, chain.SafeWaiting, 7},
		"a key that delegated to a Safe":      {seventh, nodes{{code: delegates, latest: "0x"}}, chain.SafeUnknown, 0},
		"a Safe that is not deployed":         {seventh, nodes{{code: "0x"}}, chain.SafeWaiting, 7},
		"next":                                {seventh, nodes{safeAt(7, 7)}, chain.SafeWaiting, 7},
		"next, and old states are gone":       {seventh, nodes{{code: safeCode, latest: word(7), refusal: pruned}}, chain.SafeWaiting, 7},
		"after others":                        {seventh, nodes{safeAt(4, 4)}, chain.SafeWaiting, 7},
		"without the tag":                     {signed(tagged[:68], 7), nodes{safeAt(7, 7)}, chain.SafeWaiting, 7},
		"used just now":                       {seventh, nodes{safeAt(8, 7)}, chain.SafeSettling, 7},
		"used":                                {seventh, nodes{safeAt(8, 8)}, chain.SafeUsed, 7},
		"used long ago":                       {seventh, nodes{safeAt(4103, 4103)}, chain.SafeUsed, 7},
		"too long ago":                        {seventh, nodes{safeAt(4104, 4104)}, chain.SafeUnknown, 0},
		"the last of the queue":               {signed(tagged, 1030), nodes{safeAt(7, 7)}, chain.SafeWaiting, 1030},
		"beyond the queue":                    {signed(tagged, 1031), nodes{safeAt(7, 7)}, chain.SafeUnknown, 0},
		"another call":                        {signed(tagged[1:], 7), nodes{safeAt(7, 7)}, chain.SafeUnknown, 0},
		"no hash":                             {invoice.Hash{}, nodes{safeAt(7, 7)}, chain.SafeUnknown, 0},
		"no Safe":                             {seventh, nodes{{code: safeCode, latest: "0x", final: "0x"}}, chain.SafeUnknown, 0},
		"no sensible number":                  {seventh, nodes{{code: safeCode, latest: word(1 << 40), final: word(1 << 40)}}, chain.SafeUnknown, 0},
		"reverted":                            {seventh, nodes{{code: safeCode, refusal: reverts}}, chain.SafeUnknown, 0},
		"reverted, with another code":         {seventh, nodes{{code: safeCode, refusal: refusal{-32603, "VM Exception: revert"}}}, chain.SafeUnknown, 0},
		"refused in other words":              {seventh, nodes{{code: safeCode, refusal: refusal{-32603, "no"}}}, chain.SafeUnknown, 0},
		"one refuses, and one does not":       {seventh, nodes{safeAt(8, 8), {code: safeCode, refusal: refusal{-32603, "no"}}}, chain.SafeUnknown, 0},
		"refused once":                        {seventh, nodes{refusedOnce}, chain.SafeWaiting, 7},
		"no old state":                        {seventh, nodes{{code: safeCode, latest: word(8), refusal: pruned}}, chain.SafeUnknown, 7},
		"not deployed in final blocks":        {seventh, nodes{{code: safeCode, latest: word(8), final: "0x"}}, chain.SafeUnknown, 7},
		"one node is down":                    {seventh, nodes{down, safeAt(8, 8)}, chain.SafeUnknown, 7},
		"one is down, and one knows it waits": {seventh, nodes{down, safeAt(7, 7)}, chain.SafeWaiting, 7},
		"one has no old state":                {seventh, nodes{safeAt(8, 8), {code: safeCode, latest: word(8), refusal: pruned}}, chain.SafeUnknown, 7},
		"one of three has no old state":       {seventh, nodes{safeAt(8, 8), {code: safeCode, latest: word(8), refusal: pruned}, safeAt(8, 8)}, chain.SafeUsed, 7},
		"two know that it is used":            {seventh, nodes{safeAt(8, 8), safeAt(9, 8)}, chain.SafeUsed, 7},
		"one of three knows that it waits":    {seventh, nodes{safeAt(8, 8), safeAt(7, 7), safeAt(8, 8)}, chain.SafeWaiting, 7},
		"one knows that it waits":             {seventh, nodes{safeAt(8, 8), {code: safeCode, latest: word(7), refusal: pruned}}, chain.SafeWaiting, 7},
		"one knows that it is new":            {seventh, nodes{safeAt(8, 7), safeAt(8, 8)}, chain.SafeSettling, 7},
		"one sees no Safe":                    {seventh, nodes{safeAt(8, 8), {code: safeCode, latest: "0x", final: "0x"}}, chain.SafeUnknown, 0},
		"one sees no code":                    {seventh, nodes{{code: "0x", latest: "0x"}, safeAt(7, 7)}, chain.SafeWaiting, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, _ := inspectSafe(t, test.nodes...)
			got, err := i.SafeTransaction(of(t, "acme"), r, test.hash, through)
			if want := (chain.SafeReport{State: test.want, Nonce: test.nonce, Spent: test.want == chain.SafeUnknown && test.nonce > 0}); err != nil || got.Judge(true) != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		})
	}
	for name, nodes := range map[string]nodes{
		"down": {down}, "no code is read": {{latest: word(7), final: word(7), refusal: pruned}},
		"no number is read":         {{code: safeCode, failing: true, refusal: refusal{-32603, "internal error"}}},
		"no call is answered":       {{code: safeCode, failing: true, refusal: refusal{-32000, "execution reverted"}}},
		"too often":                 {{code: safeCode, refusal: refusal{-32005, "limit exceeded"}}},
		"too often, for old states": {{code: safeCode, latest: word(8), refusal: refusal{-32005, "limit exceeded"}}},
	} {
		i, _ := inspectSafe(t, nodes...)
		if got, err := i.SafeTransaction(of(t, "acme"), r, seventh, through); !errors.Is(err, chain.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for at, want := range map[invoice.Header]chain.SafeState{{}: chain.SafeSettling, {Number: 5}: chain.SafeUsed, {Number: 5, Hash: invoice.Hash{1}}: chain.SafeUnknown} {
		i, _ := inspectSafe(t, safeAt(8, 8))
		if got, err := i.SafeTransaction(of(t, "acme"), r, seventh, at); err != nil || got.Judge(true).State != want {
			t.Errorf("read through %+v: %+v, %v; want %s", at, got, err, want)
		}
	}
}

// TestSafeJudge tests each pair of reports, by two nodes of a chain of two or more, or by one and a node that fails.
func TestSafeJudge(t *testing.T) {
	t.Parallel()
	const unproved = chain.SafeState("unproved")
	rank := []chain.SafeState{chain.SafeNone, unproved, chain.SafeUsed, chain.SafeUnknown, chain.SafeSettling, chain.SafeWaiting}
	for i, first := range rank {
		for j, second := range rank {
			for _, failed := range []bool{false, true} {
				for _, noticed := range []bool{false, true} {
					want := rank[max(i, j)]
					proved := first == second && !failed && noticed
					if want == unproved || want == chain.SafeUsed && !proved {
						want = chain.SafeUnknown
					}
					a := chain.SafeAnswers{Nodes: 2 + i%2, Reports: []chain.SafeReport{{State: first}, {State: second}}, Failed: failed}
					if got := a.Judge(noticed); got.State != want {
						t.Errorf("%+v, noticed %t: %s, want %s", a, noticed, got.State, want)
					}
				}
			}
		}
	}
	for nodes, want := range map[int]chain.SafeState{1: chain.SafeUsed, 2: chain.SafeUnknown, 3: chain.SafeUnknown} {
		a := chain.SafeAnswers{Nodes: nodes, Reports: []chain.SafeReport{{State: chain.SafeUsed}}}
		if got := a.Judge(true); got.State != want {
			t.Errorf("one of %d nodes reports it: %s, want %s", nodes, got.State, want)
		}
	}
}

// TestSafeUsableNodes has nodes of which only one is usable. The other one is a second source that could contradict it.
func TestSafeUsableNodes(t *testing.T) {
	t.Parallel()
	at, nodes := start(), []string{serveSafe(t, safeAt(8, 8)), serveSafe(t, safeAt(8, 8))}
	p := checked(t, at, nodes...)
	c, usdc := inspectBase(t)
	c.ID = 5
	i, r := chain.NewInspector([]chain.Source{{Chain: c, Node: p.Requests()}}), safeRefund(c, usdc)
	hash := chain.SafeTransactionHash(5, r.From, r.Token, common.FromHex(chain.TaggedTransfer(r.To, r.Amount, r.Tag)), 7)
	if got, err := i.SafeTransaction(of(t, "acme"), r, hash, through); err != nil || got.Judge(true).State != chain.SafeUsed {
		t.Errorf("by two nodes: %+v, %v", got, err)
	}
	p.Nodes()[1].ReportFailure(coded(-32603))
	if got, err := i.SafeTransaction(of(t, "globex"), r, hash, through); err != nil || got.Judge(true) != (chain.SafeReport{State: chain.SafeUnknown, Nonce: 7, Spent: true}) {
		t.Errorf("while one node is in backoff: %+v, %v", got, err)
	}
}

// TestSafeCalls has many nodes, with the budget of the defaults.
func TestSafeCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node safeNode
		hash invoice.Hash
		want int64 // calls of a node
	}{
		"a key":                     {safeNode{code: "0x"}, invoice.Hash{9}, 1},
		"without a hash":            {safeAt(7, 7), invoice.Hash{}, 1},
		"a Safe's hash that waits":  {safeAt(1, 1), invoice.Hash{9}, 2},
		"a Safe's hash that is old": {safeAt(8, 8), invoice.Hash{}, 3},
		"a contract that reverts":   {safeNode{code: safeCode, refusal: reverts}, invoice.Hash{9}, 4},
	} {
		for _, n := range []int{1, 5, 9} {
			var asked atomic.Int64
			test.node.asked = &asked
			i, r := inspectSafe(t, slices.Repeat([]safeNode{test.node}, n)...)
			if test.want == 3 {
				test.hash = chain.SafeTransactionHash(5, r.From, r.Token, common.FromHex(chain.TaggedTransfer(r.To, r.Amount, r.Tag)), 7)
			}
			ctx := of(t, "acme")
			if _, err := i.SafeTransaction(ctx, r, test.hash, through); err != nil || asked.Load() != test.want*int64(n) {
				t.Errorf("%s: %d calls of %d nodes, %v; want %d of each", name, asked.Load(), n, err, test.want)
			}
			var exceeded *limits.ExceededError
			if _, err := i.RefundTransaction(ctx, r.ChainKey, invoice.Hash{9}, 0); errors.As(err, &exceeded) {
				t.Errorf("%s: of %d nodes, the next question of the request is refused: %v", name, n, err)
			}
		}
	}
}
