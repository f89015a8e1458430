package dashboard

import (
	"sync"
	"time"
)

const (
	// formMemory is for how long a form that was sent is remembered.
	formMemory = 10 * time.Minute
	// maxUsedForms bounds the forms that are remembered.
	maxUsedForms = 10_000
)

// usedForms remembers the forms that were sent to this process, so that a second click on the
// button of one makes nothing twice.
type usedForms struct {
	mu sync.Mutex
	at map[string]time.Time // by token: at most maxUsedForms
}

// use reports whether a form was not sent before.
func (f *usedForms) use(token string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, used := f.at[token]; used && now.Sub(at) < formMemory {
		return false
	}
	if len(f.at) >= maxUsedForms {
		clear(f.at)
	}
	if f.at == nil {
		f.at = make(map[string]time.Time)
	}
	f.at[token] = now
	return true
}
