package db

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/quittance/quittance/internal/limits"
)

// ShareWait is how long a request waits for its share of the connections.
const ShareWait = 5 * time.Second

// ErrBusy is returned for a read or a transaction that waited for ShareWait because other requests
// used the whole share of connections. The transaction did not begin.
var ErrBusy = fmt.Errorf("requests have their share of the connections to the database: %w", limits.ErrBusy)

// ConnShare is the kind of work that uses connections. The zero value is the service itself.
type ConnShare int

const (
	// MerchantReads is a request of a merchant or an operator that only reads.
	MerchantReads ConnShare = iota + 1
	// PayerReads is a request of a payer that only reads.
	PayerReads
	// Writes is a request that may write.
	Writes
)

// request is the state that the contexts of a request share.
type request struct {
	share        ConnShare
	transactions atomic.Int32 // that are open
}

type requestKey struct{}

// WithShare returns a context under which reads and transactions share the connections with other
// requests. The rest is reserved for the service itself, however slow the requests are.
func WithShare(ctx context.Context, s ConnShare) context.Context {
	return context.WithValue(ctx, requestKey{}, &request{share: s})
}

// countOpen returns a function that runs fn and, while it runs, counts it as an open transaction of
// the context's request.
func countOpen(ctx context.Context, fn func(*Tx) error) func(*Tx) error {
	r, _ := ctx.Value(requestKey{}).(*request)
	if r == nil {
		return fn
	}
	return func(tx *Tx) error {
		r.transactions.Add(1)
		defer r.transactions.Add(-1)
		return fn(tx)
	}
}

// connShares bounds the connections that requests use at a time, except connections with which they
// read while they have a transaction open.
//
// Invariant: a request takes its shares in the order of the fields. So merchants that read cannot use
// up the additional part of readers, which payers use, and readers cannot use up the rest of requests,
// which writers use.
type connShares struct {
	merchants, readers, requests *semaphore.Weighted
}

func newConnShares(merchants, readers, requests int64) *connShares {
	return &connShares{semaphore.NewWeighted(merchants), semaphore.NewWeighted(readers), semaphore.NewWeighted(requests)}
}

// enter waits for a connection from the share of a context; leave returns it. A request that reads
// during its own transaction does not wait, because the users of the share may wait for that
// transaction.
func (s *connShares) enter(ctx context.Context, transaction bool) (leave func(), err error) {
	r, _ := ctx.Value(requestKey{}).(*request)
	var shares []*semaphore.Weighted
	switch {
	case r == nil, r.share == 0, !transaction && r.transactions.Load() > 0:
		return func() {}, nil
	case transaction || r.share == Writes:
		shares = []*semaphore.Weighted{s.requests}
	case r.share == PayerReads:
		shares = []*semaphore.Weighted{s.readers, s.requests}
	default:
		shares = []*semaphore.Weighted{s.merchants, s.readers, s.requests}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, ShareWait, ErrBusy)
	defer cancel()
	for i, share := range shares {
		if share.Acquire(waiting, 1) != nil {
			release(shares[:i])
			if errors.Is(context.Cause(waiting), context.DeadlineExceeded) { // of the request, which waited before
				return nil, ErrBusy
			}
			return nil, context.Cause(waiting)
		}
	}
	return func() { release(shares) }, nil
}

func release(shares []*semaphore.Weighted) {
	for _, share := range shares {
		share.Release(1)
	}
}

// sharedReads runs queries of requests within their shares of the connections.
type sharedReads struct {
	runner
	shares *connShares
}

func (s sharedReads) query(ctx context.Context, each func(Scanner) (bool, error), query string, args ...any) error {
	leave, err := s.shares.enter(ctx, false)
	if err != nil {
		return err
	}
	defer leave()
	return s.runner.query(ctx, each, query, args...)
}
