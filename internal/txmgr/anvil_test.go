package txmgr

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// onAnvil returns a world on anvil, which mines on request.
func onAnvil(t *testing.T) *world {
	t.Helper()
	a := anviltest.Start(t, anviltest.Options{})
	admin, err := crypto.HexToECDSA(a.Accounts[0].Key[2:])
	must(t, err)
	operator, err := crypto.HexToECDSA(a.Accounts[1].Key[2:])
	must(t, err)
	registry, err := chain.Deployment{
		RPC: a.URL(), Key: admin, Operator: invoice.Address(crypto.PubkeyToAddress(operator.PublicKey)),
	}.Deploy(t.Context(), chain.Registry)
	must(t, err)
	client, err := ethclient.Dial(a.URL())
	must(t, err)
	t.Cleanup(client.Close)
	w := worldOn(t, client, operator, common.Address(registry), dbtest.Open(t, dbtest.SQLite(t)))
	w.nodeCall("evm_setAutomine", false)
	return w
}

// nodeCall sends a command to the node.
func (w *world) nodeCall(method string, args ...any) {
	w.Helper()
	must(w, w.client.Client().CallContext(w.ctx, nil, method, args...))
}

func (w *world) mine(blocks int) {
	w.Helper()
	w.nodeCall("anvil_mine", hexutil.EncodeUint64(uint64(blocks)))
}

// TestExtraFeeMarket lets the base fee rise above the offered fee, then above the highest allowed fee, and fall again.
func TestExtraFeeMarket(t *testing.T) {
	w := onAnvil(t)
	most := big.NewInt(100 * params.GWei)
	writer := w.writer(func(c *Config) { c.Chain.Limits.MaxFeeWei = most.Uint64() })
	ids := commitments(2)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	base := func(gwei int64, blocks int) {
		for range blocks {
			w.nodeCall("anvil_setNextBlockBaseFeePerGas", hexutil.EncodeBig(big.NewInt(gwei*params.GWei)))
			w.mine(1)
		}
		w.clock.Add(bumpAfter)
	}
	base(20, bumpBlocks)
	w.tick(writer)
	attempts := w.wantTxs(TxSent)[0].Attempts
	if len(attempts) != 2 || attempts[1].FeeCap.Cmp(big.NewInt(20*params.GWei)) <= 0 {
		t.Fatalf("%d attempts offer %s wei at last, want 2 and more than the base fee", len(attempts), attempts[len(attempts)-1].FeeCap)
	}
	base(500, bumpBlocks)
	for range 3 {
		writer.report(writer.tick(w.ctx))
		if s := writer.Status(); s.InFlight != 1 || s.Err == "" {
			t.Errorf("status is %+v while the base fee is above the cap", s)
		}
	}
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...) // waits for its turn
	base(90, bumpBlocks)
	writer.report(writer.tick(w.ctx))
	attempts = w.wantTxs(TxSent)[0].Attempts
	if last := attempts[len(attempts)-1].FeeCap; len(attempts) != 3 || last.Cmp(most) != 0 {
		t.Fatalf("%d attempts offer %s wei at last, want 3 and all that is allowed", len(attempts), last)
	}
	base(90, 1)
	writer.report(writer.tick(w.ctx))
	if s := writer.Status(); s.Err != "" {
		t.Errorf("status is %+v after the fees fell", s)
	}
	w.wantStatus(statusOpen, ids...)
	w.wantSameContents()

	// The same happens before any transaction is sent.
	w.mine(1)
	w.tick(writer)
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	base(500, 1)
	if err := writer.tick(w.ctx); !errors.Is(err, errFeeCapExceeded) {
		t.Fatalf("with a base fee above the cap a round ends with %v", err)
	}
	base(10, 1)
	w.tick(writer)
	w.wantTxs(TxMined, TxMined, TxSent)
}

// TestExtraFactsOfRealNodes has nodes refuse broadcasts and a call, and asks them for the reason.
func TestExtraFactsOfRealNodes(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *world{"geth": onSQLite, "anvil": onAnvil} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			writer := w.writer(func(c *Config) {
				c.Chain.Limits = chain.SpendLimits{MaxFeeWei: 1 << 62, MaxTipWei: 1 << 61, PerTxGwei: 1 << 62, PerDayGwei: 1 << 62}
			})
			operator := crypto.PubkeyToAddress(w.operator.PublicKey)
			attempt := func(nonce uint64, percent int64) TxAttempt {
				gwei := func(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(percent), big.NewInt(n*params.GWei/100)) }
				a, err := writer.sign(nonce, operator, 21_000, nil, fees{cap: gwei(10), tip: gwei(1)})
				must(t, err)
				return a
			}
			explained := func(nonce uint64, a TxAttempt) broadcastState {
				t.Helper()
				f := broadcastState{err: w.node().broadcast(w.ctx, a.Raw)}
				if f.err == nil {
					t.Fatal("the node took it")
				}
				writer.explain(w.ctx, ChainTx{Nonce: nonce}, a, &f)
				return f
			}
			first := attempt(0, 100)
			must(t, w.node().broadcast(w.ctx, first.Raw))
			if w.dev != nil { // anvil accepts it twice
				if f := explained(0, first); f.err != nil || f.held || f.used {
					t.Errorf("a transaction that the node has: %+v", f)
				}
			}
			if f := explained(0, attempt(0, 95)); !f.held || f.used {
				t.Errorf("a lower fee: %+v, want the nonce held by another", f)
			}
			if f := explained(1, attempt(1, 1_000_000_000_000_000)); !errors.Is(f.err, errInsufficientFunds) {
				t.Errorf("more than the account has: %+v", f)
			}
			if w.dev != nil {
				w.seal(1)
			} else {
				w.mine(1)
			}
			if f := explained(0, attempt(0, 120)); !f.used || f.held {
				t.Errorf("a used nonce: %+v", f)
			}
			stranger, none := invoice.Address{1, 2, 3}, pack(invoice.IntentOpen, nil, 0)
			if _, err := w.node().estimate(w.ctx, stranger, w.registry, none); err == nil || !w.node().refuses(w.ctx, stranger, w.registry, none, err) {
				t.Errorf("a call without the role: %v, want it refused", err)
			}
		})
	}
}
