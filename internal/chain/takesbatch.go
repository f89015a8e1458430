package chain

import "time"

// batchRetry is how long a node that refused a batch of some size is sent smaller ones, before
// TakesBatch has it tried again.
const batchRetry = time.Minute

// TakesBatch reports whether the node takes so many calls of a kind in one request, as far as is known.
// Then one server of the node answers them all.
func (c *Client) TakesBatch(kind Kind, calls uint64) bool { return c.Limit(kind).takes(calls) }

// takes reports whether a request may ask for so much. A size that was refused is tried again after
// batchRetry: smaller requests alone do not raise the limit to it.
func (l *Limit) takes(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size < n && n <= l.most && l.now().Sub(l.refusedAt) >= batchRetry {
		l.size, l.refused, l.answered = n, 0, 0
	}
	return l.size >= n
}
