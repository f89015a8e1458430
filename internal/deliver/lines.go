package deliver

import (
	"sync"
	"time"
)

const (
	// lineEvery is how often a line about one thing is logged at most.
	lineEvery = time.Minute
	// maxLines is how many things are told apart; those beyond share one line.
	maxLines = 1000
)

// lines holds back log lines that repeat: of each key one goes out at once, and
// then one a minute with how many it stands for. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	keys map[string]*line
}

// line is what was held back of a key.
type line struct {
	at    time.Time // when a line went out last
	count int       // how many were held back since
	log   func(count int)
}

func newLines() *lines { return &lines{keys: make(map[string]*line)} }

// add logs a line about a key, or holds it back. log is told how many lines it
// stands for; it may be called later, by flush.
func (l *lines) add(key string, log func(count int)) { l.addMany(key, 1, log) }

func (l *lines) addMany(key string, count int, log func(count int)) {
	now := time.Now()
	l.mu.Lock()
	if _, known := l.keys[key]; !known && len(l.keys) >= maxLines {
		key = ""
	}
	held := l.keys[key]
	if held == nil {
		held = &line{}
		l.keys[key] = held
	}
	held.count += count
	held.log = log
	due := now.Sub(held.at) >= lineEvery
	if due {
		count, held.count, held.at = held.count, 0, now
	}
	l.mu.Unlock()
	if due {
		log(count)
	}
}

// flush logs what was held back for long enough; all of it when the end has
// come.
func (l *lines) flush(end bool) {
	now := time.Now()
	var out []func()
	l.mu.Lock()
	for key, held := range l.keys {
		if !end && now.Sub(held.at) < lineEvery {
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
