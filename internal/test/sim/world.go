package main

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/config"
)

const (
	// worldBegins is the time at which a bubble begins, in Unix seconds.
	worldBegins = 946_684_800
	// auditCalls is the default of chains[].auditCallsPerMinute.
	auditCalls = 60
	// setupTime is how long a world has no faults at its begin.
	setupTime = 10 * time.Second
)

// world is everything around the service, of one seed.
type world struct {
	seed        uint64
	log         *trace
	net         *network
	plan        *plan
	chains      []*worldChain
	merchants   []*merchant
	services    []*service // replicas; one with SQLite
	database    *database
	machine     machineClock
	operatorKey access.Key
	operator    *client
	browser     *client       // signed in with the operator's first key
	rekeyed     bool          // the operator has another key
	active      time.Duration // how long things happen
	pace        atomic.Int64  // least time between blocks, so that a long outage has few
	listDelay   time.Duration // until a list of allowed addresses is in force
	changes     bool          // the operator changes the configuration
	outage      time.Duration // of the service, after the active time; may be 0
	returns     atomic.Int64  // when the outage ends, in Unix nanoseconds
	folder      string
	mail        *mailServer
	screening   *screeningHook // nil without one
	restored    atomic.Int64   // when a backup was put in the database's place, in Unix nanoseconds
	recovered   atomic.Int64   // when merchants had their keys again

	mu       sync.Mutex
	orders   []*order
	failures []string            // contradictions, the first one first
	followed []string            // ids of the events that were followed
	handled  map[string]*handled // by id of the payment

	ctx  context.Context // ends with the world
	end  context.CancelFunc
	busy sync.WaitGroup // actors, which end after the active time
	all  sync.WaitGroup // everything else
}

// worldChain is a chain with its nodes and its configuration.
type worldChain struct {
	*evmChain
	key         string
	every       time.Duration // between blocks
	finality    chain.Finality
	both        bool // the service runs with the second token, too
	away        bool // it runs without the chain
	gasless     bool
	limits      chain.SpendLimits
	limited     bool    // the limits may keep it from sending what is due
	reorgs      float64 // chance of one after a block
	drops       float64 // chance of one that replaces the newest block with transactions
	quorum      int
	compareLogs bool
	omits       bool   // the only fault of its nodes is that one leaves out logs, which compareLogs finds
	dishonest   string // a node; empty without one
	misdates    bool   // one of its nodes gives blocks another time, or has other blocks
	fullBloom   bool
	writes      bool
	sweep       chain.SweepTime
	poll, idle  time.Duration
	nodes       []*node
}

