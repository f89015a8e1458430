package txmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

var errCut = errors.New("connection reset")

// cut makes calls of a method fail before they reach the node.
func (f *faults) cut(method string) {
	f.before = func(called string, _ []any) error {
		if called == method {
			return errCut
		}
		return nil
	}
}

func TestLostBroadcastIsRepeated(t *testing.T) {
	for name, injectFault := range map[string]func(*faults){
		"request lost": func(f *faults) { f.cut(sendRaw) },
		"answer lost": func(f *faults) {
			f.after = func(method string) error {
				if method == sendRaw {
					return errCut
				}
				return nil
			}
		},
		"request swallowed": func(f *faults) { // the node answers that it has the transaction, and drops it
			f.before = func(method string, _ []any) error {
				if method == sendRaw {
					return answer("already known")
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := onSQLite(t)
			writer := w.writer()
			w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
			injectFault(w.net)
			wanted := errCut
			switch name {
			case "answer lost":
				wanted = nil // the node has the transaction
			case "request swallowed":
				wanted = answer("already known")
			}
			if err := writer.tick(w.ctx); !errors.Is(err, wanted) {
				t.Fatal(err)
			}
			w.net.before, w.net.after = nil, nil
			w.clock.Add(rebroadcastAfter - 1)
			expect.Error(t, wanted, "before it is repeated a round ends with")(writer.tick(w.ctx))
			broadcasts := len(w.net.sent)
			w.clock.Add(1)
			w.tick(writer)
			if len(w.net.sent) != broadcasts+1 {
				t.Errorf("%d broadcasts after %s, want one more than %d", len(w.net.sent), rebroadcastAfter, broadcasts)
			}
			w.seal(1)
			w.tick(writer)
			expect.Len(t, w.wantTxs(TxMined)[0].Attempts, 1, "attempts were signed:")
		})
	}
}

func TestRevertedTransactionIsSentInHalves(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(9)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	// The operator loses its role in the block with its transaction.
	deployer, operator := w.dev.Keys.Deployer, devchain.Address(w.dev.Keys.Operator)
	registry := contracts.NewInvoiceRegistry()
	role := crypto.Keccak256Hash([]byte("OPERATOR_ROLE"))
	revoke, err := w.dev.Sign(deployer, w.nonceOf(devchain.Address(deployer)), w.dev.Registry, registry.PackRevokeRole(role, operator))
	must(t, err)
	ours, err := decode(w.txs()[0].Attempts[0])
	must(t, err)
	must(t, w.dev.Fork(w.ctx, 0, []*types.Transaction{revoke, ours}))
	if err := writer.tick(w.ctx); !errors.Is(err, errRole) {
		t.Fatalf("a round without the role ends with %v", err)
	}
	w.wantTxs(TxFailed)
	w.wantDue(9)
	expect.Equal(t, writer.registry.batch, 4, "next batch is")
	w.external(deployer, registry.PackGrantRole(role, operator))
	w.seal(1)
	w.clock.Add(blockerCheckEvery)
	for range 3 {
		w.tick(writer)
		w.seal(1)
	}
	w.tick(writer)
	w.wantStatus(statusOpen, ids...)
	w.wantTxs(TxFailed, TxMined, TxMined) // 4, and then the other 5
}

func TestOneBadCommitmentDoesNotHoldUpTheOthers(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(7)
	bad := ids[2]
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.net.before = func(method string, args []any) error {
		if method == "eth_estimateGas" {
			data := args[0].(map[string]any)["data"].(interface{ MarshalText() ([]byte, error) })
			text, err := data.MarshalText()
			if err == nil && strings.Contains(string(text), bad.String()[2:]) {
				return answer("execution reverted")
			}
		}
		return nil
	}
	refusals := 0
	for range 12 {
		var refused answer
		if err := writer.tick(w.ctx); errors.As(err, &refused) {
			refusals++
		} else {
			must(t, err)
		}
		w.seal(1)
	}
	w.wantStatus(statusNone, bad)
	w.wantStatus(statusOpen, append(append([]invoice.Hash{}, ids[:2]...), ids[3:]...)...)
	if refusals > 6 { // twice for each time that 7 can be halved
		t.Errorf("the bad commitment was tried %d times", refusals)
	}
	w.clock.Add(skipFor - 1)
	w.tick(writer)
	w.net.before = nil
	w.tick(writer)
	w.wantStatus(statusNone, bad)
	w.clock.Add(1)
	w.tick(writer)
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
}

// answer is an error that a node returns.
type answer string

func (a answer) Error() string  { return string(a) }
func (a answer) ErrorCode() int { return -32000 }

// wantSameContents fails if transactions with one nonce that reached the node differ in content.
func (w *world) wantSameContents() {
	w.Helper()
	byNonce := make(map[uint64][]byte)
	for _, raw := range w.net.sent {
		tx := new(types.Transaction)
		must(w, tx.UnmarshalBinary(raw))
		if before, ok := byNonce[tx.Nonce()]; ok && !bytes.Equal(before, tx.Data()) {
			w.Fatalf("two different transactions with nonce %d were broadcast", tx.Nonce())
		}
		byNonce[tx.Nonce()] = tx.Data()
	}
}

// counter is a node of a chain where an account has sent some transactions.
type counter struct {
	chain, sent uint64
	err         error
}

func (c counter) answer(result any, method string) error {
	n := c.sent
	if method == "eth_chainId" {
		n = c.chain
	}
	return errors.Join(c.err, result.(*chain.Quantity).UnmarshalJSON([]byte(`"`+hexutil.EncodeUint64(n)+`"`)))
}

// CallContext implements Client.
func (c counter) CallContext(_ context.Context, result any, method string, _ ...any) error {
	return c.answer(result, method)
}

// BatchCallContext implements Client.
func (c counter) BatchCallContext(_ context.Context, batch []rpc.BatchElem) error {
	for i := range batch {
		batch[i].Error = c.answer(batch[i].Result, batch[i].Method)
	}
	return nil
}

// TestNoncesThatNodesSay compares the nonces at a start, with nodes that disagree. Only a number that two nodes report
// counts, or the only node's number. The first comparison accepts more.
func TestNoncesThatNodesSay(t *testing.T) {
	t.Parallel()
	const id = 31337
	down := counter{err: errors.New("down")}
	for name, c := range map[string]struct {
		nodes []Client
		used  uint64
		first uint64 // what the first comparison accepts
		known bool
	}{
		"one node":                     {[]Client{counter{chain: id, sent: 7}}, 7, 7, true},
		"one that is down":             {[]Client{down}, 0, 0, false},
		"one of another chain":         {[]Client{counter{chain: 1, sent: 7}}, 0, 0, false},
		"two":                          {[]Client{counter{chain: id, sent: 7}, counter{chain: id, sent: 7}}, 7, 7, true},
		"one of two is behind":         {[]Client{counter{chain: id, sent: 7}, counter{chain: id, sent: 5}}, 5, 7, true},
		"one of two is down":           {[]Client{counter{chain: id, sent: 7}, down}, 0, 0, false},
		"one of two of another chain":  {[]Client{counter{chain: id, sent: 7}, counter{chain: 1, sent: 9}}, 0, 0, false},
		"one of three says too much":   {[]Client{counter{chain: id, sent: 7}, counter{chain: id, sent: 99}, counter{chain: id, sent: 7}}, 7, 7, true},
		"one of three is down":         {[]Client{counter{chain: id, sent: 7}, down, counter{chain: id, sent: 6}}, 6, 7, true},
		"nothing was sent":             {[]Client{counter{chain: id}, counter{chain: id}}, 0, 0, true},
		"two of another chain of many": {[]Client{counter{chain: 1, sent: 9}, counter{chain: id, sent: 7}, counter{chain: 1, sent: 9}}, 0, 0, false},
	} {
		w := &Writer{conf: Config{Chain: chain.Chain{ID: id}, Nodes: func() []Client { return c.nodes }}}
		if used, pending, known := w.usedNonces(t.Context()); used != c.used || pending != c.first || known != c.known {
			t.Errorf("%s: %d nonces, at first %d, certain %v; want %d, %d, %v", name, used, pending, known, c.used, c.first, c.known)
		}
	}
}

// TestCompareNonces starts writers on a database that was restored, and on ones that were not.
func TestCompareNonces(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		suspected := func() bool {
			r, err := w.store.Recovery(t.Context())
			must(t, err)
			return r.State != db.RecoveryNormal
		}
		for range 2 { // a start, with transactions of this service in every state
			writer := w.writer()
			must(t, writer.CompareNonces(t.Context(), 0))
			w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
			w.tick(writer)
			must(t, w.writer().CompareNonces(t.Context(), 0))
			w.seal(1)
			must(t, w.writer().CompareNonces(t.Context(), 0))
			w.tick(writer)
			must(t, writer.release(t.Context()))
		}
		running := w.writer()
		must(t, running.CompareNonces(t.Context(), 0))
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0)) // while the service runs
		w.seal(1)
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		for range 2 {
			_ = running.tick(t.Context()) // it waits until the nonce is certain
			w.clock.Add(lostAfter)
		}
		w.seal(1)
		w.tick(running)
		w.wantTxs(TxMined, TxMined, TxMined)
		must(t, running.release(t.Context()))
		must(t, w.writer().CompareNonces(t.Context(), 0))
		if suspected() {
			t.Fatal("a false alarm")
		}
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0)) // while it is stopped
		w.seal(1)
		must(t, w.writer().CompareNonces(t.Context(), 0))
		if !suspected() {
			t.Error("nothing was noticed")
		}
	})
}

