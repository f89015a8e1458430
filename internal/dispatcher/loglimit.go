package dispatcher

import (
	"sync"
	"time"
)

const (
	// logEvery is how often a message with one key is logged at most.
	logEvery = time.Minute
	// maxLogKeys is how many keys are distinguished; the others share one.
	maxLogKeys = 1000
)

// logLimiter holds back log messages that repeat: of each key one is logged at
// once, and then one a minute with how many it represents. It is safe for
// concurrent use.
type logLimiter struct {
	mu   sync.Mutex
	keys map[string]*heldBack
}

// heldBack is what was held back of a key.
type heldBack struct {
	at    time.Time // when a message was logged last
	count int       // how many were held back since
	log   func(count int)
}

func newLogLimiter() *logLimiter { return &logLimiter{keys: make(map[string]*heldBack)} }

// add logs a message, or holds it back. log is called with how many messages it
// represents, possibly later, by flush.
func (l *logLimiter) add(key string, log func(count int)) { l.addMany(key, 1, log) }

func (l *logLimiter) addMany(key string, count int, log func(count int)) {
	now := time.Now()
	l.mu.Lock()
	if _, known := l.keys[key]; !known && len(l.keys) >= maxLogKeys {
		key = ""
	}
	held := l.keys[key]
	if held == nil {
		held = &heldBack{}
		l.keys[key] = held
	}
	held.count += count
	held.log = log
	due := now.Sub(held.at) >= logEvery
	if due {
		count, held.count, held.at = held.count, 0, now
	}
	l.mu.Unlock()
	if due {
		log(count)
	}
}

// flush logs what was held back for long enough, or all of it at the end.
func (l *logLimiter) flush(end bool) {
	now := time.Now()
	var out []func()
	l.mu.Lock()
	for key, held := range l.keys {
		if !end && now.Sub(held.at) < logEvery {
			continue
		}
		if held.count == 0 {
			delete(l.keys, key)
			continue
		}
		log, count := held.log, held.count
		out = append(out, func() { log(count) })
		held.count, held.at = 0, now
	}
	l.mu.Unlock()
	for _, log := range out {
		log()
	}
}
