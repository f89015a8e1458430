package main

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// fault is something that goes wrong at one target for a while. All of it is drawn: each request that it meets is hit
// with a chance, and suffers every effect that is set.
type fault struct {
	id       int
	target   string // a node, a receiver, or the way of the clients' requests
	from, to time.Duration
	chance   float64
	methods  uint64 // a bit for each hash of a method: whether it is met
	salt     uint64

	delay   time.Duration
	request bool // the request is lost
	answer  bool // the answer is lost
	twice   bool // the request arrives twice
	status  int  // of the answer; 0 leaves it
	body    body
	stale   bool    // an earlier answer to the same request
	frozen  bool    // a node answers as of the fault's begin
	partial float64 // part of an answer's list members that is left out
	only    string  // the method of which a part is left out; all if empty
	forked  bool    // a node answers from another branch, with payments that it made up
	ahead   int64   // seconds that are added to the time of some blocks, which keep their hashes
	behind  int     // a node answers as of that many blocks ago
	far     bool    // a node's head is far ahead, once
}

// body is what replaces an answer's body.
type body int

const (
	ownBody   body = iota
	noBody         // empty
	cutBody        // the connection breaks in its middle
	htmlBody       // as a proxy answers
	errorBody      // a JSON object with an error
	noiseBody      // random bytes
	hugeBody       // some megabytes
	bodies
)

var bodyNames = [...]string{"", "an empty body", "half a body", "HTML", "a JSON error", "noise", "a huge body"}

func (f fault) String() string {
	var what []string
	add := func(is bool, format string, args ...any) {
		if is {
			what = append(what, fmt.Sprintf(format, args...))
		}
	}
	add(f.delay > 0, "slow by %s", f.delay)
	add(f.request, "request lost")
	add(f.answer, "answer lost")
	add(f.twice, "request doubled")
	add(f.status > 0, "status %d", f.status)
	add(f.body != ownBody, "%s", bodyNames[f.body])
	add(f.stale, "an earlier answer")
	add(f.frozen, "a frozen state")
	add(f.partial > 0, "%.0f%% of the list %s left out", 100*f.partial, f.only)
	add(f.forked, "another branch")
	add(f.ahead != 0, "blocks ahead by %d seconds", f.ahead)
	add(f.behind > 0, "%d blocks behind", f.behind)
	add(f.far, "a far head, once")
	return fmt.Sprintf("#%d %s to %s, %s, %.0f%% of the requests of mask %016x: %s",
		f.id, f.from, f.to, f.target, 100*f.chance, f.methods, strings.Join(what, ", "))
}

// drawByzantine draws a fault of a node that is dishonest for long: it leaves out parts of lists, shows another branch, or
// gives blocks another time. With only, it leaves out parts of the answers to that method.
func drawByzantine(r *rand.Rand, target string, within time.Duration, only string) fault {
	f := fault{target: target, salt: r.Uint64(), chance: 1, methods: ^uint64(0), only: only}
	f.forked = only == "" && r.IntN(2) == 0
	f.from = time.Duration(r.Int64N(int64(within / 2))).Truncate(time.Second)
	f.to = f.from + time.Duration(r.Int64N(int64(within))).Truncate(time.Second)
	if !f.forked {
		f.partial = []float64{0.3, 1}[r.IntN(2)]
	}
	if only == "" && !f.forked && f.salt%2 == 0 { // no draw more, which would change other worlds
		f.partial, f.ahead = 0, []int64{-60, 60, 86400, 1e9}[f.salt/2%4]
	}
	if strings.Contains(only, " ") {
		f.partial = 1 // a part of both could look like all of a smaller block
	}
	return f
}

// drawHead draws a fault of a node that lags, or that once names a far head.
func drawHead(r *rand.Rand, target string, from, most time.Duration) fault {
	f := fault{target: target, from: from, to: from + time.Duration(r.Int64N(int64(most))), chance: 1, methods: ^uint64(0), behind: 1 + r.IntN(12)}
	if r.IntN(2) == 0 {
		f.behind, f.far, f.methods = 0, true, maskOf("eth_getBlockByNumber")
	}
	return f
}

