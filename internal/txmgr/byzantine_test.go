package txmgr

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// byzantine is a node that falsifies a number of answers; a negative number means all.
type byzantine struct {
	Client
	method string
	mutate func(answer any, args []any) bool // returns whether it changed the answer
	times  int
}

func (l *byzantine) falsify(method string, answer any, args []any) {
	if method == l.method && l.times != 0 && l.mutate(answer, args) {
		l.times--
	}
}

func (l *byzantine) CallContext(ctx context.Context, result any, method string, args ...any) error {
	err := l.Client.CallContext(ctx, result, method, args...)
	l.falsify(method, result, args)
	return err
}

func (l *byzantine) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	err := l.Client.BatchCallContext(ctx, batch)
	for _, elem := range batch {
		l.falsify(elem.Method, elem.Result, elem.Args)
	}
	return err
}

// value returns a change that replaces an answer by one value, in JSON.
func value(text string) func(any, []any) bool {
	return func(answer any, _ []any) bool {
		if err := json.Unmarshal([]byte(text), answer); err != nil {
			panic(err)
		}
		return true
	}
}

// ofTag returns a change that affects only the nonces of one tag.
func ofTag(tag, text string) func(any, []any) bool {
	return func(answer any, args []any) bool { return args[1] == tag && value(text)(answer, args) }
}

