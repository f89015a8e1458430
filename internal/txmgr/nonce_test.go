package txmgr

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// writerThatLostItsNonce returns a writer after its broadcast of two intents failed and another program used the nonce.
func (w *world) writerThatLostItsNonce(changes ...func(*Config)) (*Writer, []invoice.Hash) {
	w.Helper()
	writer, ids := w.writer(changes...), commitments(2)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.net.cut(sendRaw)
	if err := writer.tick(w.ctx); !errors.Is(err, errCut) {
		w.Fatal(err)
	}
	w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0)) // uses the nonce
	w.seal(1)
	w.net.before = nil
	w.tick(writer)
	return writer, ids
}

func TestNonceUsedByAnotherProgram(t *testing.T) {
	parallelOnSQLite(t, func(_ *testing.T, w *world) {
		writer, ids := w.writerThatLostItsNonce()
		w.clock.Add(lostAfter - 1)
		w.tick(writer)
		w.wantTxs(TxSent)
		w.clock.Add(1)
		w.tick(writer)
		w.wantTxs(TxFailed)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxFailed, TxMined)
		w.wantStatus(statusOpen, ids...)
	})
}

// TestNonceUsedByAnotherProgramWhileTheClocksDiffer has the machine's clock ahead of the schedule's, as after a night in
// which the service was off.
func TestNonceUsedByAnotherProgramWhileTheClocksDiffer(t *testing.T) {
	w := onSQLite(t)
	writer, ids := w.writerThatLostItsNonce(func(c *Config) {
		c.Now, c.Schedule = func() time.Time { return w.clock.Now().Add(9 * time.Hour) }, w.clock.Now
	})
	w.clock.Add(lostAfter)
	w.tick(writer)
	w.wantTxs(TxFailed)
	w.tick(writer)
	w.seal(1)
	w.wantStatus(statusOpen, ids...)
}

// TestFirstNonce has a sender with a first nonce that the deployment of the registry used: one node's answer is
// accepted soon.
func TestFirstNonce(t *testing.T) {
	w := onSQLite(t)
	var log strings.Builder
	writer := w.writer(func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	ids := commitments(2)
	w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
	w.seal(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	for _, waits := range []time.Duration{0, firstAfter - 1} {
		w.clock.Add(waits)
		err := writer.tick(w.ctx)
		if !errors.Is(err, errFirstNonce) {
			t.Fatalf("after %s a round ends with %v, want %v", waits, err, errFirstNonce)
		}
		writer.report(err)
	}
	w.clock.Add(1)
	writer.report(writer.tick(w.ctx))
	if text := log.String(); strings.Contains(text, "level=WARN") || strings.Count(text, "transaction manager waits ") != 1 ||
		!strings.Contains(text, "transaction manager waits no longer") {
		t.Errorf("nothing failed, and the log has\n%s", text)
	}
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
	w.wantStatus(statusOpen, ids...)
}

func TestNonceThatAReorgFreedIsUsed(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(2)
	w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0)) // another program's, lost permanently
	w.seal(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.believed(writer)
	w.seal(1)
	w.tick(writer)
	if w.wantTxs(TxMined)[0].Spent == nil {
		t.Error("the mined transaction has no cost")
	}
	must(t, w.dev.Fork(w.ctx, 2, nil, nil, nil))
	w.dev.DropPending()
	w.believed(writer) // the transaction with the nonce behind the free one is given up
	if spent := w.wantTxs(TxFailed)[0].Spent; spent != nil {
		t.Errorf("what the reorg dropped costs %+v", spent)
	}
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined, TxFailed)
	w.wantStatus(statusOpen, ids...)
	expect.Equal(t, w.nonce(), 1, "operator's nonce is")
}

func TestFailedTransactionThatAReorgFreedIsTakenUpAgain(t *testing.T) {
	w := onSQLite(t)
	writer, ids := w.writerThatLostItsNonce()
	w.clock.Add(lostAfter)
	w.tick(writer)
	w.wantTxs(TxFailed)
	must(t, w.dev.Fork(w.ctx, 1, nil))
	w.dev.DropPending()
	w.tick(writer)
	w.wantTxs(TxSent) // its nonce must be used before any other
	w.seal(1)
	w.tick(writer)
	w.tick(writer)
	w.wantTxs(TxMined, TxSent) // its intents were free in between: logging them twice has no effect
	w.wantStatus(statusOpen, ids...)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined, TxMined)
	w.seal(finality)
	w.index()
	w.tick(writer)
	w.wantAllDone()
}

