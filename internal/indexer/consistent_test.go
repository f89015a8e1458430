package indexer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// spoil changes an object of an answer.
type spoil func(method string, o map[string]any)

// logsIn returns the logs of the receipt in an answer, or nil if it is not a receipt.
func logsIn(o map[string]any) []any {
	logs, _ := o["logs"].([]any)
	return logs
}

// contradictions are ways for a node to give two answers that contradict each other. Block 1 holds two payments of one
// transaction.
var contradictions = map[string]spoil{
	"the receipt lacks the logs": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			o["logs"] = []any{}
		}
	},
	"the receipt lacks one log": func(_ string, o map[string]any) {
		if logs := logsIn(o); len(logs) > 1 {
			o["logs"] = logs[:1]
		}
	},
	"the receipt has another amount": func(_ string, o map[string]any) {
		if logs := logsIn(o); len(logs) > 1 {
			logs[0].(map[string]any)["data"] = "0x" + common.Bytes2Hex(common.LeftPadBytes([]byte{9}, 32))
		}
	},
	"the receipt says that it failed": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			o["status"] = "0x0"
		}
	},
	"the receipt names another block": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			flip(o, "blockHash")
		}
	},
	"the receipt gives its block another number": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			o["blockNumber"] = "0x77"
		}
	},
	"the receipt holds another's log": func(_ string, o map[string]any) {
		if logs := logsIn(o); len(logs) > 1 {
			flip(logs[0].(map[string]any), "transactionHash")
		}
	},
	"the logs lack one of the receipt": nil, // done by contradicting, because the answer is a list
	"the transaction is another's": func(method string, o map[string]any) {
		if method == "eth_getTransactionByHash" {
			o["from"] = common.Address{9}
		}
	},
	"the transaction is another one": func(method string, o map[string]any) {
		if method == "eth_getTransactionByHash" {
			flip(o, "hash")
		}
	},
	"the block is another one": func(method string, o map[string]any) {
		if method == "eth_getBlockByNumber" && o["number"] == "0x1" {
			o["number"] = "0x2"
		}
	},
}

// contradicting returns a node that gives such answers while it is on.
func contradicting(t *testing.T, f *fixture, change spoil, on *atomic.Bool) string {
	t.Helper()
	return tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		a := ask(q)
		if !on.Load() {
			return a
		}
		if logs, ok := a.([]any); ok && change == nil && q.Method == "eth_getLogs" && len(logs) > 1 {
			return logs[:len(logs)-1]
		} else if change == nil {
			return a
		}
		return each(a, func(o map[string]any) { change(q.Method, o) })
	})
}

// mineTwice mines a block with two payments of one transaction, and others on
// top of it.
func mineTwice(f *fixture, others int) {
	f.chain.Mine(chaintest.NewTx(pays(alice, 5), pays(alice, 6)))
	f.chain.MineEmpty(others)
}

// TestContradictionIsQuarantined has the first of two nodes contradict itself,
// near the head and far behind it. Its answers are rejected, it is quarantined, and
// all payments come from the other node.
func TestContradictionIsQuarantined(t *testing.T) {
	for name, change := range contradictions {
		for where, blocks := range map[string]int{"near": 3, "in range": 3 * maxBlocks} {
			f := newFixture(t, nil)
			f.catchUp(t)
			mineTwice(f, blocks)
			var on atomic.Bool
			on.Store(true)
			f.restart(t, nil, contradicting(t, f, change, &on), f.node.URL)
			f.catchUp(t)
			if got := f.ledger.count(invoice.Confirmed); got != 2 || f.ledger.count(invoice.Orphaned) != 0 {
				t.Errorf("%s, %s: %d payments are confirmed, want 2", name, where, got)
			}
			expect.Equal(t, f.state(0), chain.StateQuarantined, "%s, %s: the node is", name, where)
		}
	}
}

