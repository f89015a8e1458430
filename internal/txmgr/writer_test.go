package txmgr

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/alerttest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestMain(m *testing.M) {
	if childRequested() {
		childMain()
		return
	}
	if err := flag.Set("rapid.checks", "40"); err != nil { // make cases plays more
		panic(err)
	}
	goleak.VerifyTestMain(m,
		// started once by geth's packages, and never stopped
		goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"),
		// LevelDB's, which checks only from time to time whether it is closed
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	)
}

// each runs a test on a new chain, once with each database.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) { test(t, newWorld(t, newChain(t), s)) })
}

// parallelOnSQLite runs the test in a world on SQLite. It is for tests without an SQL statement of their own.
func parallelOnSQLite(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	test(t, onSQLite(t))
}

// onSQLite is for tests that do not depend on the database.
func onSQLite(t *testing.T) *world {
	t.Helper()
	return newWorld(t, newChain(t), dbtest.Open(t, dbtest.SQLite(t)))
}

func TestOpensThenCloses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		writer := w.writer()
		ids := commitments(3)
		w.enqueueIntents(invoice.IntentOpen, ids...)
		w.tick(writer)
		w.wantDue(0)
		w.wantTxs(TxSent)
		if s := writer.Status(); !s.Leader || s.InFlight != 1 || s.Err != "" {
			t.Errorf("status is %+v, want one transaction in flight", s)
		}
		w.seal(1)
		w.wantStatus(statusOpen, ids...)
		w.enqueueIntents(invoice.IntentClose, ids[:2]...)
		w.tick(writer) // sees the receipt, and continues immediately
		w.wantTxs(TxMined, TxSent)
		w.seal(1)
		w.tick(writer)
		w.wantTxs(TxMined, TxMined)
		w.wantStatus(statusClosed, ids[:2]...)
		w.wantStatus(statusOpen, ids[2])
		if w.allDone() {
			t.Error("intents are done before their events are final")
		}
		w.seal(finality)
		w.index()
		w.wantAllDone()
		w.wantTxs(TxMined, TxMined)
	})
}

func TestSendsOldestFirstAndOneKindAtATime(t *testing.T) {
	w := onSQLite(t)
	first, second := commitments(maxBatch+1), commitments(1)
	w.enqueueIntents(invoice.IntentOpen, first[:maxBatch-1]...)
	w.enqueueIntents(invoice.IntentClose, second...)
	w.enqueueIntents(invoice.IntentOpen, first[maxBatch-1:]...)
	writer := w.writer()
	for range 3 {
		w.tick(writer)
		w.tick(writer) // one is in flight: no other is sent
		w.seal(1)
	}
	w.tick(writer)
	var sizes []int
	for _, tx := range w.wantTxs(TxMined, TxMined, TxMined) {
		_, ids, err := commitmentsOf(tx)
		must(t, err)
		sizes = append(sizes, len(ids))
	}
	// The full batch skips the close in the middle, which is then the oldest.
	if sizes[0] != maxBatch || sizes[1] != 1 || sizes[2] != 1 {
		t.Errorf("transactions carry %v, want %d, the close, and the last open", sizes, maxBatch)
	}
	expect.Equal(t, w.txs()[1].Kind, TxClose, "second transaction is of kind")
	w.wantStatus(statusOpen, first...)
	w.wantStatus(statusClosed, second...)
}

// TestWithoutIntentsTheNodeIsAskedForTheBalance expects the first round to ask for the balance, and the next one
// for nothing.
func TestWithoutIntentsTheNodeIsAskedForTheBalance(t *testing.T) {
	w := onSQLite(t)
	var called []string
	w.net.before = func(method string, _ []any) error {
		called = append(called, method)
		return nil
	}
	writer := w.writer()
	w.tick(writer)
	w.tick(writer)
	if want := []string{"eth_chainId", "eth_getBalance"}; !slices.Equal(called, want) {
		t.Errorf("it called %q, want %q", called, want)
	}
}

func TestHaltedChainIsNotWritten(t *testing.T) {
	w := onSQLite(t)
	must(t, w.store.Update(w.ctx, func(tx *db.Tx) error {
		cursor, err := ledger.NewReader(tx).Cursor(w.ctx, "local")
		cursor.Halted = "a reorg deeper than finality"
		return errors.Join(err, ledger.SaveCursor(w.ctx, tx, "local", cursor))
	}))
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.tick(w.writer())
	w.wantTxs()
}

func TestOneWriterAtATime(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		one, two := w.writer(), w.writer()
		w.tick(one)
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		w.tick(two)
		if two.Status().Leader {
			t.Error("two writers lead")
		}
		w.wantTxs()
		w.tick(one)
		w.wantTxs(TxSent)

		// The first dies: the second waits for the lease's end, to the millisecond.
		w.clock.Add(DefaultLeaseTTL - time.Millisecond)
		w.tick(two)
		if two.Status().Leader {
			t.Error("the second writer leads before the lease ends")
		}
		w.clock.Add(time.Millisecond)
		w.seal(1)
		w.tick(two)
		w.wantTxs(TxMined)

		// The first wakes up, and its writes are refused.
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		expect.Error(t, db.ErrConflict, "a writer that lost its lease ends a round with")(one.process(w.ctx))
		w.wantTxs(TxMined)
		w.tick(two)
		w.wantTxs(TxMined, TxSent)
	})
}