func TestNonceThatSeemedLostIsJudgedAnew(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.cut(sendRaw)
	if err := writer.tick(w.ctx); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	foreign := pack(invoice.IntentOpen, nil, 0)
	w.external(w.operator, foreign)
	w.seal(1)
	w.net.before = nil
	w.tick(writer)
	must(t, w.dev.Fork(w.ctx, 1, nil, nil))
	w.dev.DropPending()
	w.net.cut(sendRaw)
	w.clock.Add(lostAfter)
	if err := writer.tick(w.ctx); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	w.external(w.operator, foreign)
	w.seal(1)
	w.net.before = nil
	w.tick(writer)
	w.wantTxs(TxSent)
	w.clock.Add(lostAfter)
	w.tick(writer)
	w.wantTxs(TxFailed)
}

func TestOperatorKeyIsChanged(t *testing.T) {
	w := onSQLite(t)
	ids := commitments(2)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.net.cut(sendRaw)
	if err := w.writer().tick(w.ctx); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	w.net.before = nil
	other, err := crypto.GenerateKey()
	must(t, err)
	w.grant(devchain.Address(other))
	w.fund(devchain.Address(other), params.Ether)
	w.clock.Add(DefaultLeaseTTL)
	writer := w.writer(func(c *Config) { c.Key = other })
	w.tick(writer)
	w.clock.Add(lostAfter)
	w.tick(writer)
	w.tick(writer)
	w.seal(1)
	w.wantTxs(TxFailed)
	w.wantStatus(statusOpen, ids...)
}

// TestForeignTransactionAhead has another program leave a transaction in the
// pool that no block takes. Two nodes know it.
func TestForeignTransactionAhead(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer(func(c *Config) { c.Nodes = func() []Client { return []Client{w.net, w.net} } })
	ids := commitments(2)
	foreign, err := types.SignNewTx(w.dev.Keys.Operator, types.LatestSignerForChainID(w.dev.ChainID()), &types.DynamicFeeTx{
		ChainID: w.dev.ChainID(), GasFeeCap: big.NewInt(params.GWei), GasTipCap: big.NewInt(20), Gas: 21_000, To: &w.dev.Token,
	})
	must(t, err)
	must(t, w.dev.SendSigned(w.ctx, foreign))
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	w.clock.Add(bumpAfter - 1)
	w.tick(writer) // one that is mined soon does no harm
	for waited := bumpAfter; waited < foreignAfter; waited += bumpAfter {
		w.clock.Add(min(bumpAfter, foreignAfter-waited))
		if waited+bumpAfter < foreignAfter {
			if err := writer.tick(w.ctx); !errors.Is(err, errForeignTx) {
				t.Fatalf("after %s a round ends with %v, want %v", waited, err, errForeignTx)
			}
		}
	}
	w.wantTxs() // no intent waits behind it
	w.clock.Add(time.Second)
	for range 12 { // the first attempts to replace it offer too little
		writer.report(writer.tick(w.ctx))
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
	}
	if ours := w.wantTxs(TxSent)[0]; w.nonce() != 0 || ours.Nonce != 0 {
		t.Errorf("our transaction has nonce %d, want 0", ours.Nonce)
	}
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
	w.wantStatus(statusOpen, ids...)
}

func TestForeignTransactionAheadThatIsDropped(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(2)
	w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	w.dev.DropPending()
	w.tick(writer)
	w.wantTxs(TxSent)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
	w.wantStatus(statusOpen, ids...)
}

// TestForeignTransactionBehind has another program leave a gap, which the writer's own transactions fill.
func TestForeignTransactionBehind(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	foreign, err := w.dev.Sign(w.dev.Keys.Operator, 2, w.dev.Registry, pack(invoice.IntentOpen, nil, 0))
	must(t, err)
	must(t, w.dev.SendSigned(w.ctx, foreign))
	ids := commitments(3)
	for _, id := range ids {
		w.enqueueIntents(invoice.IntentOpen, id)
		writer.report(writer.tick(w.ctx))
		w.clock.Add(lostAfter)
		w.tick(writer)
		w.seal(1)
		w.tick(writer)
	}
	w.wantStatus(statusOpen, ids...)
	all := w.wantTxs(TxMined, TxMined, TxMined)
	if last := all[2].Nonce; last != 3 || w.nonce() != 4 {
		t.Errorf("the last nonce is %d and %d are used, want 3 and 4", last, w.nonce())
	}
}

// believed makes the writer do what it does after its only node has given the same answer for long enough.
func (w *world) believed(writer *Writer) {
	w.Helper()
	if err := writer.tick(w.ctx); !errors.Is(err, errNonceUncertain) {
		w.Fatalf("a round ends with %v, want %v", err, errNonceUncertain)
	}
	w.clock.Add(lostAfter)
	w.tick(writer)
}

// childEnv makes the test binary run a writer instead of tests. It holds the database, node, registry, key, relay,
// deposit factory and token, one per line. Without the last two the writer sweeps no deposits, and without a relay it
// sends no authorizations.
const childEnv = "QUITTANCE_TEST_WRITER"

