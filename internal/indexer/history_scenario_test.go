package indexer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// plan has the parameters of a history.
type plan struct {
	finality  chain.Finality
	nodes     int
	quorum    int
	dishonest int  // index of the byzantine node
	fullBloom bool // every log is in its block's bloom filter
	replicas  int
	late      bool // indexing starts in the middle of the history
	begin     bool // a first block is configured
	long      bool // stretches of empty blocks are long enough to be read by range
	stalls    bool // calls of nodes may stall
	steps     int
}

func (p plan) String() string {
	return fmt.Sprintf("finality %s, %d nodes of which %d must agree, %d replicas, %d steps; %+v",
		p.finality, p.nodes, p.quorum, p.replicas, p.steps,
		map[string]bool{"full bloom": p.fullBloom, "late": p.late, "begin": p.begin, "long": p.long, "stalls": p.stalls})
}

// scenario is a running history.
type scenario struct {
	*stage
	*rand.Rand
	plan
	db   *historyDB
	seed uint64
	name string // of its chain

	conf     chain.Chain
	net      *chaintest.Chain
	node     *chaintest.Node
	proxies  []*chaintest.Proxy
	ledger   *faultyLedger
	service  *ledger.Service
	indexers []*Indexer
	lived    *stage // everything that ends with a restart
	random   *rand.ChaCha8
	wall     atomic.Int64 // the time of the indexers, in milliseconds
	clock    atomic.Int64 // the time of the service, in Unix seconds; it never goes back

	parties        []party
	orders         []*order
	actions        []*action
	loose          []*action // removed from the chain by a reorg, and not mined again
	forgedPayments []chaintest.Forge
	partial        bool // some events of the registry, or refunds, may have been left out
	falsifies      bool // the dishonest node falsifies answers
	gapped         bool // newer blocks were read before older ones
	skipped        bool // transactions were read after transactions of newer blocks

	mu      sync.Mutex
	highest uint64 // highest block that a node can have reported
	floor   uint64 // newest block that a node can have called final
	tag     uint64 // block with the finality tag
	outcome historyOutcome
}

// historyOutcome is the result of a history.
type historyOutcome struct {
	plan          plan
	discrepancies []discrepancy
	tally         map[string]int
}

// discrepancy is a difference between the ledger and the chain.
type discrepancy struct{ kind, text string }

// Kinds of discrepancies.
const (
	missed        = "missed"
	extraPayments = "false"
	doubled       = "doubled"
	misattributed = "wrong attribution"
	misread       = "wrong"
	wrongEvents   = "event"
	stuck         = "stuck"
)

func (s *scenario) report(kind, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome.discrepancies = append(s.outcome.discrepancies, discrepancy{kind, fmt.Sprintf(format, args...)})
}

func (s *scenario) count(what string) { s.outcome.tally[what]++ }

// chance returns true with a probability in percent.
func (s *scenario) chance(percent int) bool { return s.IntN(100) < percent }

// pick returns one of several.
func pick[T any](s *scenario, of ...T) T { return of[s.IntN(len(of))] }

// hash returns a hash that is unique to this history.
func (s *scenario) hash(words ...any) (h invoice.Hash) {
	return invoice.Hash(chaintest.NamedTx(s.name + fmt.Sprint(words...)).Hash)
}

func (s *scenario) address(words ...any) (a invoice.Address) {
	h := s.hash(words...)
	return invoice.Address(h[:len(a)])
}

// playHistory plays the history of a seed.
func playHistory(t *testing.T, seed uint64, conn *historyDB) (outcome historyOutcome) {
	s := newScenario(t, seed, conn)
	defer func() {
		s.lived.end()
		s.stage.end()
		outcome = s.outcome
		outcome.plan = s.plan
	}()
	defer func() {
		if p := recover(); p != nil {
			b, ok := p.(broken)
			if !ok {
				panic(p)
			}
			s.report("broken", "%s", b)
		}
	}()
	for n := range s.steps {
		if s.indexers == nil && (!s.late || n > s.steps/2) {
			s.restart()
		}
		s.step()
	}
	s.end()
	return s.outcome
}

func newScenario(t *testing.T, seed uint64, conn *historyDB) *scenario {
	s := &scenario{
		stage: &stage{TB: t}, lived: &stage{TB: t}, Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)),
		db: conn, seed: seed, name: fmt.Sprintf("h%d", seed),
	}
	s.clock.Store(chaintest.GenesisTime + 100)
	s.outcome.tally = map[string]int{}
	var key [32]byte
	copy(key[:], s.name)
	s.random = rand.NewChaCha8(key)
	s.plan = s.newPlan()

	s.conf = chain.Chain{
		Key: s.name, ID: 5, Registry: registry, DepositFactory: depositFactory, FullBloom: s.fullBloom, Finality: s.finality, Quorum: s.quorum,
		Tokens: []chain.Token{{Currency: chain.USDC, Address: token, Decimals: 6}},
	}
	if s.begin {
		s.conf.StartBlock = new(uint64(1))
	}
	s.net = newChain()
	s.node = s.net.Serve(s.stage)
	for i := range s.nodes {
		s.proxies = append(s.proxies, chaintest.NewProxy(s.stage, s.node, seed+uint64(i)))
	}
	for i := range 2 {
		p := party{id: fmt.Sprintf("%s-%d", s.name, i), address: s.address("merchant", i), lenient: i == 1}
		s.parties = append(s.parties, p)
	}
	s.service = s.newService()
	for _, p := range s.parties {
		s.orderOf(p)
	}
	if s.finality.Tag != "" {
		s.tagAt(0)
	}
	return s
}

