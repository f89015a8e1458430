package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// Limits of waiting for a node's pace.
const (
	// requestsWait is how long other calls may delay a call for a request.
	requestsWait = 250 * time.Millisecond
	// maxPassed is how many turns in a row calls of earlier classes get while one of a later class waits.
	maxPassed = 4
)

// errPaced is the error of a call for a request when the node's pace is used up.
var errPaced = fmt.Errorf("%w: the node is called as often as it takes", ErrTimeout)

// turn is a call, or the calls of a batch, waiting for its turn.
type turn struct {
	class Class
	calls int
	since time.Time
	slept time.Time     // end of its sleep as the first turn
	woken chan struct{} // has a token when the turn may have become the first, or may not wait any longer
}

// queue holds the waiting turns.
type queue struct {
	waiting [len(classNames)][]*turn // by class, in order
	passed  [len(classNames)]int     // turns of earlier classes while the class waited
}

// first returns the next turn: the first one of the earliest class, or of a class that was passed
// over maxPassed times. It is nil if no turn waits.
func (q *queue) first() *turn {
	var first *turn
	for class, turns := range q.waiting {
		switch {
		case len(turns) == 0:
		case q.passed[class] >= maxPassed:
			return turns[0]
		case first == nil:
			first = turns[0]
		}
	}
	return first
}

// remove removes a turn.
func (q *queue) remove(t *turn) {
	turns := &q.waiting[t.class]
	*turns = slices.DeleteFunc(*turns, func(other *turn) bool { return other == t })
	if len(*turns) == 0 {
		q.passed[t.class] = 0
	}
}

// pass records that a class gets its turn.
func (q *queue) pass(class Class) {
	q.passed[class] = 0
	for later := class + 1; int(later) < len(q.waiting); later++ {
		if len(q.waiting[later]) > 0 {
			q.passed[later]++
		}
	}
}

// admit waits until a number of calls may be made. Calls of earlier classes go first, and calls of the same class go in
// order. It fails if ctx ends first. A call for a request does not wait long for others.
func (p *pace) admit(ctx context.Context, calls int) error {
	if p == nil {
		return nil
	}
	t, err := p.join(classOf(ctx), calls)
	if err != nil {
		return err
	}
	for {
		took, wait, err := p.take(t)
		switch {
		case took:
			return nil
		case err != nil:
		case wait > 0:
			err = p.sleep(ctx, wait)
		default:
			select {
			case <-t.woken:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			p.leave(t)
			return err
		}
	}
}

// join adds a turn for calls that wait.
func (p *pace) join(class Class, calls int) (*turn, error) {
	if class == ClassRequest && p.delay(class) > requestsWait {
		return nil, errPaced
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.recover(now)
	t := &turn{class: class, calls: calls, since: now, woken: make(chan struct{}, 1)}
	p.queue.waiting[class] = append(p.queue.waiting[class], t)
	return t, nil
}

// take permits the calls of a turn if they may be made now. Otherwise it returns how long the first turn must wait;
// other turns wait until they are woken. It fails if the turn may not wait any longer.
func (p *pace) take(t *turn) (took bool, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.rate > 0 {
		if t.class == ClassRequest && p.next.Sub(t.since) > requestsWait {
			return false, 0, errPaced
		}
		if p.queue.first() != t {
			return false, 0, nil
		}
		at := p.next.Add(p.cost(t.calls))
		if at.After(now) && at.After(t.slept) {
			t.slept = at
			return false, at.Sub(now), nil
		}
		p.next = clock.Later(at, t.since)
		p.queue.pass(t.class)
	}
	p.count(now, t.calls)
	p.queue.remove(t)
	p.wake()
	return true, 0, nil
}

// leave removes a turn when its caller does not wait any longer.
func (p *pace) leave(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.remove(t)
	p.wake()
}

// wake wakes the first turn, and the requests that may not wait any longer. The caller holds the lock.
func (p *pace) wake() {
	for _, t := range p.queue.waiting[ClassRequest] {
		if p.next.Sub(t.since) > requestsWait {
			t.wake()
		}
	}
	if first := p.queue.first(); first != nil {
		first.wake()
	}
}

func (t *turn) wake() {
	select {
	case t.woken <- struct{}{}:
	default: // it has a token
	}
}

// delay returns how long other calls would delay a call of a class now.
func (p *pace) delay(class Class) time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := 0
	for _, turns := range p.queue.waiting[:class+1] {
		for _, t := range turns {
			calls += t.calls
		}
	}
	return max(0, p.next.Add(p.cost(calls)).Sub(p.now()))
}

// Class is the kind of work for which a node is called. If a node's calls are limited, calls of an earlier class go
// first.
type Class int

// The classes of calls.
const (
	ClassFollowing Class = iota // following the chain and confirming payments
	ClassWriting                // for the transaction manager
	ClassRequest                // for an API request
)

// Classes are all classes, in the order in which they go first.
var Classes = []Class{ClassFollowing, ClassWriting, ClassRequest}

// String returns the name of the class in metrics.
func (c Class) String() string { return classNames[c] }

var classNames = [...]string{ClassFollowing: "following", ClassWriting: "writing", ClassRequest: "request"}

type classKey struct{}

func withClass(ctx context.Context, c Class) context.Context {
	return context.WithValue(ctx, classKey{}, c)
}

// classOf returns the class of the calls of a context. Calls without a class are made with a Node, which only the
// indexer has.
func classOf(ctx context.Context) Class {
	c, _ := ctx.Value(classKey{}).(Class)
	return c
}

type simulatingKey struct{}

// Simulating returns a context for calls of the transaction manager that run code of payers' accounts. If they fail, the
// health and the pace of a node stay as they are, except after a rate limit, because the code may be the reason.
func Simulating(ctx context.Context) context.Context {
	return context.WithValue(ctx, simulatingKey{}, true)
}

// isOfSimulation reports whether the failure of a call may be due to the code that it simulates.
func isOfSimulation(ctx context.Context, err error) bool {
	_, limited := IsRateLimit(err)
	return ctx.Value(simulatingKey{}) != nil && !limited
}

// ErrNoRoute is the error of a call for a request without an owner, or with a route that is missing in the table of
// routes that call nodes.
var ErrNoRoute = errors.New("a request calls a node, and its route is not in the table of those that do, or its owner is not named")

type (
	routeKey struct{}
	ownerKey struct{}
)

// ForRoute returns the context of a request that may call nodes. Its route is in the server's table of routes that do.
func ForRoute(ctx context.Context, route string) context.Context {
	return context.WithValue(ctx, routeKey{}, route)
}

// requestOwner is the owner of a request's calls.
type requestOwner struct {
	name  string
	asked atomic.Int64 // calls by Requests.Each that the owner's budget was charged for
}

// OnBehalfOf returns a context for calls that count against the budget of an owner: the merchant of the payment,
// invoice or refund in the request.
func OnBehalfOf(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, &requestOwner{name: owner})
}

// ownerOf returns the owner of a request's calls, or ErrNoRoute.
func ownerOf(ctx context.Context) (*requestOwner, error) {
	route, _ := ctx.Value(routeKey{}).(string)
	owner, named := ctx.Value(ownerKey{}).(*requestOwner)
	if route == "" || !named {
		return nil, ErrNoRoute
	}
	return owner, nil
}
