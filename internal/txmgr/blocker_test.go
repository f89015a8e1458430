package txmgr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestOperatorResumesWhenFunded(t *testing.T) {
	w := onSQLite(t)
	poor, err := crypto.GenerateKey()
	must(t, err)
	w.grant(devchain.Address(poor))
	var log bytes.Buffer
	measured := prometheus.NewRegistry()
	writer := w.writer(func(c *Config) {
		c.Key, c.Logger, c.Metrics = poor, slog.New(slog.NewTextHandler(&log, nil)), NewMetrics(measured)
	})
	ids := commitments(maxBatch)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	writer.report(writer.tick(w.ctx))
	began := w.clock.Now()
	first := writer.Status()
	if !first.InsufficientFunds || !strings.Contains(first.Err, errInsufficientFunds.Error()) || !strings.Contains(first.Err, first.Sender.Hex()) ||
		first.Balance.Sign() != 0 || first.Needed.Sign() <= 0 {
		t.Errorf("status is %+v, want it to say what is missing, and where", first)
	}
	asked := w.net.tally()
	for range 3 {
		w.sealEmpty(1)
		w.clock.Add(blockerCheckEvery - 1)
		writer.report(writer.tick(w.ctx))
		w.clock.Add(1)
		writer.report(writer.tick(w.ctx))
	}
	want := map[string]int{"eth_estimateGas": 3, "eth_getBlockByNumber": 3, "eth_feeHistory": 3, "eth_getBalance": 3}
	if got := asked(); !maps.Equal(got, want) {
		t.Errorf("an operator without funds asked for %v in three times %s, want %v", got, blockerCheckEvery, want)
	}
	later := writer.Status()
	if later.Needed.Cmp(first.Needed) >= 0 || later.Err == first.Err || !later.Since.Equal(began) {
		t.Errorf("status is %+v; want what the fees of now need, since the beginning", later)
	}
	w.wantDue(maxBatch)

	// One wei less than needed is too little; then it suffices.
	w.fund(devchain.Address(poor), 1)
	w.clock.Add(blockerCheckEvery)
	writer.report(writer.tick(w.ctx))
	left := new(big.Int).Sub(writer.Status().Needed, writer.Status().Balance)
	w.fund(devchain.Address(poor), left.Int64())
	w.clock.Add(blockerCheckEvery)
	writer.report(writer.tick(w.ctx))
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
	if s := writer.Status(); s.Err != "" || s.InsufficientFunds {
		t.Errorf("status still says %+v", s)
	}
	if got := measure(t, measured, "quittance_writer_balance_wei"); got == 0 {
		t.Error("the balance is not measured")
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 1 {
		t.Errorf("%d warnings were logged, want 1:\n%s", got, &log)
	}
}

// TestFeeThatCannotBePaid has a sender with enough for a transaction, and too little for one with a higher fee.
func TestFeeThatCannotBePaid(t *testing.T) {
	w := onSQLite(t)
	poor, err := crypto.GenerateKey()
	must(t, err)
	w.grant(devchain.Address(poor))
	writer := w.writer(func(c *Config) {
		c.Key, c.Chain.Limits.MinTipWei = poor, 20*params.GWei // the tip does not fall with the base fee
	})
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	if err := writer.tick(w.ctx); !errors.Is(err, errInsufficientFunds) {
		t.Fatal(err)
	}
	w.fund(devchain.Address(poor), writer.Status().Needed.Int64())
	w.clock.Add(blockerCheckEvery)
	w.tick(writer)
	for range 5 { // until the account's balance is too little for falling fees
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
		writer.report(writer.tick(w.ctx))
	}
	if s := writer.Status(); !s.InsufficientFunds || s.InFlight != 1 {
		t.Errorf("status is %+v, want a transaction in flight and no funds for a higher fee", s)
	}
	// A payable attempt is not given up for one that cannot be paid.
	w.dev.DropPending()
	w.clock.Add(rebroadcastAfter)
	writer.report(writer.tick(w.ctx))
	w.seal(1)
	writer.report(writer.tick(w.ctx))
	if s := writer.Status(); s.InsufficientFunds || s.Err != "" {
		t.Errorf("status is %+v after the transaction was mined", s)
	}
	w.wantStatus(statusOpen, ids...)
}

func TestOperatorWithoutItsRole(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	operator := devchain.Address(w.dev.Keys.Operator)
	w.external(w.dev.Keys.Deployer, contracts.NewInvoiceRegistry().PackRevokeRole(operatorRole, operator))
	w.seal(1)
	ids := commitments(maxBatch)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	writer.report(writer.tick(w.ctx))
	asked := w.net.tally()
	for range 4 {
		w.clock.Add(blockerCheckEvery)
		writer.report(writer.tick(w.ctx))
		if s := writer.Status(); !strings.Contains(s.Err, errRole.Error()) || !strings.Contains(s.Err, operator.Hex()) {
			t.Fatalf("status is %+v, want it to say that the operator is refused", s)
		}
		writer.report(writer.tick(w.ctx))
	}
	if got, want := asked(), map[string]int{"eth_estimateGas": 4}; !maps.Equal(got, want) {
		t.Errorf("an operator that is refused asked for %v in four times %s, want %v", got, blockerCheckEvery, want)
	}
	w.grant(operator)
	w.clock.Add(blockerCheckEvery)
	w.tick(writer)
	w.seal(1)
	w.wantTxs(TxSent) // one batch: no item was blamed
	w.wantStatus(statusOpen, ids...)
}

// TestRegistryThatIsNoRegistry configures an account without code as the registry: it accepts every call, and answers
// without data.
func TestRegistryThatIsNoRegistry(t *testing.T) {
	w := onSQLite(t)
	w.registry = common.Address{0xaa}
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	if err := writer.tick(w.ctx); err == nil || !strings.Contains(err.Error(), "answered 0x when asked for a status") {
		t.Errorf("a round ends with %v", err)
	}
	w.wantTxs()
}

var operatorRole = crypto.Keccak256Hash([]byte("OPERATOR_ROLE"))

// grant lets an account open and close commitments.
func (w *world) grant(to common.Address) {
	w.Helper()
	w.external(w.dev.Keys.Deployer, contracts.NewInvoiceRegistry().PackGrantRole(operatorRole, to))
	w.seal(1)
}

// fund gives an account an amount of wei.
func (w *world) fund(to common.Address, wei int64) {
	w.Helper()
	_, err := w.dev.SendCoins(w.ctx, w.dev.Keys.Payer, to, big.NewInt(wei))
	must(w, err)
	w.seal(1)
}

// tally returns a function that counts the calls since, by method.
func (f *faults) tally() func() map[string]int {
	calls := make(map[string]int)
	f.before = func(method string, _ []any) error {
		calls[method]++
		return nil
	}
	return func() map[string]int {
		f.before = nil
		return calls
	}
}

// laggingClient is two nodes behind one client; one does not know the newest blocks. Both forward transactions.
type laggingClient struct {
	Client
	known  func() uint64                          // the newest block that the node behind knows
	behind func(batched bool, method string) bool // whether the lagging node answers
}

func (l laggingClient) CallContext(ctx context.Context, result any, method string, args ...any) error {
	if !l.behind(false, method) {
		return l.Client.CallContext(ctx, result, method, args...)
	}
	return l.late(ctx, result, method, args)
}

func (l laggingClient) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	if !l.behind(true, batch[0].Method) {
		return l.Client.BatchCallContext(ctx, batch)
	}
	for i, elem := range batch {
		batch[i].Error = l.late(ctx, elem.Result, elem.Method, elem.Args)
	}
	return nil
}