// kills is how often TestExtraKilledWriter kills one.
const kills = 15

func childRequested() bool { return os.Getenv(childEnv) != "" }

// childMain runs a writer until standard input ends.
func childMain() {
	if err := runChild(strings.Split(os.Getenv(childEnv), "\n")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild(args []string) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end of the input will do
	}()
	s, err := db.Open(ctx, args[0])
	if err != nil {
		return err
	}
	endpoint, err := chain.NewClient(chain.ClientConfig{URL: args[1]})
	if err != nil {
		return err
	}
	key, err := crypto.HexToECDSA(args[3])
	if err != nil {
		return err
	}
	local, _ := chain.Lookup(chain.Local)
	local.Registry = invoice.Address(common.HexToAddress(args[2]))
	gasless := args[4] != ""
	if gasless {
		local.AuthorizationRelay = invoice.Address(common.HexToAddress(args[4]))
	}
	if len(args) > 5 {
		local.DepositFactory = invoice.Address(common.HexToAddress(args[5]))
		local.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(common.HexToAddress(args[6])), Decimals: 6}}
		local.Sweep = atOnce
	}
	writer, err := New(Config{
		Chain: local, Key: key, Client: endpoint, Store: s, Gasless: gasless,
		Poll: trafficTime / 4, LeaseTTL: 5 * trafficTime,
	})
	if err != nil {
		return err
	}
	if err := writer.Run(ctx); err != nil {
		return err
	}
	endpoint.Close()
	return s.Close()
}

// TestExtraKilledWriter kills writers, each a process, at a random request to the node: before the request arrives, or after
// it was carried out.
func TestExtraKilledWriter(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		w := newWorld(t, newChain(t), dbtest.Open(t, url))
		line, near := newFaultyProxy(t, w.dev.RPCURL())
		env := strings.Join([]string{
			url, near, w.dev.Registry.Hex(), hex.EncodeToString(crypto.FromECDSA(w.dev.Keys.Operator)),
			"", w.dev.DepositFactory.Hex(), w.dev.Token.Hex(),
		}, "\n")
		k := newKiller(t, line, env)
		deposited := uint64(0)
		opened := w.traffic(func(int) bool { return !k.done() }, func() {
			if !k.done() {
				w.deposit("m", 2, 3)
				deposited += 5
			}
			k.replaceDead()
		})
		k.child.stop(t)
		w.wantStatus(statusOpen, opened...)
		w.wantBalance(w.settlementOf("m"), deposited)
		w.wantEveryNonceUsed()
		t.Logf("%d commitments and %d deposits in %d transactions survived %d kills", len(opened), len(w.deposits.invoices), len(w.txs()), k.killed)
	})
}

// killer kills a child at a random request to the node, and then the child that replaces it, kills times.
type killer struct {
	t      *testing.T
	line   *faultyProxy
	env    string
	child  *child
	died   atomic.Bool
	killed int
}

func newKiller(t *testing.T, line *faultyProxy, env string) *killer {
	t.Helper()
	k := &killer{t: t, line: line, env: env, child: startChild(t, env)}
	k.arm()
	return k
}

func (k *killer) done() bool { return k.killed >= kills }

// arm chooses the request at which the child is killed.
func (k *killer) arm() {
	left, how := rand.IntN(30), requestLost+fate(rand.IntN(2))
	victim := k.child
	k.line.decide(func() fate {
		if left--; left >= 0 {
			return arrives
		}
		victim.cmd.Process.Kill() //nolint:errcheck // the previous request may have killed it
		k.died.Store(true)
		return how
	})
}

// replaceDead starts another child if the last one was killed.
func (k *killer) replaceDead() {
	k.t.Helper()
	if !k.died.Load() {
		return
	}
	k.child.wait()
	k.killed++
	k.child = startChild(k.t, k.env)
	k.died.Store(false)
	if k.done() {
		k.line.decide(nil)
	} else {
		k.arm()
	}
}

type child struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

func startChild(t *testing.T, env string) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	c := &child{cmd: exec.CommandContext(ctx, os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+env)
	c.cmd.Stderr = os.Stderr
	var err error
	c.input, err = c.cmd.StdinPipe()
	must(t, err)
	must(t, c.cmd.Start())
	t.Cleanup(func() {
		cancel()
		c.wait()
	})
	return c
}

// wait waits for the end of a child that has ended or was killed.
func (c *child) wait() {
	if c.cmd.ProcessState == nil {
		c.cmd.Wait() //nolint:errcheck // it was killed
	}
}

// stop ends a child in an orderly way.
func (c *child) stop(t *testing.T) {
	t.Helper()
	must(t, c.input.Close())
	must(t, c.cmd.Wait())
}
