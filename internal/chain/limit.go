package chain

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Kind is a kind of request with a size that may differ between nodes.
type Kind string

// The kinds of divisible requests. The size of a batch is its number of calls.
const (
	KindHeaders         Kind = "headers"       // batches of headers by number
	KindHeads           Kind = "heads"         // batches of the head and the block of a tag
	KindLogs            Kind = "logs"          // batches of the logs of blocks
	KindReceipts        Kind = "receipts"      // batches of receipts and transactions
	KindCalls           Kind = "calls"         // other batches, from the transaction manager
	KindRequestCalls    Kind = "requestCalls"  // batches on behalf of requests
	KindRange           Kind = "range"         // blocks in one range of eth_getLogs
	KindBlocks          Kind = "blocks"        // blocks with logs that are read by hash in one step
	KindReceiptsOfBlock Kind = "blockReceipts" // eth_getBlockReceipts, of one block
)

// Sizes of requests.
const (
	// MaxBatch is how many calls go out in one JSON-RPC batch.
	MaxBatch = 100
	// FirstRange and MaxRange are the numbers of blocks of the first and of the longest range of logs. The first is
	// short because several ranges are requested before an answer shows how many logs they hold.
	FirstRange = 64
	MaxRange   = 8192
	// MaxBlocks is how many blocks are read by hash in one step.
	MaxBlocks = 64
	// retryRefusedAfter is the number of answers after which a refused size is tried again.
	retryRefusedAfter = 64
)

// Limit is the largest size of a request of one kind to a node. Any failure of a request halves it, whatever the
// error's text, because nodes change the texts of their limits. After success it grows again, slowly near a size that
// was refused. It is safe for concurrent use.
type Limit struct {
	kind  Kind
	least uint64 // 0 if the same data can be read in another way, else 1
	most  uint64
	now   func() time.Time

	mu        sync.Mutex
	size      uint64
	refused   uint64    // smallest size that was refused since it was last tried again; 0 if no size was refused
	last      uint64    // last refused size
	refusedAt time.Time // time of the last refusal; zero if no size was ever refused
	answered  int       // requests since then, as near to the refused size as allowed
}

// newLimit returns the limit of a kind for a node with these settings.
func newLimit(kind Kind, s NodeSettings, now func() time.Time) *Limit {
	l := &Limit{kind: kind, least: 1, most: MaxBatch, now: now}
	switch kind {
	case KindRange:
		l.least, l.most = 0, min(cmp.Or(s.MaxRange, MaxRange), MaxRange)
		l.size = min(FirstRange, l.most)
		return l
	case KindBlocks:
		l.most = MaxBlocks
	case KindReceiptsOfBlock:
		l.least, l.most = 0, 1
	case KindHeaders, KindHeads, KindLogs, KindReceipts, KindCalls, KindRequestCalls:
		l.most = min(cmp.Or(s.MaxBatch, MaxBatch), MaxBatch)
	}
	l.size = l.most
	return l
}

// Next returns the size of the next request. It is 0 if the node refuses even the smallest request and there is another
// way; then every retryRefusedAfter-th result is 1.
func (l *Limit) Next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 {
		return l.size
	}
	if l.answered++; l.answered < retryRefusedAfter {
		return 0
	}
	l.answered = 0
	return 1
}

// Size returns the same as Next, without counting towards another attempt.
func (l *Limit) Size() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Answered records that a request of size n was answered.
func (l *Limit) Answered(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < l.size || n == 0 {
		return
	}
	if l.size == 0 {
		l.size, l.refused, l.answered = 1, 0, 0
		return
	}
	step := l.size/4 + 1
	switch {
	case l.refusedAt.IsZero():
		step = l.size
	case l.refused > 0:
		if step = min(step, (l.refused-l.size)/2); step == 0 {
			if l.answered++; l.answered >= retryRefusedAfter {
				l.refused, l.answered = 0, 0
			}
			return
		}
	}
	l.size = min(l.size+step, l.most)
}

// Refused records that a request of size n failed, in any way, and reports whether to send a smaller one.
func (l *Limit) Refused(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n <= l.least {
		return false
	}
	l.size = max(l.least, min(l.size, n/2)) // below the refused size
	l.refused, l.answered, l.last, l.refusedAt = n, 0, n, l.now()
	return l.size > 0
}

// Fit records that a request should not be larger than n, because the answer becomes too long, although the node
// returns it.
func (l *Limit) Fit(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size = max(1, min(l.size, n))
}

// LimitStatus is the largest size that a node accepts of a kind of request, and the last refusal.
type LimitStatus struct {
	Kind    Kind
	Size    uint64    // size of the next request
	Refused uint64    // last refused size
	At      time.Time // time of that refusal
}

// status returns the limit's status. ok is false if no size was refused.
func (l *Limit) status() (s LimitStatus, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s = LimitStatus{Kind: l.kind, Size: l.size, Refused: l.last, At: l.refusedAt}
	return s, !l.refusedAt.IsZero() && l.size < l.most
}

// nodeLimits are the limits of a node.
type nodeLimits struct {
	settings NodeSettings
	now      func() time.Time

	mu  sync.Mutex
	all map[Kind]*Limit
}

// of returns the limit of a kind.
func (l *nodeLimits) of(kind Kind) *Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit, ok := l.all[kind]
	if !ok {
		limit = newLimit(kind, l.settings, l.now)
		l.all[kind] = limit
	}
	return limit
}

// status returns the limits that were refused, by kind.
func (l *nodeLimits) status() []LimitStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []LimitStatus
	for _, limit := range l.all {
		if s, ok := limit.status(); ok && s.Kind != KindBlocks {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b LimitStatus) int { return cmp.Compare(a.Kind, b.Kind) })
	return all
}

// batchRetry is how long after a node refused a batch of some size it gets smaller ones, before TakesBatch reports true
// again.
const batchRetry = time.Minute

// TakesBatch reports whether, as far as is known, the node accepts this number of calls of a kind in one request. Then
// one server of the node answers all of them.
func (c *Client) TakesBatch(kind Kind, calls uint64) bool { return c.Limit(kind).takes(calls) }

// takes reports whether a request of size n may be sent. A refused size is tried again after batchRetry, because
// smaller requests do not raise the limit to it.
func (l *Limit) takes(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size < n && n <= l.most && l.now().Sub(l.refusedAt) >= batchRetry {
		l.size, l.refused, l.answered = n, 0, 0
	}
	return l.size >= n
}