func (s *scenario) newPlan() plan {
	p := plan{
		finality:  chain.Finality{Depth: 1 + s.Uint64N(4)},
		nodes:     1 + s.IntN(3),
		quorum:    1,
		fullBloom: !s.chance(10),
		replicas:  1,
		late:      s.chance(25),
		begin:     s.chance(50),
		long:      s.chance(8),
		stalls:    s.chance(3),
		steps:     10 + s.IntN(20),
	}
	if s.chance(40) {
		p.finality = chain.Finality{Tag: pick(s, chain.TagSafe, chain.TagFinalized), Depth: pick[uint64](s, 0, 0, 1, 2)}
	}
	if p.nodes > 1 && s.chance(45) {
		p.quorum = 2
	}
	if s.chance(25) {
		p.replicas = 2
	}
	p.dishonest = s.IntN(p.nodes)
	return p
}

// step performs one random action.
func (s *scenario) step() {
	s.pass(time.Duration(1+s.IntN(20)) * time.Second)
	switch n := s.IntN(100); {
	case n < 12:
		s.order()
	case n < 42:
		s.mine()
	case n < 48:
		s.silence()
	case n < 56:
		s.planFork()()
	case n < 66:
		s.injectFaults()
	case n < 70 && s.indexers != nil:
		s.restart()
	case n < 73 && s.indexers != nil:
		s.rescan()
	case s.indexers != nil:
		s.read()
	}
}

// newService returns the use cases as after a program start.
func (s *scenario) newService() *ledger.Service {
	return ledger.New(ledger.Config{
		Store: s.db.store, Chains: []chain.Chain{s.conf}, Merchants: s,
		Now:  func() time.Time { return time.Unix(s.clock.Load(), 0) },
		Rand: s.random,
	})
}

// restart replaces everything that the program has in memory.
func (s *scenario) restart() {
	s.lived.end()
	s.service = s.newService()
	s.ledger = &faultyLedger{Ledger: s.service, judge: s.judge, gap: func() { s.gapped = true }, skipped: func() { s.skipped = true }}
	s.indexers = nil
	for range s.replicas {
		s.indexers = append(s.indexers, s.indexer())
	}
}