// TestPendingNoncesAreAcceptedAtFirst starts a writer for the first time, as after a recovery, while a transaction of the
// lost past waits in the pool. It is mined later, and no evidence.
func TestPendingNoncesAreAcceptedAtFirst(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for nonce, want := range []bool{false, true} {
			w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
			if nonce == 0 {
				must(t, w.writer().CompareNonces(t.Context(), 0))
			}
			w.seal(1)
			suspected, err := NoteSigned(t.Context(), w.store, chain.Local, invoice.Address(devchain.Address(w.dev.Keys.Operator)), uint64(nonce), invoice.Hash{1}, time.Unix(1000, 0))
			if err != nil || suspected != want {
				t.Errorf("nonce %d: evidence %v, %v; want %v", nonce, suspected, err, want)
			}
		}
	})
}

// TestNoncesBeforeTheFirstTransaction has nodes not answer at the start. The writer compares before it sends a
// transaction.
func TestNoncesBeforeTheFirstTransaction(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		must(t, w.writer().CompareNonces(t.Context(), 0))
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
		w.seal(1)
		writer := w.writer()
		w.net.cut("eth_chainId")
		must(t, writer.CompareNonces(t.Context(), 0))
		w.net.before = nil
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		_ = writer.tick(t.Context()) // one node reports it
		w.clock.Add(lostAfter)
		expect.Error(t, errRestored, "the round ended with")(writer.tick(t.Context()))
		expect.Error(t, errRestored, "the next round ended with")(writer.tick(t.Context()))
		w.wantTxs()
	})
}

