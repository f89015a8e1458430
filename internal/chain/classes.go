package chain

import (
	"context"
	"errors"
	"sync/atomic"
)

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
