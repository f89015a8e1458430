package devchain

import (
	"context"
	"errors"
	"sync"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/event"
	"github.com/ethereum/go-ethereum/rpc"
)

// watches are the subscriptions of clients.
type watches struct {
	node *node

	running context.Context // ends when the chain stops
	stop    context.CancelFunc
	each    sync.WaitGroup
	mu      sync.Mutex // so that no subscription begins once running has ended
}

var errStopped = errors.New("the chain has stopped")

func newWatches(n *node) *watches {
	w := &watches{node: n}
	w.running, w.stop = context.WithCancel(context.Background())
	return w
}

// close ends all subscriptions.
func (w *watches) close() {
	w.mu.Lock()
	w.stop()
	w.mu.Unlock()
	w.each.Wait()
}

// handlers receive the chain's events. Events without a handler are not subscribed.
type handlers struct {
	heads   func(*types.Header)
	logs    func(*types.Log)
	pending func(*types.Transaction)
}

// watch passes the chain's events to handlers until ctx ends, which is derived from running. The chain waits for it. The
// caller holds mu.
//
// The channels have no buffers, so that the events keep the order in which the chain sends them.
func (w *watches) watch(ctx context.Context, to handlers) {
	chain, blocks := w.node.blocks, make(chan core.ChainEvent)
	removed, added, pooled := make(chan core.RemovedLogsEvent), make(chan []*types.Log), make(chan core.NewTxsEvent)
	var all event.SubscriptionScope
	if to.heads != nil {
		all.Track(chain.SubscribeChainEvent(blocks))
	}
	if to.logs != nil {
		all.Track(chain.SubscribeRemovedLogsEvent(removed))
		all.Track(chain.SubscribeLogsEvent(added))
	}
	if to.pending != nil {
		all.Track(w.node.pool.SubscribeTransactions(pooled, true))
	}
	w.each.Go(func() {
		defer all.Close()
		for {
			select {
			case block := <-blocks:
				to.heads(block.Header)
			case logs := <-removed:
				passOn(logs.Logs, to.logs)
			case logs := <-added:
				passOn(logs, to.logs)
			case txs := <-pooled:
				passOn(txs.Txs, to.pending)
			case <-ctx.Done():
				return
			}
		}
	})
}

func passOn[T any](items []T, to func(T)) {
	for _, item := range items {
		to(item)
	}
}

// following returns a source of the logs that a query selects and that are in its range.
func (q *LogQuery) following(to func(any)) handlers {
	return handlers{logs: func(l *types.Log) {
		number := rpc.BlockNumber(l.BlockNumber)
		if q.From != nil && *q.From >= 0 && number < *q.From || q.To != nil && *q.To >= 0 && number > *q.To {
			return
		}
		if q.Matches(l) {
			to(l)
		}
	}}
}

// subscribe sends what handlers receive to the client that has subscribed, until the client unsubscribes.
func (w *watches) subscribe(ctx context.Context, from func(send func(any)) handlers) (*rpc.Subscription, error) {
	notifier, ok := rpc.NotifierFromContext(ctx)
	if !ok {
		return nil, rpc.ErrNotificationsUnsupported
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running.Err() != nil {
		return nil, errStopped
	}
	subscription := notifier.CreateSubscription()
	active, end := context.WithCancel(w.running)
	w.watch(active, from(func(item any) {
		if err := notifier.Notify(subscription.ID, item); err != nil {
			end() // the connection is broken
		}
	}))
	w.each.Go(func() {
		defer end()
		select {
		case <-subscription.Err():
		case <-active.Done():
		}
	})
	return subscription, nil
}

// NewHeads subscribes to new heads.
func (w *watches) NewHeads(ctx context.Context) (*rpc.Subscription, error) {
	return w.subscribe(ctx, func(send func(any)) handlers {
		return handlers{heads: func(head *types.Header) { send(head) }}
	})
}

// Logs subscribes to logs.
func (w *watches) Logs(ctx context.Context, q LogQuery) (*rpc.Subscription, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return w.subscribe(ctx, q.following)
}

// NewPendingTransactions subscribes to the hashes of transactions that the pool accepts.
func (w *watches) NewPendingTransactions(ctx context.Context) (*rpc.Subscription, error) {
	return w.subscribe(ctx, func(send func(any)) handlers {
		return handlers{pending: func(tx *types.Transaction) { send(tx.Hash()) }}
	})
}
