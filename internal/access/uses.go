package access

import (
	"sync"
	"time"
)

// noteInterval is the shortest interval at which uses of one key are recorded.
const noteInterval = time.Minute

// uses are the last uses of keys that are not stored yet.
type uses struct {
	mu sync.Mutex
	at map[string]time.Time // by the key's id
}

// note records the use of a key, unless one was recorded within noteInterval.
func (u *uses) note(k *cachedKey, now time.Time) {
	last := k.noted.Load()
	if now.Unix()-last < int64(noteInterval/time.Second) || !k.noted.CompareAndSwap(last, now.Unix()) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == nil {
		u.at = make(map[string]time.Time)
	}
	if len(u.at) < MaxCached {
		u.at[k.ID] = now
	}
}

// take returns the uses that were recorded since the last call.
func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.at
	u.at = nil
	return at
}