// fail records a contradiction.
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.log.say("JUDGE", "%s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, text)
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

// newWorld draws a world.
func newWorld(seed uint64, log *trace, off map[int]bool, shared *database) *world {
	w := &world{seed: seed, log: log, database: shared, net: newNetwork(), plan: &plan{off: off, met: map[int]uint64{}, hit: map[int]int{}, crashes: map[chan struct{}]int{}, began: time.Now()}, machine: machineClock{began: time.Now()}, handled: map[string]*handled{}}
	w.ctx, w.end = context.WithCancel(context.Background())
	r := stream(seed, "world")
	w.active = time.Duration(50+r.IntN(100)) * time.Second
	w.listDelay = []time.Duration{config.DefaultAllowListDelay, 20 * time.Second}[stream(seed, "addresses").IntN(2)]
	w.changes = stream(seed, "configuration").IntN(2) == 0 && shared == nil // replicas have one configuration
	if r.IntN(4) == 0 {
		w.outage = time.Duration(r.ExpFloat64() * float64(20*time.Hour)).Truncate(time.Second)
	}
	w.operator, w.browser = newClient(w, "operator", nil), newClient(w, "operator's browser", nil)
	w.operator.calm, w.browser.calm = true, true
	w.drawOperatorKey("operator key")
	outside := w.net.host("outside")
	for i := range []int{1, 1, 1, 1, 1, 2, 2, 3}[r.IntN(8)] {
		w.chains = append(w.chains, w.newWorldChain(r, i, outside))
	}
	for i := range 1 + r.IntN(2) {
		w.merchants = append(w.merchants, newMerchant(w, i, outside))
	}
	w.receiveMail(outside)
	w.screen(outside)
	w.drawFaults()
	return w
}

func (w *world) newWorldChain(r *mathrand.Rand, i int, outside *host) *worldChain {
	c := &worldChain{
		evmChain: newChain(int64(i)), key: fmt.Sprint("chain", i+1), every: time.Duration(2+r.IntN(12)) * time.Second,
		reorgs: []float64{0, 0.02, 0.1}[r.IntN(3)], drops: []float64{0, 0.1, 0.3}[r.IntN(3)], quorum: 1, compareLogs: true, fullBloom: r.IntN(2) == 0, writes: r.IntN(3) > 0,
	}
	c.gasless = c.writes
	c.drawLimits(stream(w.seed, "limits of "+c.key))
	c.drawPace(r)
	switch r.IntN(3) {
	case 0:
		c.finality = chain.Finality{Depth: uint64(r.IntN(8))}
	case 1:
		c.finality = chain.Finality{Tag: chain.TagSafe, Depth: uint64(r.IntN(3))}
	default:
		c.finality = chain.Finality{Tag: chain.TagFinalized}
	}
	nodes := 1 + r.IntN(3)
	if nodes > 1 {
		c.quorum = 1 + r.IntN(2)
		c.compareLogs = c.quorum == 1 // otherwise it has no effect
	}
	c.omits = c.quorum == 1 && r.IntN(4) == 0
	for k := range nodes {
		n := &node{
			name: fmt.Sprintf("%s/node%d", c.key, k+1), address: fmt.Sprintf("127.0.%d.%d:80", 10+i, k+1), chain: c.evmChain, plan: w.plan, log: w.log,
			own: map[int]*blockView{}, earlier: map[string]any{},
		}
		if r.IntN(3) == 0 && !c.omits {
			n.limits.batch, n.limits.blockRange, n.limits.perSecond = 1+r.IntN(20), uint64(1+r.IntN(50)), 20+r.IntN(100)
			n.limits.null, n.limits.lists = r.IntN(2) == 0, r.IntN(4) == 0
			n.limits.refusal = []int{http.StatusOK, http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusBadGateway}[r.IntN(6)]
		}
		n.invent = func(on *block) []*types.Transaction { return w.invent(c, on) }
		serve(outside, n.address, n)
		c.nodes = append(c.nodes, n)
	}
	return c
}

// drawFaults draws what goes wrong, and when. One of a chain's nodes may be dishonest if the service compares two.
func (w *world) drawFaults() {
	r := stream(w.seed, "faults")
	targets, byzantine, wrong := []string{"clients"}, map[string]bool{}, []fault(nil)
	for _, c := range w.chains {
		dishonest := c.nodes[r.IntN(1+r.IntN(len(c.nodes)))].name // often the first, which is preferred
		if c.omits {
			wrong = append(wrong, drawByzantine(r, dishonest, w.active-setupTime, []string{"eth_getLogs", "eth_getLogs eth_getBlockReceipts"}[r.IntN(2)]))
			continue
		}
		for _, n := range c.nodes {
			targets = append(targets, n.name)
		}
		if byzantine[dishonest] = c.quorum == 2; c.quorum == 2 && r.IntN(4) > 0 {
			wrong = append(wrong, drawByzantine(r, dishonest, w.active-setupTime, []string{"", "eth_getLogs"}[r.IntN(2)]))
			c.dishonest = dishonest
			c.misdates = wrong[len(wrong)-1].ahead != 0 || wrong[len(wrong)-1].forked
		}
	}
	for _, m := range w.merchants {
		targets = append(targets, m.name)
	}
	for range 1 + r.IntN(12) {
		target := targets[r.IntN(len(targets))]
		w.plan.faults = append(w.plan.faults, drawFault(r, target, w.active-setupTime, byzantine[target]))
	}
	w.plan.faults = append(w.plan.faults, wrong...)
	for r := stream(w.seed, "mail faults"); r.IntN(2) == 0; {
		w.plan.faults = append(w.plan.faults, drawFault(r, "mail", w.active-setupTime, false))
	}
	for r := stream(w.seed, "heads"); r.IntN(2) == 0; {
		if target := w.drawNode(r, 1); target != "" {
			w.plan.faults = append(w.plan.faults, drawHead(r, target, time.Duration(r.Int64N(int64(w.active-setupTime))), w.active/4))
		}
	}
	for i := range w.plan.faults {
		f := &w.plan.faults[i]
		f.id, f.from, f.to = i+1, f.from+setupTime, f.to+setupTime
	}
}

// drawNode draws a node of a chain with at least so many, or none if another fault is the only one of its chain.
func (w *world) drawNode(r *mathrand.Rand, least int) string {
	if c := w.chains[r.IntN(len(w.chains))]; !c.omits && len(c.nodes) >= least {
		return c.nodes[r.IntN(len(c.nodes))].name
	}
	return ""
}

// invent returns the transactions of a block that only a dishonest node has: half of those that wait, and a payment of an
// invoice.
func (w *world) invent(c *worldChain, on *block) []*types.Transaction {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.pool[:len(c.pool)/2])
	if len(w.orders) == 0 {
		return all
	}
	if o := w.orders[hashOf(on.seq)%uint64(len(w.orders))]; o.chain == c && len(o.acks) > 0 {
		key, id := account(stranger), common.HexToHash(o.first().OnChainInvoiceID)
		data := append(contracts.NewTestUSDC().PackTransfer(o.payTo(), o.amount()), id[:]...)
		token := o.token()
		all = append(all, c.sign(key, on.state.GetNonce(addressOf(key)), &token, data, callGas))
	}
	return all
}

