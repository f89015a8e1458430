package devchain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/event"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	// filterTimeout is how long a filter is kept if no client polls it, as in geth.
	filterTimeout = 5 * time.Minute
	// maxFilters is how many filters there may be.
	maxFilters = 1000
	// maxUnread is how many items a filter holds. A filter that has more ends.
	maxUnread = 100_000
)

var (
	errNoFilter = errors.New("filter not found")
	errStopped  = errors.New("the chain has stopped")
)

// watches are the filters and subscriptions of clients.
type watches struct {
	node *node

	running context.Context // ends when the chain stops
	stop    context.CancelFunc
	each    sync.WaitGroup

	mu      sync.Mutex
	filters map[rpc.ID]*filter
}

// filter collects items until a client asks for them.
type filter struct {
	logs  *LogQuery // nil unless it collects logs
	items []any
	end   context.CancelFunc
	timer *time.Timer // ends the filter
}

func newWatches(n *node) *watches {
	w := &watches{node: n, filters: map[rpc.ID]*filter{}}
	w.running, w.stop = context.WithCancel(context.Background())
	return w
}

// close ends all filters and subscriptions.
func (w *watches) close() {
	w.mu.Lock()
	w.stop()
	for id := range w.filters {
		w.remove(id)
	}
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

// install creates a filter.
func (w *watches) install(logs *LogQuery, from func(collect func(any)) handlers) (rpc.ID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.filters) >= maxFilters {
		return "", fmt.Errorf("there are %d filters already; remove those that are not needed", maxFilters)
	}
	if w.running.Err() != nil {
		return "", errStopped
	}
	id := rpc.NewID()
	ctx, end := context.WithCancel(w.running)
	w.filters[id] = &filter{logs: logs, items: []any{}, end: end, timer: time.AfterFunc(filterTimeout, func() { w.UninstallFilter(id) })}
	w.watch(ctx, from(func(item any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		f := w.filters[id]
		if f == nil {
			return
		}
		if f.items = append(f.items, item); len(f.items) > maxUnread {
			w.remove(id)
		}
	}))
	return id, nil
}

// remove ends a filter, and reports whether it was there. The caller holds mu.
func (w *watches) remove(id rpc.ID) bool {
	f := w.filters[id]
	if f == nil {
		return false
	}
	f.timer.Stop()
	f.end()
	delete(w.filters, id)
	return true
}

// NewFilter creates a filter of logs. Logs that a reorg removes are reported again, as removed.
func (w *watches) NewFilter(q LogQuery) (rpc.ID, error) {
	if err := q.check(); err != nil {
		return "", err
	}
	return w.install(&q, q.following)
}

// NewBlockFilter creates a filter of the hashes of new heads.
func (w *watches) NewBlockFilter() (rpc.ID, error) {
	return w.install(nil, func(collect func(any)) handlers {
		return handlers{heads: func(head *types.Header) { collect(head.Hash()) }}
	})
}

// NewPendingTransactionFilter creates a filter of the hashes of transactions that the pool accepts.
func (w *watches) NewPendingTransactionFilter() (rpc.ID, error) {
	return w.install(nil, func(collect func(any)) handlers {
		return handlers{pending: func(tx *types.Transaction) { collect(tx.Hash()) }}
	})
}

// UninstallFilter removes a filter, and reports whether it was there.
func (w *watches) UninstallFilter(id rpc.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remove(id)
}

// GetFilterChanges returns what a filter has collected since the last call.
func (w *watches) GetFilterChanges(id rpc.ID) ([]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.filters[id]
	if f == nil {
		return nil, errNoFilter
	}
	f.timer.Reset(filterTimeout)
	items := f.items
	f.items = []any{} // the JSON is a list, never null
	return items, nil
}

// GetFilterLogs returns all logs that the query of a filter selects.
func (a *ethAPI) GetFilterLogs(ctx context.Context, id rpc.ID) ([]*types.Log, error) {
	a.mu.Lock()
	f := a.filters[id]
	a.mu.Unlock()
	if f == nil || f.logs == nil {
		return nil, errNoFilter
	}
	return a.GetLogs(ctx, *f.logs)
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