func (s *scenario) indexer() *Indexer {
	var clients []*chain.Client
	for _, p := range s.proxies {
		conf := chain.ClientConfig{URL: p.URL}
		if s.stalls {
			conf.Timeout = 30 * time.Millisecond
		}
		e, err := chain.NewClient(conf)
		expect.OK(s, err)
		s.lived.Cleanup(e.Close)
		clients = append(clients, e)
	}
	logger := slog.New(slog.DiscardHandler)
	if testing.Verbose() && *historyCount == 1 {
		logger = slog.New(slog.NewTextHandler(s.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	now := func() time.Time { return time.UnixMilli(s.wall.Load()) }
	jitter := func() float64 { return 0.5 }
	conf := s.conf
	conf.DepositFactory = invoice.Address{} // the node has no code there
	pool := chain.NewPool(chain.PoolConfig{Chain: conf, Clients: clients, Now: now, Sleep: noSleep, Jitter: jitter, Logger: logger})
	w := New(Config{Chain: conf, Pool: pool, Ledger: s.ledger, Logger: logger, Now: now, Jitter: jitter})
	w.maxInFlight = pick(s, 1, maxInFlight)
	return w
}

// rescan schedules some indexed blocks for re-indexing.
func (s *scenario) rescan() {
	cursor, err := s.service.Cursor(s.Context(), s.name)
	expect.OK(s, err)
	if cursor.Started {
		s.count("rescans")
		expect.Success(s)(s.service.Rescan(s.Context(), s.name, s.Uint64N(cursor.Indexed.Number+1)))
	}
}

// read runs some syncs of a replica, with actions in between.
func (s *scenario) read() {
	w := pick(s, s.indexers...)
	crash := false
	// A node with inconsistent answers, because the chain forked between them, has a backoff of a second.
	believed := !s.falsifies || s.quorum > 1
	switch n := s.IntN(100); {
	case n < 15 && believed:
		s.during(s.planFork())
	case n < 25 && believed:
		s.during(nil)
	case n < 40:
		s.ledger.failAtRandom(1+s.IntN(3), s.chance(50))
		crash = s.chance(60)
	case n < 55 && len(s.indexers) > 1:
		other := s.indexers[(slices.Index(s.indexers, w)+1)%len(s.indexers)]
		s.during(func() { s.syncAll(other) })
	}
	for range 1 + s.IntN(3) {
		s.syncAll(w)
	}
	s.node.Intercept(nil)
	s.ledger.failAtRandom(0, false)
	if crash {
		s.restart()
	}
}

// during performs a random action in the middle of the next sync, or makes a call fail.
func (s *scenario) during(f func()) {
	var mu sync.Mutex
	at := 1 + s.IntN(10)
	s.node.Intercept(func(context.Context, string) error {
		mu.Lock()
		at--
		now := at == 0
		mu.Unlock()
		switch {
		case !now:
			return nil
		case f == nil:
			return errors.New("something broke")
		}
		f()
		return nil
	})
}

// syncAll runs syncs as Run does until it waits, and ignores their errors.
func (s *scenario) syncAll(w *Indexer) {
	for range 3 {
		more, err := w.sync(s.Context())
		s.pass(100 * time.Millisecond)
		s.note(err)
		if !more {
			break
		}
	}
	_, err := w.fill(s.Context())
	s.note(err)
	if s.chance(30) {
		w.cfg.Pool.RefreshHeads(s.Context())
	}
}

// pass lets time pass for the indexers.
func (s *scenario) pass(d time.Duration) { s.wall.Add(d.Milliseconds()) }

// note records a halt as a finding, because no final block is ever replaced.
func (s *scenario) note(err error) {
	var halted *HaltedError
	if errors.As(err, &halted) {
		s.report("halted", "%s", halted.Reason)
		s.Fatal("nothing more is read")
	}
}

// end removes all faults, syncs until the ledger is complete, and compares.
func (s *scenario) end() {
	s.stalls = false
	spared := s.clearFaults()
	s.node.Intercept(nil)
	if s.chance(50) {
		s.clock.Add(10_000)
	}
	last := s.highest // the head
	s.mineTo(last + 8 + s.finality.Depth)
	s.restart()
	var cursor ledger.Progress
	var err error
	for range 60 {
		for _, w := range s.indexers {
			err = s.drain(w)
		}
		s.pass(5 * time.Second)
		var lost error
		if cursor, lost = s.service.Cursor(s.Context(), s.name); lost != nil {
			s.Fatal(lost)
		}
		unread := s.unread()
		whole := cursor.Indexed.Number == s.net.Head().Number && cursor.Confirmed.Number == s.floor
		if unread == 0 && cursor.Gap == nil && (whole || spared && cursor.Confirmed.Number >= last) {
			s.compare(cursor.Confirmed.Number)
			return
		}
		if gap := cursor.Gap; gap != nil && gap.Next > s.floor { // the gap is filled once it is final
			s.mineTo(gap.Last + s.finality.Depth)
		}
	}
	s.report(stuck, "read up to block %d and final up to %d with the gap %+v, want %d and %d and none; errors: %v",
		cursor.Indexed.Number, cursor.Confirmed.Number, cursor.Gap, s.net.Head().Number, s.floor, err)
}

// mineTo mines empty blocks up to a number, and makes the newest possible one final.
func (s *scenario) mineTo(number uint64) {
	for s.net.Head().Number < number {
		s.clock.Add(chaintest.BlockSeconds)
		s.mineBlock(nil)
	}
	if s.finality.Tag != "" {
		s.tagAt(s.net.Head().Number)
	}
}

// unread returns how many transactions were skipped, and moves the clock until they are read again.
func (s *scenario) unread() (n int) {
	counts, err := s.service.CountUnread(s.Context(), s.name)
	expect.OK(s, err)
	for _, of := range counts {
		n += of
	}
	if n > 0 {
		s.gapped = true
		s.clock.Add(int64(ledger.LastUnreadRetry / time.Second))
	}
	return n
}

// drain syncs until an indexer has no work left.
func (s *scenario) drain(w *Indexer) error {
	w.cfg.Pool.RefreshHeads(s.Context())
	var errs [3]error
	for i, read := range []func(context.Context) (bool, error){w.sync, w.fill} {
		for more := true; more && errs[i] == nil; {
			more, errs[i] = read(s.Context())
		}
		s.note(errs[i])
	}
	errs[2] = w.readUnread(s.Context())
	return errors.Join(errs[:]...)
}

// WantsEvents and Find implement ledger.Merchants.
func (s *scenario) WantsEvents(context.Context, db.Querier, string) (bool, error) { return false, nil }
func (s *scenario) Find(_ context.Context, id string) (m invoice.Merchant, known bool, err error) {
	for _, p := range s.parties {
		if p.id == id && p.lenient {
			m.Tolerance = invoice.Tolerance{BasisPoints: 100}
		}
	}
	return m, true, nil
}