// TestOneWrongAnswerCostsNothing makes the only node give one wrong answer to each call in turn. The writer sends one
// transaction, at the market price.
func TestOneWrongAnswerCostsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		mutate func(any, []any) bool
	}{
		"pending nonce too high": {nonceMethod, ofTag("pending", `"0x3b9aca00"`)},
		"pending nonce higher":   {nonceMethod, ofTag("pending", `"0x3"`)},
		"used nonces too many":   {nonceMethod, ofTag("latest", `"0x3b9aca00"`)},
		"used nonces more":       {nonceMethod, ofTag("latest", `"0x2"`)},
		"used nonces too few":    {nonceMethod, ofTag("latest", `"0x0"`)},
		"gas too much":           {"eth_estimateGas", value(`"0x7fffffffffffffff"`)},
		"gas more":               {"eth_estimateGas", value(`"0x1ffffff"`)},
		"gas endless":            {"eth_estimateGas", value(`"0xffffffffffffffff"`)},
		"gas nothing":            {"eth_estimateGas", value(`"0x0"`)},
		"tip":                    {"eth_feeHistory", value(`{"reward":[["0x2e90edd000"],["0x2e90edd000"]]}`)},
		"no history":             {"eth_feeHistory", value(`{"reward":null}`)},
		"base fee":               {"eth_getBlockByNumber", value(`{"number":"0x1","baseFeePerGas":"0xffffffffffffff"}`)},
		"balance nothing":        {"eth_getBalance", value(`"0x0"`)},
		"balance endless":        {"eth_getBalance", value(`"0xffffffffffffffffffffffff"`)},
		"receipt's price":        {"eth_getTransactionReceipt", value(`{"effectiveGasPrice":"0xffffffffffffffffffff"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := onSQLite(t)
			node := &byzantine{Client: w.net, method: test.method, mutate: test.mutate}
			writer := w.writer(func(c *Config) { c.Client, c.Chain.Limits.MaxTipWei = node, 2*params.GWei })
			operator := crypto.PubkeyToAddress(w.operator.PublicKey)
			var opened []invoice.Hash
			for round := range 3 {
				before, err := w.client.BalanceAt(w.ctx, operator, nil)
				must(t, err)
				some := commitments(2)
				w.enqueueIntents(invoice.IntentOpen, some...)
				opened = append(opened, some...)
				node.times = min(round, 1) // the first round is correct
				for range 10 {
					writer.report(writer.tick(w.ctx))
					w.seal(1)
					w.index()
					w.clock.Add(blockerMaxAge / 4)
				}
				after, err := w.client.BalanceAt(w.ctx, operator, nil)
				must(t, err)
				// With a tip of 200 gwei the cost would be seven times as high.
				if cost := before.Sub(before, after); cost.Cmp(inWei(2_000_000)) > 0 {
					t.Errorf("round %d cost %s wei", round, cost)
				}
			}
			w.wantStatus(statusOpen, opened...)
			w.wantAllDone()
			expect.Equal(t, w.nonce(), 3, "transactions were paid for:")
		})
	}
}

// TestNonceIsHeldAgainstASecondNode makes the first of two nodes always report a wrong number of used nonces.
func TestNonceIsHeldAgainstASecondNode(t *testing.T) {
	w := onSQLite(t)
	node := &byzantine{Client: w.net, method: nonceMethod, mutate: value(`"0x3b9aca00"`), times: -1}
	writer := w.writer(func(c *Config) { c.Client, c.Nodes = node, func() []Client { return []Client{node, w.net} } })
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	for range int((foreignAfter - time.Minute) / lostAfter) {
		writer.report(writer.tick(w.ctx))
		w.clock.Add(lostAfter)
	}
	w.wantTxs()
	if s := writer.Status(); !strings.Contains(s.Err, errNonceUncertain.Error()) {
		t.Errorf("status is %+v, want it to say that the nonce is doubted", s)
	}
	node.times = 0
	w.tick(writer)
	w.seal(1)
	w.wantStatus(statusOpen, ids...)

	// Two nodes that agree override the stored rows immediately.
	w.tick(writer)
	w.external(w.operator, pack(invoice.IntentOpen, nil, 0))
	w.seal(1)
	more := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, more...)
	w.tick(writer)
	w.seal(1)
	w.wantStatus(statusOpen, more...)
}

// TestTooLowEstimateIsHeldAgainstASecondNode makes the first of two nodes estimate too little gas. The transaction
// would cost its fee and revert.
func TestTooLowEstimateIsHeldAgainstASecondNode(t *testing.T) {
	w := onSQLite(t)
	node := &byzantine{Client: w.net, method: "eth_estimateGas", mutate: value(`"0x7530"`), times: -1}
	writer := w.writer(func(c *Config) { c.Client, c.Nodes = node, func() []Client { return []Client{node, w.net} } })
	ids := commitments(5)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
	w.wantStatus(statusOpen, ids...)
}

// TestWithheldReceipts makes the first node never return a receipt, while deposits stay due. With a second node, the one
// sweep is recorded. Without one, the repetitions end at the daily budget.
func TestWithheldReceipts(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		w := onSQLite(t)
		node := &byzantine{Client: w.net, method: "eth_getTransactionReceipt", mutate: value(`null`), times: -1}
		limit := func(gwei uint64) func(*Config) {
			return func(c *Config) {
				c.Client, c.Nodes = node, func() []Client { return []Client{node, w.net}[:nodes] }
				c.Chain.Limits.PerDayGwei = gwei
			}
		}
		writer := w.writer(w.sweeping(atOnce), limit(1_000_000_000))
		w.deposit("m", 5, 6, 7)
		w.tick(writer)
		reserved := uint64(w.wantTxs(TxSent)[0].Reserved)
		w.clock.Add(DefaultLeaseTTL)
		writer = w.writer(w.sweeping(atOnce), limit(4*reserved))
		for range 20 {
			w.seal(1)
			writer.report(writer.tick(w.ctx))
			w.clock.Add(lostAfter)
		}
		if nodes == 2 {
			w.wantTxs(TxMined)
		}
		most := uint64(0)
		for _, tx := range w.txs() {
			most += uint64(tx.Reserved)
		}
		if most > 4*reserved {
			t.Errorf("%d transactions may cost %d gwei, and the budget is %d", len(w.txs()), most, 4*reserved)
		}
	}
}

// TestCostsOfReceipts has nodes that report wrong costs or lack the receipt, and a rollup's fee for data. While a node
// lacks the receipt no cost is recorded.
func TestCostsOfReceipts(t *testing.T) {
	const l1 = 1_000_000_000 // gwei
	dataFee, low, lacks := value(`{"l1Fee":"0xde0b6b3a7640000"}`), value(`{"effectiveGasPrice":"0x1"}`), value(`null`)
	isLate := true
	late := func(answer any, args []any) bool {
		defer func() { isLate = false }()
		return isLate && lacks(answer, args)
	}
	for name, test := range map[string]struct {
		nodes         int
		first, second func(any, []any) bool
		blocks        int // that follow until the cost is recorded
		want          func(paid, reserved int64) int64
	}{
		"right":                {1, nil, nil, 0, func(paid, _ int64) int64 { return paid }},
		"nothing":              {1, value(`{"effectiveGasPrice":"0x0"}`), nil, 0, func(_, reserved int64) int64 { return reserved }},
		"nothing, and another": {2, value(`{"effectiveGasPrice":"0x0"}`), nil, 0, func(paid, _ int64) int64 { return paid }},
		"low, and another":     {2, low, nil, 0, func(paid, _ int64) int64 { return paid }},
		"low, and a late one":  {2, low, late, 1, func(paid, _ int64) int64 { return paid }},
		"low, and lacking":     {2, low, lacks, finality, func(_, reserved int64) int64 { return reserved }},
		"high, and another":    {2, dataFee, nil, 0, func(_, reserved int64) int64 { return 2 * reserved }},
		"lacking, and high":    {2, lacks, dataFee, finality, func(_, reserved int64) int64 { return 2 * reserved }},
		"data":                 {1, dataFee, nil, 0, func(_, reserved int64) int64 { return 2 * reserved }},
		"data, confirmed":      {2, dataFee, dataFee, 0, func(paid, _ int64) int64 { return paid + l1 }},
	} {
		t.Run(name, func(t *testing.T) {
			w := onSQLite(t)
			var nodes []Client
			for _, mutate := range []func(any, []any) bool{test.first, test.second}[:test.nodes] {
				node := &byzantine{Client: w.net, method: "eth_getTransactionReceipt", mutate: mutate, times: -1}
				if mutate == nil {
					node.times = 0
				}
				nodes = append(nodes, node)
			}
			writer := w.writer(func(c *Config) { c.Client, c.Nodes = nodes[0], func() []Client { return nodes } })
			w.enqueueIntents(invoice.IntentOpen, commitments(2)...)
			operator := crypto.PubkeyToAddress(w.operator.PublicKey)
			before, err := w.client.BalanceAt(w.ctx, operator, nil)
			must(t, err)
			w.tick(writer)
			w.seal(1)
			w.tick(writer)
			after, err := w.client.BalanceAt(w.ctx, operator, nil)
			must(t, err)
			tx := w.wantTxs(TxMined)[0]
			if test.blocks > 0 {
				if tx.Spent != nil {
					t.Errorf("recorded %+v before each node has a receipt", tx.Spent)
				}
				w.seal(test.blocks)
				w.index()
				w.tick(writer)
				tx = w.wantTxs(TxMined)[0]
			}
			if want := test.want(inGwei(before.Sub(before, after)), tx.Reserved); tx.Spent == nil || tx.Spent.Gwei != want {
				t.Errorf("recorded %+v, want %d gwei", tx.Spent, want)
			}
		})
	}
}

// TestFrozenNodeIsAskedFewTimes makes the first of two nodes accept calls and never answer. The writer does not wait for
// it with each of its calls.
func TestFrozenNodeIsAskedFewTimes(t *testing.T) {
	w := onSQLite(t)
	first, firstURL := newFaultyProxy(t, w.dev.RPCURL())
	_, secondURL := newFaultyProxy(t, w.dev.RPCURL())
	pool := chain.NewPool(chain.PoolConfig{
		Chain: w.chain(), Clients: []*chain.Client{newPool(t, firstURL), newPool(t, secondURL)}, Now: w.clock.Now,
		Logger: slog.New(slog.DiscardHandler), FailoverAfter: 100 * time.Millisecond,
	})
	writer := w.writer(func(c *Config) {
		c.Client, c.Nodes = pool.Writer(), func() (all []Client) {
			for _, n := range pool.Writer().Callers() {
				all = append(all, n)
			}
			return all
		}
	})
	ids := commitments(2)
	w.enqueueIntents(invoice.IntentOpen, ids[0])
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	var asked atomic.Int64
	first.decide(func() fate { asked.Add(1); return frozen })
	w.enqueueIntents(invoice.IntentOpen, ids[1])
	must(t, writer.tick(w.ctx))
	if n := asked.Load(); n == 0 || n > 2 {
		t.Errorf("the frozen node was asked %d times", n)
	}
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
}

// tippingWriter returns a writer that offers a higher tip than necessary.
func (w *world) tippingWriter(tipGwei uint64) *Writer {
	w.Helper()
	return w.writer(func(c *Config) { c.Chain.Limits.MinTipWei = tipGwei * params.GWei })
}

// TestAttemptThatNoNodeTookIsReplacedByALowerOne begins with an attempt that costs more than any node accepts over RPC.
func TestAttemptThatNoNodeTookIsReplacedByALowerOne(t *testing.T) {
	w := onSQLite(t)
	w.net.before = func(method string, args []any) error {
		if method != sendRaw {
			return nil
		}
		tx := new(types.Transaction)
		must(t, tx.UnmarshalBinary(rawOf(args)))
		if tx.GasFeeCap().Cmp(big.NewInt(100*params.GWei)) > 0 {
			return answer("tx fee (1.20 ether) exceeds the configured cap (1.00 ether)")
		}
		return nil
	}
	ids := commitments(2)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	if err := w.tippingWriter(190).tick(w.ctx); err == nil {
		t.Fatal("the node took an attempt that it refuses")
	}
	w.clock.Add(DefaultLeaseTTL)
	writer := w.writer()
	writer.report(writer.tick(w.ctx)) // broadcasts it; every node refuses it
	w.clock.Add(rebroadcastAfter)
	w.tick(writer)
	attempts := w.wantTxs(TxSent)[0].Attempts
	if len(attempts) != 2 || attempts[1].FeeCap.Cmp(big.NewInt(10*params.GWei)) > 0 {
		t.Fatalf("the last of %d attempts offers %s wei, want the market's price", len(attempts), attempts[len(attempts)-1].FeeCap)
	}
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
	w.wantStatus(statusOpen, ids...)
	w.wantSameContents()
}

// TestBatchIsSizedByItsCost sets a low cost limit for a transaction.
func TestBatchIsSizedByItsCost(t *testing.T) {
	w := onSQLite(t)
	const perTx = 800_000 // gwei, for about 200,000 gas at first
	writer := w.writer(func(c *Config) { c.Chain.Limits.PerTxGwei = perTx })
	ids := commitments(150)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	for range 20 {
		w.tick(writer)
		w.seal(1)
	}
	w.tick(writer)
	w.wantStatus(statusOpen, ids...)
	all := w.txs()
	for _, tx := range all {
		for _, attempt := range tx.Attempts {
			signed, err := decode(attempt)
			must(t, err)
			if cost := costOf(signed.Gas(), attempt.FeeCap); cost.Cmp(inWei(perTx/2)) > 0 {
				t.Errorf("nonce %d may cost %s wei, want half of %d gwei at most", tx.Nonce, cost, perTx)
			}
		}
	}
	if len(all) < 3 {
		t.Errorf("%d transactions carry what costs more than that", len(all))
	}

	// A single intent that costs more than the limit waits.
	writer = w.writer(func(c *Config) { c.Chain.Limits.PerTxGwei = 1 })
	w.clock.Add(DefaultLeaseTTL)
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	expect.Error(t, errFeeCapExceeded, "a round that may cost nothing ends with")(writer.tick(w.ctx))
}