func TestWriterThatLostItsLeaseAsksForIt(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	w.tick(writer)
	thief, later := db.WorkLease{Name: writer.lease.Name, Holder: "thief"}, w.clock.Now().Add(DefaultLeaseTTL)
	if taken, err := w.store.AcquireWorkLease(w.ctx, thief, later, later.Add(time.Millisecond)); err != nil || !taken {
		t.Fatal(taken, err)
	}
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	expect.Error(t, db.ErrConflict, "a turn without the lease ends with")(writer.tick(w.ctx))
	w.tick(writer)
	if writer.Status().Leader {
		t.Error("the writer believes that it still has the lease")
	}
}

// TestLeaseIsKeptInALongRound has a node that takes longer than the lease to answer. Another replica asks for the lease
// before the round has saved its transaction.
func TestLeaseIsKeptInALongRound(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	const ttl = 2 * time.Second
	writer := w.writer(func(c *Config) { c.Now, c.LeaseTTL = time.Now, ttl })
	other := db.WorkLease{Name: writer.lease.Name, Holder: "other"}
	w.enqueueIntents(invoice.IntentOpen, commitments(2)...)
	asked := false
	w.net.before = func(method string, _ []any) error {
		if method == "eth_call" && !asked {
			asked = true
			<-time.After(ttl + ttl/2)
			taken, err := w.store.AcquireWorkLease(w.ctx, other, time.Now(), time.Now().Add(ttl))
			must(t, err)
			if taken {
				t.Error("another replica took the lease during the round")
			}
		}
		return nil
	}
	w.tick(writer)
	if w.wantTxs(TxSent); !asked {
		t.Error("the round asked for no status")
	}

	// A lease that is lost nevertheless ends the round.
	err := writer.keepingLease(w.ctx, func(ctx context.Context) error {
		later := time.Now().Add(time.Hour)
		if _, err := w.store.AcquireWorkLease(ctx, other, later, later.Add(time.Hour)); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, db.ErrConflict) {
		t.Errorf("the round ends with %v, want ErrConflict", err)
	}
}

func TestRunWritesWhenWokenAndGivesTheLeaseBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		wake := make(chan struct{})
		writer := w.writer(func(c *Config) { c.Wake, c.Poll = wake, time.Hour })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- writer.Run(ctx) }()
		ids := commitments(2)
		w.enqueueIntents(invoice.IntentOpen, ids...)
		wake <- struct{}{}
		wake <- struct{}{} // received after the round that the first signal began
		w.seal(1)
		w.wantStatus(statusOpen, ids...)
		stop()
		must(t, <-ended)
		next := w.writer()
		w.tick(next)
		if !next.Status().Leader {
			t.Error("the lease was not given back")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	key, err := crypto.GenerateKey()
	must(t, err)
	for name, injectFault := range map[string]func(*Config){
		"no key":      func(c *Config) { c.Key = nil },
		"no registry": func(c *Config) { c.Chain.Registry = invoice.Address{} },
	} {
		conf := Config{Chain: chain.Chain{Key: chain.Local, Registry: invoice.Address{1}}, Key: key}
		injectFault(&conf)
		if _, err := New(conf); err == nil {
			t.Errorf("%s: a writer was made", name)
		}
	}
}

func TestSatisfiedIntentsAreNotSent(t *testing.T) {
	each(t, func(_ *testing.T, w *world) {
		writer := w.writer()
		ids := commitments(3)
		w.external(w.dev.Keys.Operator, pack(invoice.IntentClose, ids, 1<<62))
		w.seal(1)
		w.index() // the event comes before the intents
		w.enqueueIntents(invoice.IntentOpen, ids...)
		w.enqueueIntents(invoice.IntentClose, ids[:1]...)
		w.tick(writer)
		w.wantTxs()
		w.seal(finality - 1)
		w.index()
		w.tick(writer)
		w.wantDue(4) // not final yet
		w.seal(1)
		w.index()
		w.tick(writer)
		w.wantAllDone()
		w.wantTxs()
	})
}

func TestPaidCommitmentNeedsNeither(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	paid := w.pay()
	w.seal(1)
	w.enqueueIntents(invoice.IntentOpen, paid)
	w.enqueueIntents(invoice.IntentClose, paid)
	w.tick(writer)
	w.wantTxs()
	w.seal(finality)
	w.index()
	w.wantAllDone()
}

// closing is a node by which the registry has closed all commitments.
type closing struct{ Client }