// mine makes blocks until the world ends. Reorgs end with the faults.
func (w *world) mine(c *worldChain) {
	r := stream(w.seed, "blocks of "+c.key)
	for clock.Sleep(w.ctx, max(c.every, time.Duration(w.pace.Load()))*time.Duration(800+r.IntN(400))/1000, nil) {
		b := c.mine(time.Now())
		w.log.say(c.key, "block %d %s with %d transactions", b.number, b.hash.TerminalString(), len(b.txs))
		c.mu.Lock()
		if behind := uint64(3 + r.IntN(4)); b.number > behind {
			c.tag = max(c.tag, b.number-behind)
		}
		c.mu.Unlock()
		if n := w.replaced(r, c); n > 0 && time.Since(w.plan.began) < w.active && time.Since(w.plan.began) > setupTime {
			w.reorg(r, c, n)
		}
	}
}

// replaced draws how many of a chain's newest blocks a reorg replaces now. It is 0 for no reorg.
func (w *world) replaced(r *mathrand.Rand, c *worldChain) int {
	view, depth := c.view(), int(c.finality.Depth)
	if c.finality.Tag != "" {
		depth = len(view) - 1 - int(c.tag)
	}
	depth = min(depth, len(view)-2) // block 1 has the contracts
	newest := 1
	for newest <= depth && len(view[len(view)-newest].txs) == 0 {
		newest++
	}
	plain, drop := r.Float64() < c.reorgs, r.Float64() < c.drops
	switch {
	case depth <= 0:
	case drop && newest <= depth:
		return newest + r.IntN(depth-newest+1)
	case plain:
		return 1 + r.IntN(depth)
	}
	return 0
}

// reorg replaces blocks. A part of their transactions, which may be all, is not mined again, or only later.
func (w *world) reorg(r *mathrand.Rand, c *worldChain, n int) {
	w.log.say(c.key, "reorg of %d blocks", n)
	kept := []float64{0, 0.5, 0.9, 1}[r.IntN(4)]
	c.reorg(n, func(tx *types.Transaction) bool {
		if r.Float64() < kept {
			return true
		}
		if back := time.Duration(r.Int64N(int64(time.Minute))); back < 30*time.Second {
			time.AfterFunc(back, func() { w.sendAgain(c, tx) })
		}
		return false
	})
}

// sendAgain sends a transaction again that no node has any more. Its sender may have sent another with its nonce. A
// service with a restored database does not have its transactions of the lost past.
func (w *world) sendAgain(c *worldChain, tx *types.Transaction) {
	if !w.isRestored() || c.senderOf(tx) != addressOf(operatorKey) {
		_ = c.add(tx)
	}
}

// final returns the blocks that can no longer be replaced.
func (c *worldChain) final() []*block {
	view := c.view()
	c.mu.Lock()
	defer c.mu.Unlock()
	height, ok := c.finality.Height(uint64(len(view)-1), c.tag)
	if !ok {
		return nil
	}
	return view[:height+1]
}

// run runs the world to its end and returns what contradicts it.
func (w *world) run(folder string) []string {
	defer func() { _ = os.RemoveAll(folder) }()
	w.folder = folder
	for i := range w.database.replicas() {
		s, err := newService(w, i, filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return []string{err.Error()}
		}
		w.services = append(w.services, s)
	}
	for _, c := range w.chains {
		w.all.Go(func() { w.mine(c) })
	}
	for _, s := range w.services {
		if err := s.start(); err != nil {
			w.fail("%v", err)
		}
	}
	if !w.failed() {
		w.live()
	}
	w.end()
	w.all.Wait()
	for _, s := range w.services {
		if s.ended != nil {
			if err := s.stopNow(); err != nil {
				w.fail("the service did not stop in order: %v", err)
			}
		}
	}
	w.net.close()
	clock.Sleep(context.WithoutCancel(w.ctx), time.Second, nil) // net/http dials on after a request has ended
	for _, s := range w.services {
		s.disk.Close()
	}
	return w.failures
}

// live lets things happen, ends the faults and judges.
func (w *world) live() {
	for _, m := range w.merchants {
		if err := m.register(); err != nil {
			w.fail("set up %s: %v", m.name, err)
			return
		}
	}
	_ = w.browser.call(http.MethodPost, "/dashboard/sign-in", url.Values{"key": {w.operatorKey.Reveal()}}, nil) // a failure leaves it signed out
	for _, m := range w.merchants {
		w.busy.Go(m.trade)
		w.busy.Go(m.clerks)
	}
	w.busy.Go(w.disturb)
	w.busy.Go(w.screening.operate)
	w.all.Go(w.setClocks)
	w.all.Go(w.follow)
	w.busy.Go(w.cutConnections)
	w.all.Go(w.services[0].backUp)
	var operators sync.WaitGroup
	for _, s := range w.services {
		operators.Go(s.operate)
	}
	operators.Wait()
	w.plan.stop()
	w.log.say("world", "the faults have stopped")
	w.busy.Wait()
	w.afterwards()
	w.judge()
}