// late answers as the lagging node.
func (l laggingClient) late(ctx context.Context, result any, method string, args []any) error {
	newest := hexutil.EncodeUint64(l.known())
	args = slices.Clone(args)
	switch method {
	case "eth_getBlockByNumber":
		args[0] = newest
	case nonceMethod, "eth_getBalance":
		args[1] = newest
	case "eth_estimateGas":
		args = append(args, newest)
	case "eth_call":
		args[1] = newest
	case "eth_getTransactionReceipt":
		var there *struct {
			BlockNumber hexutil.Uint64 `json:"blockNumber"`
		}
		if err := l.Client.CallContext(ctx, &there, method, args...); err != nil {
			return err
		}
		if there == nil || uint64(there.BlockNumber) > l.known() {
			return json.Unmarshal([]byte("null"), result)
		}
	}
	return l.Client.CallContext(ctx, result, method, args...)
}

// TestNodeThatLags has a node lag for longer than it takes to give up a transaction.
func TestNodeThatLags(t *testing.T) {
	ticks := 0
	for name, behind := range map[string]func(batched bool, method string) bool{
		"in what is asked at once":     func(batched bool, _ string) bool { return batched },
		"in what is asked one by one":  func(batched bool, _ string) bool { return !batched },
		"in every second question":     func(bool, string) bool { ticks++; return ticks%2 == 0 },
		"in what waits":                func(_ bool, method string) bool { return method == nonceMethod },
		"in all, as when one is alone": func(bool, string) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			w := onSQLite(t)
			lag := uint64(0)
			writer := w.writer(func(c *Config) {
				c.Client = laggingClient{c.Client, func() uint64 { return w.head() - lag }, behind}
			})
			var opened []invoice.Hash
			for lag = range 4 {
				some := commitments(2)
				w.enqueueIntents(invoice.IntentOpen, some...)
				opened = append(opened, some...)
				for range 3 * (lostAfter / rebroadcastAfter) {
					w.tick(writer)
					w.seal(1)
					w.clock.Add(rebroadcastAfter)
				}
				w.index()
				for _, tx := range w.txs() {
					if tx.Status == TxFailed {
						t.Fatalf("the transaction with nonce %d was given up", tx.Nonce)
					}
				}
			}
			lag = 0
			for range 4 {
				w.tick(writer)
				w.seal(1)
			}
			w.tick(writer)
			w.index()
			w.tick(writer)
			w.wantAllDone()
			w.wantStatus(statusOpen, opened...)
			w.wantSameContents()
			w.wantEveryNonceUsed()
			expect.Equal(t, len(w.txs()), 4, "transactions were sent for 4 batches:")
		})
	}
}