// TestContradictionOfTheOnlyNode has the only node contradict itself for a while. The block is not recorded until the
// answers agree.
func TestContradictionOfTheOnlyNode(t *testing.T) {
	for name, change := range contradictions {
		f := newFixture(t, nil)
		var on atomic.Bool
		f.restart(t, nil, contradicting(t, f, change, &on))
		f.catchUp(t)
		mineTwice(f, 3)
		on.Store(true)
		for range 3 {
			if _, err := f.sync(t.Context()); err == nil {
				t.Errorf("%s: the round went well", name)
			}
		}
		f.expect(t, 0, 0, 0, 0, 0)
		on.Store(false)
		f.catchUp(t)
		f.expect(t, 4, 1, 0, 2, 0)
	}
}

// TestContradictionAtTheEnd removes recorded payments from a receipt before they become final: that node can neither
// drop nor confirm the payments.
func TestContradictionAtTheEnd(t *testing.T) {
	for _, name := range []string{"the receipt lacks the logs", "the receipt lacks one log", "the receipt has another amount", "the receipt says that it failed"} {
		f := newFixture(t, nil)
		var on atomic.Bool
		url := contradicting(t, f, contradictions[name], &on)
		f.restart(t, nil, url)
		f.catchUp(t)
		mineTwice(f, 0)
		f.catchUp(t)
		f.chain.MineEmpty(3)
		on.Store(true)
		if _, err := f.sync(t.Context()); err == nil {
			t.Errorf("%s: the round went well", name)
		}
		f.expect(t, 4, 0, 2, 0, 0)
		expect.Equal(t, f.state(0), chain.StateQuarantined, "%s: the node is", name)
		f.restart(t, nil, url, f.node.URL)
		f.catchUp(t)
		f.expect(t, 4, 1, 0, 2, 0)
	}
}

// TestReceiptsContradictReceipts has a node leave a payment out of both its logs and its receipts after it was
// recorded.
func TestReceiptsContradictReceipts(t *testing.T) {
	for others, want := range map[int]struct {
		confirmed int
		state     chain.State
	}{
		0: {0, chain.StateOK},          // there is no other node; it is read again
		1: {0, chain.StateOK},          // one against one
		2: {2, chain.StateQuarantined}, // outvoted
	} {
		f := newFixture(t, nil)
		f.restart(t, func(c *Config) { c.Chain.FullBloom = false })
		f.catchUp(t)
		mineTwice(f, 0)
		f.catchUp(t)
		f.chain.MineEmpty(3)
		silent := tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
			if a := ask(q); q.Method != "eth_getLogs" {
				return each(a, func(o map[string]any) { contradictions["the receipt lacks the logs"](q.Method, o) })
			}
			return []any{}
		})
		urls := append([]string{silent}, slices.Repeat([]string{f.node.URL}, others)...)
		f.restart(t, func(c *Config) { c.Chain.FullBloom = false }, urls...)
		for range 3 {
			if _, err := f.sync(t.Context()); others == 1 != (err != nil) {
				t.Errorf("%d others: %v", others, err)
			}
		}
		expect.Equal(t, f.ledger.count(invoice.Confirmed), want.confirmed, "%d others: payments are confirmed:", others)
		if orphaned := f.ledger.count(invoice.Orphaned); orphaned > 0 != (others == 0) {
			t.Errorf("%d others: %d payments are orphaned", others, orphaned)
		}
		expect.Equal(t, f.state(0), want.state, "%d others: the node is", others)
	}
}

