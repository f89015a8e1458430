package indexer

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain/chaintest"
)

// newStandby returns an indexer of the fixture's chain and ledger with a node of its own, which
// reads the chain only while reads is set.
func newStandby(t *testing.T, of *fixture, change func(*Config)) (standby *fixture, reads *atomic.Bool) {
	t.Helper()
	reads = new(atomic.Bool)
	standby = &fixture{chain: of.chain, node: of.chain.Serve(t), ledger: of.ledger}
	standby.restart(t, func(c *Config) {
		c.Reads = reads.Load
		if change != nil {
			change(c)
		}
	})
	return standby, reads
}

// standBySync syncs once and returns the status.
func (f *fixture) standBySync(t *testing.T) Status {
	t.Helper()
	more, err := f.sync(t.Context())
	if more || err != nil {
		t.Fatalf("a sync of a replica that does not read the chain: more %t, %v", more, err)
	}
	if _, err := f.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.report(nil)
	return f.Status()
}

// TestStandby has a replica follow what another reads without reading anything, and take over.
func TestStandby(t *testing.T) {
	f := newFixture(t, nil)
	standby, reads := newStandby(t, f, nil)
	if _, err := standby.sync(t.Context()); err == nil || err.Error() != "no replica has begun to read chain test yet" {
		t.Errorf("before the chain was read: %v", err)
	}
	for i := range 20 {
		f.chain.Mine(chaintest.NewTx(pays(alice, uint64(i+1))))
		if i == 10 {
			f.chain.Fork(1)
			f.chain.MineEmpty(2)
		}
		f.catchUp(t)
		s := standby.standBySync(t)
		f.report(nil)
		if cursor := f.Status(); s.Head != cursor.Indexed || s.Indexed != cursor.Indexed || s.Confirmed != cursor.Confirmed {
			t.Errorf("block %d: the other replica has read %d and confirmed %d, and the standby shows %d and %d of %d",
				i, cursor.Indexed, cursor.Confirmed, s.Indexed, s.Confirmed, s.Head)
		}
	}
	for _, method := range []string{"eth_getLogs", "eth_getBlockReceipts", "eth_getTransactionReceipt"} {
		if n := standby.node.Calls(method); n != 0 {
			t.Errorf("the standby called %s %d times", method, n)
		}
	}
	f.chain.Mine(chaintest.NewTx(pays(alice, 100)))
	reads.Store(true)
	standby.catchUp(t)
	f.chain.MineEmpty(3)
	standby.catchUp(t)
	if s := standby.Status(); !s.Reading {
		t.Errorf("after it took over: %+v", s)
	}
	checkLedger(t, f.chain, f.ledger, testChain.Finality.Depth)
}

// TestStandbyOfGap shows how far another replica has come in reading older blocks.
func TestStandbyOfGap(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(500)
	start := uint64(1)
	f.restart(t, func(c *Config) { c.Chain.StartBlock = &start })
	if _, err := f.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	standby, _ := newStandby(t, f, nil)
	s := standby.standBySync(t)
	if s.Backfill == nil || s.Backfill.At != 1 {
		t.Errorf("while another replica has older blocks to read: %+v", s.Backfill)
	}
	f.catchUp(t)
	if s := standby.standBySync(t); s.Backfill != nil {
		t.Errorf("after another replica has read older blocks: %+v", s.Backfill)
	}
	if n := standby.node.Calls("eth_getLogs"); n != 0 {
		t.Errorf("the standby called eth_getLogs %d times", n)
	}
}

// TestStandbyOfNobody has no replica read the chain, which is an error after maxBehind, and a
// reason for another replica to try.
func TestStandbyOfNobody(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.Mine()
	f.catchUp(t)
	c := newClock()
	standby, _ := newStandby(t, f, func(conf *Config) { conf.Now = c.Now })
	c.Add(time.Hour)
	standby.standBySync(t) // nothing is to be read
	f.chain.Mine()
	standby.standBySync(t)
	c.Add(maxBehind)
	standby.standBySync(t)
	c.Add(time.Millisecond)
	_, err := standby.sync(t.Context())
	if err == nil || !strings.Contains(err.Error(), "has read nothing for 30s, and is at block 1 of 2") {
		t.Errorf("when nobody reads the chain: %v", err)
	}
	standby.report(err)
	if c.Add(time.Hour); standby.failing() {
		t.Error("a replica that could read the chain leaves it to others because nobody does")
	}
}

// TestFailing has a replica leave the chain to others when its nodes fail for failingAfter, or a sync takes
// more than stuckAfter.
func TestFailing(t *testing.T) {
	c := newClock()
	f := newFixture(t, func(conf *Config) { conf.Now = c.Now })
	want := func(when string, want bool) {
		t.Helper()
		if f.failing() != want {
			t.Errorf("%s: failing is %t", when, !want)
		}
	}
	want("at the start", false)
	f.report(nil)
	for _, err := range []error{errors.New("no node answers"), &NoQuorumError{"one node alone"}} {
		f.report(err)
		c.Add(failingAfter)
		f.report(err)
		want("after failures for a while", false)
		c.Add(1)
		want("after failures for longer", true)
		f.report(&unreadError{"another does not read"})
		want("after another failed", false)
		f.report(nil)
	}
	f.report(&HaltedError{testChain.Key, "for a test"})
	c.Add(time.Hour)
	want("while it is halted", false)
	f.report(nil)
	c.Add(stuckAfter)
	want("in a sync that takes long", false)
	c.Add(1)
	want("in a sync that takes longer", true)
}

// TestStandbyOfHalted shows a halt on all replicas.
func TestStandbyOfHalted(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.Mine()
	f.catchUp(t)
	if err := f.ledger.Halt(context.Background(), testChain.Key, "for a test"); err != nil {
		t.Fatal(err)
	}
	standby, _ := newStandby(t, f, nil)
	_, err := standby.sync(t.Context())
	var halted *HaltedError
	if !errors.As(err, &halted) || halted.Reason != "for a test" {
		t.Errorf("a standby of a halted chain: %v", err)
	}
}