// TestWriterAtNodeWithLimits has the writer use a node that refuses long batches, or all lists, and more than 5 calls
// per second, in randomly chosen ways.
func TestWriterAtNodeWithLimits(t *testing.T) {
	for seed, allows := range []chaintest.Allowance{
		{Batch: 1}, {Batch: 5}, {Batch: 15}, {Batch: 1, PerSecond: 5}, {Batch: 5, PerSecond: 5}, {Batch: 15, PerSecond: 5},
	} {
		w := onSQLite(t)
		line, _ := newFaultyProxy(t, w.dev.RPCURL())
		limited := chaintest.NewLimited(t, line, allows, w.clock.Now, uint64(seed))
		pool := chain.NewPool(chain.PoolConfig{
			Chain: w.chain(), Clients: []*chain.Client{newPool(t, limited.URL)}, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
			Sleep: func(ctx context.Context, d time.Duration) error { w.clock.Add(d); return ctx.Err() },
		})
		writer := w.writer(func(c *Config) { c.Client = pool.Writer() })
		ids := commitments(40)
		w.enqueueIntents(invoice.IntentOpen, ids...)
		for range 60 {
			writer.report(writer.tick(w.ctx))
			w.seal(1)
			w.index()
			w.clock.Add(time.Second)
		}
		w.wantStatus(statusOpen, ids...)
		w.wantAllDone()
		w.wantEveryNonceUsed()
		most, batch := pool.Nodes()[0].Limit(chain.KindCalls).Next(), uint64(allows.Batch)
		if allows.PerSecond == 0 && (most > batch+batch/4+1 || limited.BySize == 0) {
			t.Errorf("%+v are allowed: %d calls are made in a batch next; %d refused", allows, most, limited.BySize)
		}
	}
}

// TestWriterOverPool has the writer use two providers. The first goes away while a transaction is in flight, and comes
// back.
func TestWriterOverPool(t *testing.T) {
	w := onSQLite(t)
	first, firstURL := newFaultyProxy(t, w.dev.RPCURL())
	_, secondURL := newFaultyProxy(t, w.dev.RPCURL())
	pool := chain.NewPool(chain.PoolConfig{
		Chain: w.chain(), Clients: []*chain.Client{newPool(t, firstURL), newPool(t, secondURL)}, Now: w.clock.Now,
		Logger: slog.New(slog.DiscardHandler),
	})
	writer := w.writer(func(c *Config) { c.Client = pool.Writer() })
	var opened []invoice.Hash
	for round := range 6 {
		switch round {
		case 2:
			first.decide(func() fate { return requestLost })
		case 4:
			first.decide(nil)
			w.clock.Add(time.Hour)
		}
		some := commitments(2)
		w.enqueueIntents(invoice.IntentOpen, some...)
		opened = append(opened, some...)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
	}
	w.seal(finality)
	w.index()
	w.tick(writer)
	w.wantAllDone()
	w.wantStatus(statusOpen, opened...)
	w.wantEveryNonceUsed()
}