// TestReceiptsMustBeComplete has the only node leave out all logs of a block, also from the block's receipts: such
// receipts are rejected. The payments come from each transaction's receipt or, if the node lost these as well, once it
// has them again.
func TestReceiptsMustBeComplete(t *testing.T) {
	lost := chaintest.Only{Methods: []string{"eth_getTransactionReceipt"}, Fault: chaintest.Null{}}
	for name, receipts := range map[string]chaintest.Fault{
		"none":           chaintest.DropReceipts{},
		"some":           chaintest.DropReceipts{Keep: 1},
		"all but one":    chaintest.DropReceipts{Keep: 2},
		"without logs":   chaintest.DropReceipts{LogsOnly: true},
		"some with logs": chaintest.DropReceipts{Keep: 1, LogsOnly: true},
	} {
		for _, full := range []bool{true, false} {
			for _, single := range []bool{true, false} {
				f := newFixture(t, nil)
				proxy := f.nodes(t, 1, func(c *Config) { c.Chain.FullBloom = full })[0]
				f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five))) // shows that the filters hold logs
				f.catchUp(t)
				faults := []chaintest.Fault{chaintest.DropLogs{}, receipts}
				if !single {
					faults = append(faults, lost)
				}
				proxy.SetFaults(faults...)
				f.chain.Mine(chaintest.NewTx(chaintest.Transfer(other, alice, bob, five)), chaintest.NewTx(pays(alice, 5)), chaintest.NewTx(pays(bob, 6)))
				if single {
					f.catchUp(t)
					f.expect(t, 2, 0, 2, 0, 0)
					continue
				}
				if _, err := f.sync(t.Context()); err == nil {
					t.Errorf("%s, full %t: the block was read", name, full)
				}
				f.expect(t, 1, 0, 0, 0, 0)
				proxy.SetFaults()
				f.catchUp(t)
				f.expect(t, 2, 0, 2, 0, 0)
			}
		}
	}
}

// TestIncompleteReceiptsAreAFailure sees a node cool down after receipts that do not match the
// header. The node does not cool down if the filter lacks logs on a chain with filters that are not
// known to have every log.
func TestIncompleteReceiptsAreAFailure(t *testing.T) {
	f := newFixture(t, nil)
	p := f.cfg.Pool.Nodes()[0]
	b := f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.catchUp(t)
	headers, err := p.Headers(t.Context(), []uint64{b.Number})
	expect.OK(t, err)
	h := headers[0]
	expect.Equal(t, h.Txs, 1, "transactions of the block:")
	h.Bloom[0] = 0 // the filter of another block
	h.Bloom[1] = 1
	_, err = f.blockReceipts(t.Context(), node{p}, h)
	var failed *nodeError
	if !errors.Is(err, errIncomplete) || !errors.As(err, &failed) {
		t.Fatalf("receipts of another block: %v", err)
	}
	failed.report()
	expect.Equal(t, f.state(0), chain.StateBackoff, "the node is")
	f.cfg.Chain.FullBloom = false
	h.Bloom = headers[0].Bloom
	for i := range h.Bloom {
		if h.Bloom[i] != 0 {
			h.Bloom[i] &= h.Bloom[i] - 1 // one bit less than the logs have
			break
		}
	}
	if _, err := f.blockReceipts(context.Background(), node{p}, h); err != nil {
		t.Errorf("a log that the filter lacks: %v", err)
	}
	h.Txs = chain.UnknownTxs
	if _, err := f.blockReceipts(context.Background(), node{p}, h); err != nil {
		t.Errorf("a header without transactions: %v", err)
	}
}

// ledgers is the ledger of a service with two chains.
type ledgers struct {
	*memory         // of this chain
	other   *memory // of the other
	key     string  // of the other
}

func (l ledgers) Cursor(ctx context.Context, key string) (ledger.Progress, error) {
	if key == l.key {
		return l.other.Cursor(ctx, key)
	}
	return l.memory.Cursor(ctx, key)
}

// twin is a fixture of a chain with another key and chain id. Its node reports that id and serves the blocks of f's
// chain.
func twin(t *testing.T, f *fixture) (g *fixture, url string) {
	t.Helper()
	url = tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		if q.Method == "eth_chainId" {
			return "0x63"
		}
		return ask(q)
	})
	g = &fixture{chain: f.chain, node: f.node, ledger: newMemory(merchant)}
	return g, url
}

func twinOf(f *fixture, key string, senior bool) func(*Config) {
	return func(c *Config) {
		c.Chain.ID, c.Chain.Key = 99, "twin"
		c.Ledger = ledgers{c.Ledger.(*memory), f.ledger, key}
		c.Others = []string{key}
		if senior {
			c.Senior = c.Others
		}
	}
}