// TestNoncesUsedByHandWhileIdle has a person send with the operator's key while the service runs and has no
// transactions to send. That is not evidence at the next start.
func TestNoncesUsedByHandWhileIdle(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		running := w.writer()
		must(t, running.CompareNonces(t.Context(), 0))
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
		w.seal(1)
		w.clock.Add(noteEvery)
		w.tick(running)
		must(t, running.release(t.Context()))
		must(t, w.writer().CompareNonces(t.Context(), 0))
		r, err := w.store.Recovery(t.Context())
		must(t, err)
		if r.State != db.RecoveryNormal {
			t.Errorf("a false alarm: %s", r.Reason)
		}
	})
}

// TestDailyBudgetStopsTheWriter uses up the daily budget. The writer reports it, and resumes when the spending is a day
// old. Another process sees the same budget.
func TestDailyBudgetStopsTheWriter(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		measured := prometheus.NewRegistry()
		var log bytes.Buffer
		allow := func(gwei int64) func(*Config) {
			return func(c *Config) {
				c.Chain.Limits.PerDayGwei = uint64(gwei)
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			}
		}
		writer := w.writer(allow(100_000_000_000), func(c *Config) { c.Metrics = NewMetrics(measured) })
		w.tick(writer)
		for _, line := range []string{
			"balance_wei{%s} ", "spent_wei{%s} 0", "budget_wei{%s} 1e+20", `blocked{%s,reason="funds"} 0`, `transactions_total{%s,kind="open",status="sent"} 0`,
			`cost_wei_total{%s,kind="close"} 0`, "fee_bumps_total{%s} 0", "due_intents{%s} 0",
		} {
			if line = "quittance_writer_" + fmt.Sprintf(line, `chain="`+writer.conf.Chain.Key+`"`); !strings.Contains(exported(measured), line) {
				t.Errorf("before the first transaction there is no %s:\n%s", line, exported(measured))
			}
		}
		first := commitments(20)
		w.enqueueIntents(invoice.IntentOpen, first...)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
		mined := w.wantTxs(TxMined)[0]
		balance, err := w.client.BalanceAt(w.ctx, crypto.PubkeyToAddress(w.operator.PublicKey), nil)
		must(t, err)
		before, err := w.client.BalanceAt(w.ctx, crypto.PubkeyToAddress(w.operator.PublicKey), new(big.Int).SetUint64(w.head()-1))
		must(t, err)
		if paid := inGwei(before.Sub(before, balance)); mined.Spent == nil || mined.Spent.Gwei != paid || mined.Reserved < paid {
			t.Errorf("%+v is recorded of %d reserved gwei, want the %d that were paid", mined.Spent, mined.Reserved, paid)
		}

		// Half of the amount reserved for another one is left, in a new process.
		w.clock.Add(DefaultLeaseTTL)
		writer = w.writer(allow((mined.Spent.Gwei+mined.Reserved/2)*100/registryBudget+100), func(c *Config) { c.Metrics = writer.conf.Metrics })
		second := commitments(20)
		w.enqueueIntents(invoice.IntentOpen, second...)
		for range 3 {
			writer.report(writer.tick(w.ctx))
			w.clock.Add(blockerCheckEvery)
		}
		w.wantTxs(TxMined)
		w.wantDue(20)
		s := writer.Status()
		if !strings.Contains(s.Err, errBudget.Error()) || s.Spent.Cmp(inWei(uint64(mined.Spent.Gwei))) != 0 || s.Budget.Cmp(s.Spent) <= 0 {
			t.Errorf("status is %+v, want it to say that the budget is used up", s)
		}
		if got := strings.Count(log.String(), "level=ERROR"); got != 1 {
			t.Errorf("%d errors were logged, want 1:\n%s", got, &log)
		}
		families, err := measured.Gather()
		must(t, err)
		blocked := false
		for _, f := range families {
			for _, m := range f.GetMetric() {
				blocked = blocked || f.GetName() == "quittance_writer_blocked" && m.GetGauge().GetValue() == 1
			}
		}
		if !blocked {
			t.Error("no metric says that the writer is blocked")
		}

		w.clock.Add(budgetWindow - time.Minute)
		expect.Error(t, errBudget, "before a day has passed a round ends with")(writer.tick(w.ctx))
		w.clock.Add(time.Minute)
		writer.report(writer.tick(w.ctx))
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined, TxMined)
		w.wantStatus(statusOpen, append(first, second...)...)
		if s := writer.Status(); s.Err != "" {
			t.Errorf("status is %+v after a day", s)
		}
	})
}

