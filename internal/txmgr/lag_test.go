package txmgr

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

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
			if got := len(w.txs()); got != 4 {
				t.Errorf("%d transactions were sent for 4 batches", got)
			}
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