// TestOneChainUnderTwoKeys makes a node report its own chain id and serve the blocks
// of another chain of the service. No block is recorded.
func TestOneChainUnderTwoKeys(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(9)
	f.catchUp(t)
	for _, begun := range []bool{false, true} {
		g, url := twin(t, f)
		if begun { // before the chain was known to be the other one
			g.restart(t, func(c *Config) { twinOf(f, "test", true)(c); c.Others = nil }, url)
			g.catchUp(t)
			f.chain.Mine()
		}
		before := g.ledger.cursor
		g.restart(t, twinOf(f, "test", begun), url)
		_, err := g.sync(t.Context())
		if !errors.Is(err, chain.ErrMismatch) || !strings.Contains(err.Error(), "chain test under the key twin") {
			t.Errorf("begun %t: got %v, want an ErrMismatch that names both keys", begun, err)
		}
		expect.Equal(t, g.ledger.cursor, before, "begun %t: the cursor moved to", begun)
		expect.Equal(t, g.state(0), chain.StateMisconfigured, "begun %t: the node is", begun)
		// The earlier chain continues.
		f.restart(t, func(c *Config) { c.Ledger, c.Others = ledgers{f.ledger, g.ledger, "twin"}, []string{"twin"} })
		f.chain.Mine()
		f.catchUp(t)
		if got := f.ledger.cursor.Indexed.Number; got != f.chain.Head().Number {
			t.Errorf("begun %t: the other chain is read up to %d", begun, got)
		}
	}
}

// TestOtherChainsAreOther has two chains with different blocks.
func TestOtherChainsAreOther(t *testing.T) {
	f, g := newFixture(t, nil), newFixture(t, nil)
	f.chain.MineEmpty(9)
	f.catchUp(t)
	now := time.Now()
	g.chain.Mine()
	g.chain.Fork(1)      // the chains differ from here on
	g.chain.MineEmpty(3) // fewer blocks than the other chain has final ones
	g.restart(t, func(c *Config) {
		twinOf(f, "test", true)(c)
		c.Chain.ID, c.Now = testChain.ID, func() time.Time { return now }
	})
	for range 3 {
		g.catchUp(t)
		g.chain.MineEmpty(3)
		now = now.Add(distinctEvery)
	}
	g.catchUp(t)
	expect.Equal(t, g.ledger.cursor.Indexed.Number, 12, "read up to block")
}

// question is a JSON-RPC call that is forwarded to a node.
type question struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
}

// tamperingProxy is a proxy of a node with a function that answers instead of the node. The function may ask the node.
// tamperingProxy returns the proxy's URL.
func tamperingProxy(t *testing.T, node http.Handler, answer func(q question, ask func(question) any) any) string {
	t.Helper()
	ask := func(q question) any {
		body, err := json.Marshal(q)
		expect.NoError(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		node.ServeHTTP(w, r)
		var reply struct{ Result any }
		expect.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
		return reply.Result
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		reply := func(q question) map[string]any {
			a := map[string]any{"jsonrpc": "2.0", "id": q.ID}
			result := answer(q, ask)
			if err, ok := result.(error); ok {
				a["error"] = map[string]any{"code": -32000, "message": err.Error()}
			} else {
				a["result"] = result
			}
			return a
		}
		var q question
		var batch []question
		var answers any
		if json.Unmarshal(body, &q) == nil {
			answers = reply(q)
		} else if err := json.Unmarshal(body, &batch); err == nil {
			var all []any
			for _, q := range batch {
				all = append(all, reply(q))
			}
			answers = all
		}
		w.Header().Set("Content-Type", "application/json")
		if json.NewEncoder(w).Encode(answers) != nil {
			return // the client is gone
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// each calls change for every object in an answer.
func each(answer any, change func(o map[string]any)) any {
	switch v := answer.(type) {
	case []any:
		for _, e := range v {
			each(e, change)
		}
	case map[string]any:
		for _, e := range v {
			each(e, change)
		}
		change(v)
	}
	return answer
}

// flip changes a hash in an object, if it is there.
func flip(o map[string]any, member string) {
	if hash, ok := o[member].(string); ok && len(hash) == 66 {
		o[member] = "0xff" + hash[4:]
	}
}

// parse reads a number as JSON-RPC has it.
func parse(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := hexutil.DecodeUint64(s)
	expect.NoError(t, err)
	return n
}
