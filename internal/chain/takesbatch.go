package chain

import "time"

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
