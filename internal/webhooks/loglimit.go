package webhooks

import (
	"sync"
	"time"
)

const (
	// logEvery is the minimum time between two messages with the same key.
	logEvery = time.Minute
	// maxLogKeys is how many keys are distinguished; the others share one.
	maxLogKeys = 1000
)

// logLimiter suppresses repeated log messages: the first message of a key is logged immediately, and then one per
// minute with the number of messages it represents. It is safe for concurrent use.
type logLimiter struct {
	mu   sync.Mutex
	keys map[string]*heldBack
}

// heldBack is the suppressed messages of a key.
type heldBack struct {
	at    time.Time // time of the last logged message
	count int       // number of suppressed messages since
	log   func(count int)
}

func newLogLimiter() *logLimiter { return &logLimiter{keys: make(map[string]*heldBack)} }

// add logs a message, or suppresses it. log gets the number of messages it represents, and flush may call it later.
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

// flush logs messages that were suppressed long enough, or all of them at the end.
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