func TestStuckTransactionIsReplaced(t *testing.T) {
	parallelOnSQLite(t, func(t *testing.T, w *world) {
		measured := prometheus.NewRegistry()
		metrics := NewMetrics(measured)
		writer := w.writer(func(c *Config) { c.Metrics = metrics })
		ids := commitments(2)
		w.enqueueIntents(invoice.IntentOpen, ids...)
		w.tick(writer)
		for _, step := range []struct {
			blocks   int
			after    time.Duration
			attempts int
		}{
			{bumpBlocks - 1, bumpAfter, 1}, // the chain does not advance; the transaction is not the cause
			{1, 0, 2},
			{bumpBlocks, bumpAfter - time.Millisecond, 2},
			{0, time.Millisecond, 3},
		} {
			w.sealEmpty(step.blocks)
			w.clock.Add(step.after)
			w.tick(writer)
			if got := len(w.txs()[0].Attempts); got != step.attempts {
				t.Fatalf("after %+v there are %d attempts", step, got)
			}
		}
		expect.Equal(t, measure(t, measured, "quittance_writer_fee_bumps_total"), 2, "fee bumps are counted:")
		last := w.txs()[0].Attempts[2]
		if _, pending, err := w.dev.Client().TransactionByHash(w.ctx, [32]byte(last.TxHash)); err != nil || !pending {
			t.Fatalf("the node did not take the last attempt: pending %t, %v", pending, err)
		}
		w.wantSameContents()
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined)
		w.wantStatus(statusOpen, ids...)
	})
}

// TestStuckTransactionInACalmMarket has blocks leave out a transaction that offers the market fees: its fee does not
// climb to the cap.
func TestStuckTransactionInACalmMarket(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.tick(writer)
	var err error
	for range 40 {
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
		err = writer.tick(w.ctx)
	}
	expect.Error(t, errStuck, "a round that does not offer more ends with")(err)
	attempts := w.txs()[0].Attempts
	first, last := attempts[0], attempts[len(attempts)-1]
	if most := new(big.Int).Lsh(first.FeeCap, 1); len(attempts) < 2 || last.FeeCap.Cmp(most) > 0 {
		t.Errorf("the %d attempts rose from %s to %s wei, want some, and no more than %s", len(attempts), first.FeeCap, last.FeeCap, most)
	}
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
}

func TestFeeIsCapped(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(func(c *Config) { c.Chain.Limits.MaxFeeWei = 1 })
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	if err := writer.tick(w.ctx); !errors.Is(err, errFeeCapExceeded) || !strings.Contains(err.Error(), "base fee") {
		t.Errorf("with a base fee above the cap a round ends with %v", err)
	}
	w.wantTxs()
}

// TestNodeThatWantsMoreToReplace uses a node that replaces a transaction only at twice its fee.
func TestNodeThatWantsMoreToReplace(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	first, err := decode(w.txs()[0].Attempts[0])
	must(t, err)
	w.net.before = func(method string, args []any) error {
		if method != sendRaw {
			return nil
		}
		next := new(types.Transaction)
		must(t, next.UnmarshalBinary(rawOf(args)))
		for _, pair := range [][2]*big.Int{{first.GasFeeCap(), next.GasFeeCap()}, {first.GasTipCap(), next.GasTipCap()}} {
			if new(big.Int).Lsh(pair[0], 1).Cmp(pair[1]) > 0 {
				return answer("no")
			}
		}
		return nil
	}
	for range 2 {
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
		w.tick(writer)
	}
	last := w.wantTxs(TxSent)[0].Attempts[2]
	if _, pending, err := w.dev.Client().TransactionByHash(w.ctx, [32]byte(last.TxHash)); err != nil || !pending {
		t.Fatalf("the node did not take the attempt after the one it refused: pending %t, %v", pending, err)
	}
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
}

// TestAttemptsAreLimited has a node refuse every attempt because of another transaction with its nonce.
func TestAttemptsAreLimited(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(func(c *Config) {
		c.Chain.Limits = chain.SpendLimits{MaxFeeWei: 1 << 62, MaxTipWei: 1 << 61, PerTxGwei: 1 << 62, PerDayGwei: 1 << 62}
	})
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts("no", func() {
		w.net.refuseBroadcasts("no", nil)
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
	})
	var err error
	for range maxAttempts + 3 {
		w.clock.Add(bumpAfter)
		err = writer.tick(w.ctx)
		w.sealEmpty(bumpBlocks)
	}
	if got := len(w.txs()[0].Attempts); got > maxAttempts || !errors.Is(err, errFeeCapExceeded) && !errors.Is(err, errInsufficientFunds) {
		t.Errorf("there are %d attempts, want at most %d; %v", got, maxAttempts, err)
	}
}

// measure returns the value of a counter or a gauge with one child.
func measure(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("nothing measures %s", name)
	return 0
}
