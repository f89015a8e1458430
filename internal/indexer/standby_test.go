package indexer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// newStandby returns an indexer of the fixture's chain and ledger with a separate node. It reads the chain only while
// reads is set.
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
	expect.Success(t)(f.fill(t.Context()))
	f.report(nil)
	return f.Status()
}

// TestStandby has a replica follow another one without reading anything, and take over.
func TestStandby(t *testing.T) {
	f := newFixture(t, nil)
	standby, reads := newStandby(t, f, nil)
	expect.Error(t, errUnread, "before the chain was read")(standby.sync(t.Context()))
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
		expect.Equal(t, standby.node.Calls(method), 0, "calls of %s by the standby:", method)
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

// TestStandbyOfGap shows another replica's progress in reading older blocks.
func TestStandbyOfGap(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(500)
	start := uint64(1)
	f.restart(t, func(c *Config) { c.Chain.StartBlock = &start })
	expect.Success(t)(f.sync(t.Context()))
	standby, _ := newStandby(t, f, nil)
	s := standby.standBySync(t)
	if s.Backfill == nil || s.Backfill.At != 1 {
		t.Errorf("while another replica has older blocks to read: %+v", s.Backfill)
	}
	f.catchUp(t)
	if s := standby.standBySync(t); s.Backfill != nil {
		t.Errorf("after another replica has read older blocks: %+v", s.Backfill)
	}
	expect.Equal(t, standby.node.Calls("eth_getLogs"), 0, "calls of eth_getLogs by the standby:")
}

// TestStandbyOfNobody has no replica read the chain: one replica starts to read it after maxBehind, until another does.
func TestStandbyOfNobody(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.Mine()
	f.catchUp(t)
	c := newClock()
	standby, _ := newStandby(t, f, func(conf *Config) { conf.Now = c.Now })
	standby.standBySync(t) // no block is to be read
	f.chain.Mine()
	standby.standBySync(t)
	c.Add(maxBehind)
	if s := standby.standBySync(t); s.Indexed != 1 {
		t.Errorf("a standby reads too early: %+v", s)
	}
	c.Add(time.Millisecond)
	for range 3 {
		standby.catchUp(t)
		if cursor, _ := f.ledger.Cursor(t.Context(), ""); cursor.Indexed.Number != f.chain.Head().Number {
			t.Errorf("nobody reads block %d", f.chain.Head().Number)
		}
		f.chain.Mine()
		c.Add(time.Second)
	}
	f.catchUp(t) // another reads
	standby.standBySync(t)
	f.chain.Mine()
	before := standby.node.Calls("eth_getLogs")
	standby.standBySync(t)
	if standby.node.Calls("eth_getLogs") != before {
		t.Error("a standby reads though another does")
	}
}

// TestStandbyBehind has a standby with a node that lacks indexed blocks, so that the standby cannot take over.
func TestStandbyBehind(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(5)
	f.catchUp(t)
	c := newClock()
	standby, _ := newStandby(t, f, func(conf *Config) { conf.Now = c.Now })
	standby.node.Lag(2)
	standby.standBySync(t)
	c.Add(maxBehind)
	expect.Error(t, errNodeBehind, "a standby that lacks blocks")(standby.sync(t.Context()))
}

// TestFailing has a replica leave the chain to others when one of its loops fails for failingAfter, or a sync takes
// more than stuckAfter.
func TestFailing(t *testing.T) {
	c := newClock()
	f := newFixture(t, func(conf *Config) { conf.Now = c.Now })
	note := func(loop string, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.noteFailure(loop, err)
	}
	want := func(when string, want bool) {
		t.Helper()
		if f.failing() != want {
			t.Errorf("%s: failing is %t", when, !want)
		}
	}
	want("at the start", false)
	for _, loop := range []string{loopHead, loopGap} {
		note(loop, errors.New("no node answers"))
		c.Add(failingAfter)
		note(loop, errors.New("no node answers"))
		want("after failures for a while", false)
		c.Add(1)
		want("after failures for longer", true)
		note(loop, nil)
		want("after a success", false)
	}
	for _, err := range []error{errUnread, &NoQuorumError{"one node alone"}, &HaltedError{testChain.Key, "for a test"}} {
		note(loopHead, err)
		c.Add(time.Hour)
		want(err.Error(), false)
	}
	f.loops[loopHead] = &loop{advanced: time.Now()}
	want("in a sync", false)
	f.loops[loopHead].advanced = time.Now().Add(-stuckAfter)
	want("in a sync that takes long", true)
}

// TestStandbyOfHalted expects all replicas to show a halt.
func TestStandbyOfHalted(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.Mine()
	f.catchUp(t)
	expect.OK(t, f.ledger.Halt(context.Background(), testChain.Key, "for a test"))
	standby, _ := newStandby(t, f, nil)
	_, err := standby.sync(t.Context())
	var halted *HaltedError
	if !errors.As(err, &halted) || halted.Reason != "for a test" {
		t.Errorf("a standby of a halted chain: %v", err)
	}
}