// drawFault draws a fault of a target within a time. A byzantine target can leave parts of its answers out.
func drawFault(r *rand.Rand, target string, within time.Duration, byzantine bool) fault {
	f := fault{target: target, salt: r.Uint64(), methods: r.Uint64() | r.Uint64()}
	f.from = time.Duration(r.Int64N(int64(within)))
	f.to = min(within, f.from+time.Duration(r.ExpFloat64()*float64(within)/6)+time.Second).Truncate(time.Millisecond)
	f.from = f.from.Truncate(time.Millisecond)
	f.chance = []float64{0.03, 0.2, 0.6, 1}[r.IntN(4)]
	if r.IntN(3) == 0 {
		f.methods = ^uint64(0)
	}
	one := func(n int) bool { return r.IntN(n) == 0 }
	for harmless := f; f == harmless; {
		if one(3) {
			f.delay = time.Duration(r.ExpFloat64() * float64(4*time.Second)).Truncate(time.Millisecond)
		}
		f.request, f.answer, f.twice, f.stale, f.frozen = one(8), one(8), one(10), one(10), one(8)
		if one(5) {
			f.status = 200 + r.IntN(400)
		}
		if one(5) {
			f.body = body(r.IntN(int(bodies)))
		}
		if byzantine && one(2) {
			f.partial = []float64{0.1, 0.5, 1}[r.IntN(3)]
		}
	}
	return f
}

// effect is what a request suffers.
type effect struct {
	fault            // with the sums of the faults that hit it
	hits  []int      // ids of these
	dice  *rand.Rand // for what is left to chance
}

// plan decides which requests suffer. Invariant: whether a request is hit depends on the seed and on how many
// requests the fault has met, not on other draws.
type plan struct {
	mu      sync.Mutex
	faults  []fault
	off     map[int]bool
	met     map[int]uint64
	began   time.Time
	over    bool                  // all faults have stopped
	crashes map[chan struct{}]int // requests until each is closed
	hit     map[int]int
}

// add adds a fault.
func (p *plan) add(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.id = len(p.faults) + 1
	p.faults = append(p.faults, f)
}

// stop ends all faults.
func (p *plan) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

func (p *plan) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// crashAfter returns a channel that is closed at the n-th request from now on, to whomever it is.
func (p *plan) crashAfter(n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	crash := make(chan struct{})
	p.crashes[crash] = n
	return crash
}

// meet returns what a request to a target suffers.
func (p *plan) meet(target string, methods ...string) effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	var e effect
	for crash := range p.crashes {
		if p.crashes[crash]--; p.crashes[crash] == 0 {
			close(crash)
			delete(p.crashes, crash)
		}
	}
	now := time.Since(p.began)
	for _, f := range p.faults {
		if p.over || p.off[f.id] || f.target != target || now < f.from || now >= f.to || !f.meets(methods) || f.far && p.hit[f.id] > 0 {
			continue
		}
		p.met[f.id]++
		dice := rand.New(rand.NewPCG(f.salt, p.met[f.id])) //nolint:gosec // replays need a seed
		if dice.Float64() >= f.chance {
			continue
		}
		p.hit[f.id]++
		e = e.and(f)
		e.dice = dice
	}
	return e
}

func (f fault) meets(methods []string) bool {
	for _, m := range methods {
		if f.methods&maskOf(m) != 0 {
			return true
		}
	}
	return false
}

// maskOf returns the bit of a method.
func maskOf(method string) uint64 { return 1 << (hashOf(method) % 64) }

func (e effect) and(f fault) effect {
	e.hits = append(e.hits, f.id)
	e.delay += f.delay
	e.request, e.answer, e.twice, e.stale = e.request || f.request, e.answer || f.answer, e.twice || f.twice, e.stale || f.stale
	if f.frozen || f.forked {
		e.frozen, e.forked, e.id = f.frozen, f.forked, f.id
	}
	if f.status > 0 {
		e.status = f.status
	}
	if f.body > 0 {
		e.body = f.body
	}
	if f.ahead != 0 {
		e.ahead, e.salt = f.ahead, f.salt
	}
	e.behind, e.far = max(e.behind, f.behind), e.far || f.far
	if f.partial > e.partial {
		e.partial, e.only = f.partial, f.only
	}
	return e
}

// hashOf returns a hash of texts and numbers.
func hashOf(parts ...any) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			h.Write([]byte(p))
		case uint64:
			h.Write(binary.BigEndian.AppendUint64(nil, p))
		default:
			fmt.Fprint(h, p)
		}
	}
	return h.Sum64()
}

// stream returns a source of random numbers. Each name has its own, so that a draw more in one does not change
// another.
func stream(seed uint64, name string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hashOf(name))) //nolint:gosec // replays need a seed
}
