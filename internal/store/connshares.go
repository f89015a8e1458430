package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/quittance/quittance/internal/ratelimit"
)

// ShareWait is how long a request waits for its share of the connections.
const ShareWait = 5 * time.Second

// ErrBusy is returned for a read or a transaction that waited for ShareWait, because other
// requests have their share of the connections. The transaction did not begin.
var ErrBusy = fmt.Errorf("requests have their share of the connections to the database: %w", ratelimit.ErrBusy)

// ConnShare is whose work uses connections. The zero value is the service itself.
type ConnShare int

const (
	// MerchantReads is a request of a merchant or an operator that only reads.
	MerchantReads ConnShare = iota + 1
	// PayerReads is a request of a payer that only reads.
	PayerReads
	// Writes is a request that may write.
	Writes
)

type connShareKey struct{}

// WithShare returns a context whose reads and transactions share the connections with those of
// other requests. The rest is left to the service itself, however slow the requests are.
func WithShare(ctx context.Context, s ConnShare) context.Context {
	return context.WithValue(ctx, connShareKey{}, s)
}

// connShares bounds the connections that requests use at a time.
//
// Invariant: a request takes its shares in the order of the fields. So merchants that read never keep payers from
// what readers has in addition, nor readers those that write from the rest of requests.
type connShares struct {
	merchants, readers, requests *semaphore.Weighted
}

func newConnShares(merchants, readers, requests int64) *connShares {
	return &connShares{semaphore.NewWeighted(merchants), semaphore.NewWeighted(readers), semaphore.NewWeighted(requests)}
}

// enter waits for the share of a context. leave gives it back.
func (s *connShares) enter(ctx context.Context, transaction bool) (leave func(), err error) {
	var shares []*semaphore.Weighted
	switch of, _ := ctx.Value(connShareKey{}).(ConnShare); {
	case of == 0:
		return func() {}, nil
	case transaction || of == Writes:
		shares = []*semaphore.Weighted{s.requests}
	case of == PayerReads:
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

// sharedReads runs the queries of requests in their shares of the connections.
type sharedReads struct {
	runner
	shares *connShares
}

func (s sharedReads) query(ctx context.Context, each func(scanner) (bool, error), query string, args ...any) error {
	leave, err := s.shares.enter(ctx, false)
	if err != nil {
		return err
	}
	defer leave()
	return s.runner.query(ctx, each, query, args...)
}
