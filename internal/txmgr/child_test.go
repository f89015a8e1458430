package txmgr

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
)

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