// TestDailyBudgetWhileTheClockIsAhead uses up the daily budget, and sets the machine's clock forward by two days. The
// writer may not spend again until a day has passed by the schedule's clock.
func TestDailyBudgetWhileTheClockIsAhead(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ahead := time.Duration(0)
		budget := func(gwei int64) func(*Config) {
			return func(c *Config) {
				c.Chain.Limits.PerDayGwei = uint64(gwei)
				c.Now, c.Schedule = func() time.Time { return w.clock.Now().Add(ahead) }, w.clock.Now
			}
		}
		writer := w.writer(budget(100_000_000_000))
		w.enqueueIntents(invoice.IntentOpen, commitments(20)...)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
		mined := w.wantTxs(TxMined)[0]
		w.clock.Add(DefaultLeaseTTL)
		writer = w.writer(budget((mined.Spent.Gwei+mined.Reserved/2)*100/registryBudget + 100))
		w.enqueueIntents(invoice.IntentOpen, commitments(20)...)
		ahead = 2 * budgetWindow
		expect.Error(t, errBudget, "while the clock is ahead a round ends with")(writer.tick(w.ctx))
		w.clock.Add(budgetWindow)
		writer.report(writer.tick(w.ctx))
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined, TxMined)
	})
}

// TestStuckAfterTheClockWasSetBack signs a transaction while the machine's clock is a day ahead. The clock is corrected,
// and the transaction is replaced as soon as any other.
func TestStuckAfterTheClockWasSetBack(t *testing.T) {
	w := onSQLite(t)
	ahead := 24 * time.Hour
	writer := w.writer(func(c *Config) {
		c.Now, c.Schedule = func() time.Time { return w.clock.Now().Add(ahead) }, w.clock.Now
	})
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.tick(writer)
	ahead = 0
	w.sealEmpty(bumpBlocks)
	w.clock.Add(bumpAfter)
	w.tick(writer)
	if n := len(w.wantTxs(TxSent)[0].Attempts); n != 2 {
		t.Errorf("there are %d attempts, want 2", n)
	}
}

// TestBudgetCountsWhatIsInFlight makes a replacement cost more than the rest of the budget.
func TestBudgetCountsWhatIsInFlight(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(20)...)
	w.tick(writer)
	reserved := w.wantTxs(TxSent)[0].Reserved
	w.clock.Add(DefaultLeaseTTL)
	writer = w.writer(func(c *Config) { c.Chain.Limits.PerDayGwei = uint64(reserved) })
	w.tick(writer)
	w.sealEmpty(bumpBlocks)
	w.clock.Add(bumpAfter)
	expect.Error(t, errBudget, "a round that offers more than is left ends with")(writer.tick(w.ctx))
	expect.Len(t, w.wantTxs(TxSent)[0].Attempts, 1, "attempts were signed:")
	w.seal(1)
	w.tick(writer) // the transaction in flight is still mined
	w.wantTxs(TxMined)
}
