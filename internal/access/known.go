package access

import (
	"sync"
)

// MaxKnown bounds the tokens of sessions that a process caches. A dropped one is looked up like a new one.
const MaxKnown = MaxCached

// known are tokens of sessions that were found.
type known struct {
	mu     sync.Mutex
	tokens map[TokenHash]struct{}
}

func (k *known) has(token TokenHash) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.tokens[token]
	return ok
}

// add adds a token. Beyond MaxKnown it drops a random one.
func (k *known) add(token TokenHash) {
	k.mu.Lock()
	defer k.mu.Unlock()
	insert(k.tokens, token, struct{}{})
}

func (k *known) remove(token TokenHash) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tokens, token)
}