func (c closing) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	err := c.Client.BatchCallContext(ctx, batch)
	for _, call := range batch {
		if word, ok := call.Result.(*hexutil.Bytes); ok && len(*word) == 32 {
			(*word)[31] = 2 // as the contract numbers it
		}
	}
	return err
}

// deaf is a node that answers no batch.
type deaf struct{ Client }

func (deaf) BatchCallContext(context.Context, []rpc.BatchElem) error { return errCut }

// TestOneNodeDecidesNoSatisfaction has a node (c) by which all commitments are closed. If another node (h) denies it, they are
// opened. If no other one answers (d), they wait.
func TestOneNodeDecidesNoSatisfaction(t *testing.T) {
	for letters, sent := range map[string]bool{"c": false, "ch": true, "hc": true, "chh": true, "cd": false, "cc": false} {
		w := onSQLite(t)
		var nodes []Client
		for _, letter := range letters {
			nodes = append(nodes, map[rune]Client{'h': w.net, 'c': closing{w.net}, 'd': deaf{w.net}}[letter])
		}
		writer := w.writer(func(c *Config) { c.Client, c.Nodes = nodes[0], func() []Client { return nodes } })
		w.enqueueIntents(invoice.IntentOpen, commitments(3)...)
		w.tick(writer)
		if sent {
			w.wantTxs(TxSent)
			continue
		}
		w.wantTxs()
		w.seal(finality + 1)
		w.index()
		w.tick(writer)
		if letters == "cd" {
			w.wantDue(3)
		} else {
			w.wantAllDone()
		}
	}
}

func TestSatisfactionThatAReorgTakesBackIsSent(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(1)
	w.external(w.dev.Keys.Operator, pack(invoice.IntentClose, ids, 1<<62))
	w.seal(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	w.wantTxs()
	must(t, w.dev.Fork(w.ctx, 1))
	w.dev.DropPending()
	w.seal(1 + finality)
	w.index()
	w.tick(writer)
	w.tick(writer)
	w.wantTxs(TxSent)
}

func TestSkippedIntentsAreLookedAtAnew(t *testing.T) {
	w := onSQLite(t)
	writer := w.writer()
	ids := commitments(2)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(writer)
	w.seal(1)
	w.missed = ids[:1] // its node leaves the event out
	w.index()
	w.tick(writer)
	w.seal(finality)
	w.index()
	w.tick(writer) // finds the event in the receipt
	w.wantDue(0)
	w.wantAllDone()
	w.wantTxs(TxMined)
}

// TestIdleWriterMakesOneQuery gives each kind of work to a writer that has none, and has none again afterwards.
func TestIdleWriterMakesOneQuery(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		queries := 0
		writer := w.writer(w.gasless, w.sweeping(atOnce), func(c *Config) {
			c.Leases, c.Store = w.store, db.Recorded(w.store, func(string, []any) { queries++ })
		})
		wantIdle := func() {
			t.Helper()
			w.tick(writer) // finds that everything is done
			queries = 0
			w.tick(writer)
			expect.Equal(t, queries, 1, "queries of a round without work:")
		}
		wantIdle()
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		w.tick(writer)
		w.wantTxs(TxSent)
		w.seal(1 + finality)
		w.index()
		w.tick(writer)
		wantIdle()
		w.acceptOf(w.payer(100))
		w.tick(writer)
		w.wantTxs(TxMined, TxSent)
		w.seal(1 + finality)
		w.indexAuthorizations()
		w.tick(writer)
		wantIdle()
		w.deposit("m", 100)
		w.tick(writer)
		w.wantTxs(TxMined, TxMined, TxSent)
	})
}

// TestExtraAlertWithoutFunds expects the metrics of an operator without funds to fire an alert.
func TestExtraAlertWithoutFunds(t *testing.T) {
	w := onSQLite(t)
	poor, err := crypto.GenerateKey()
	must(t, err)
	w.grant(devchain.Address(poor))
	registry := prometheus.NewRegistry()
	writer := w.writer(func(c *Config) { c.Key, c.Metrics = poor, NewMetrics(registry) })
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	writer.report(writer.tick(w.ctx))
	alerttest.Fire(t, exported(registry), "QuittanceWriterFunds")
}

// TestExtraAlertOfStalledSweeps expects an alert if a sweep transaction is not mined for two hours.
func TestExtraAlertOfStalledSweeps(t *testing.T) {
	w := onSQLite(t)
	registry := prometheus.NewRegistry()
	writer := w.writer(w.sweeping(atOnce), func(c *Config) { c.Metrics = NewMetrics(registry) })
	w.deposit("m", 5)
	w.tick(writer)
	w.clock.Add(2 * time.Hour)
	w.tick(writer)
	alerttest.Fire(t, exported(registry), "QuittanceSweepsStalled")
}

// exported returns metrics in Prometheus' text format.
func exported(registry *prometheus.Registry) string {
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return page.Body.String()
}
