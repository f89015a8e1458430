package chain

import "time"

// batchRetry is how long a node that refused a batch of some size is sent smaller ones, before
// TakesBatch has it tried again.
const batchRetry = time.Minute

// TakesBatch reports whether so many calls of a kind go out in one request now, so that one server
// of the node answers them all.
func (c *Client) TakesBatch(kind Kind, calls int) bool {
	return c.pace.most() >= calls && c.Limit(kind).takes(uint64(calls))
}

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
