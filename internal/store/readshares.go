package store

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/quittance/quittance/internal/ratelimit"
)

// ReadWait is how long a read of a request waits for its share of the connections.
const ReadWait = 5 * time.Second

// ErrBusy is returned for a read outside of a transaction that waited for ReadWait, because
// the reads of other requests have their share of the connections.
var ErrBusy = fmt.Errorf("requests that read have their share of the connections to the database: %w", ratelimit.ErrBusy)

// ReadShare is who reads outside of a transaction. The zero value is the service itself.
type ReadShare int

const (
	// MerchantReads is a request of a merchant or an operator. All together have half of the connections.
	MerchantReads ReadShare = iota + 1
	// PayerReads is a request of a payer. Those of all readers have three quarters of the connections.
	PayerReads
)

type readShareKey struct{}

// ForReads returns the context of a request whose reads outside of transactions share the
// connections with those of other requests. The rest is left to transactions, to the indexer and
// to deliveries, however slow the reads are.
func ForReads(ctx context.Context, r ReadShare) context.Context {
	return context.WithValue(ctx, readShareKey{}, r)
}

// sharedReads runs the queries of readers in their shares of the connections.
//
// Invariant: a query has a slot of all only while it has one of merchants, if it is a merchant's; so
// merchants never keep payers from the difference.
type sharedReads struct {
	runner
	merchants, all *semaphore.Weighted
}

func shareReads(run runner, conns int64) sharedReads {
	return sharedReads{run, semaphore.NewWeighted(conns / 2), semaphore.NewWeighted(conns * 3 / 4)}
}

func (s sharedReads) query(ctx context.Context, each func(scanner) (bool, error), query string, args ...any) error {
	var shares []*semaphore.Weighted
	switch r, _ := ctx.Value(readShareKey{}).(ReadShare); r {
	case MerchantReads:
		shares = []*semaphore.Weighted{s.merchants, s.all}
	case PayerReads:
		shares = []*semaphore.Weighted{s.all}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, ReadWait, ErrBusy)
	defer cancel()
	for _, share := range shares {
		if share.Acquire(waiting, 1) != nil {
			return context.Cause(waiting)
		}
		defer share.Release(1)
	}
	return s.runner.query(ctx, each, query, args...)
}
