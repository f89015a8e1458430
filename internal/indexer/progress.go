package indexer

import (
	"log/slog"
	"sync"
	"time"
)

// Limits of progress reports.
const (
	// progressEvery is how often progress is logged.
	progressEvery = 10 * time.Second
	// speedWindow is the period over which the speed is measured.
	speedWindow = 30 * time.Second
)

// Progress is the progress of reading many blocks.
type Progress struct {
	From, To        uint64        // the first block and the last
	At              uint64        // the next block to read
	BlocksPerSecond float64       // measured lately; 0 while it is unknown
	Left            time.Duration // time left at that speed; 0 while it is unknown
}

// Percent returns how much of the blocks has been read, from 0 to 100.
func (p Progress) Percent() float64 { return 100 * float64(p.At-p.From) / float64(p.To+1-p.From) }

// meter measures progress, and logs it now and then. It is safe for concurrent use.
type meter struct {
	now    func() time.Time
	logger *slog.Logger // with the chain and the purpose of reading

	mu       sync.Mutex
	progress *Progress // nil while no range is read
	began    time.Time
	logged   time.Time
	samples  []sample // of the last speedWindow, oldest first
}

// sample is the next block to read at a time.
type sample struct {
	block uint64
	at    time.Time
}

// begin records that the given range is read next, or that its end has moved.
func (m *meter) begin(from, to uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.progress != nil && from == m.progress.At {
		m.progress.To = to
		return
	}
	now := m.now()
	m.progress = &Progress{From: from, To: to, At: from}
	m.began, m.logged, m.samples = now, now, []sample{{from, now}}
	m.logger.Info("reading older blocks", "from", from, "to", to)
}

// follow records the progress of another replica.
func (m *meter) follow(at, to uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if m.progress == nil {
		m.began = now
	}
	from := at
	if p := m.progress; p != nil {
		from = min(from, p.From)
	}
	m.progress, m.samples = &Progress{From: from, To: to, At: at}, []sample{{at, now}}
}

// reached records the next block to read.
func (m *meter) reached(block uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.progress
	if p == nil {
		return
	}
	now := m.now()
	p.At = block
	m.samples = append(m.samples, sample{block, now})
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= speedWindow {
		m.samples = m.samples[1:]
	}
	p.BlocksPerSecond, p.Left = 0, 0
	if oldest := m.samples[0]; now.After(oldest.at) && block > oldest.block {
		p.BlocksPerSecond = float64(block-oldest.block) / now.Sub(oldest.at).Seconds()
		p.Left = time.Duration(float64(p.To+1-block) / p.BlocksPerSecond * float64(time.Second)).Round(time.Second)
	}
	if now.Sub(m.logged) >= progressEvery {
		m.logged = now
		m.logger.Info("reading older blocks", "at", block, "to", p.To, "percent", int(p.Percent()),
			"blocks_per_second", int(p.BlocksPerSecond), "left", p.Left)
	}
}

// end records that the range is read.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.progress; p != nil {
		m.logger.Info("older blocks are read", "from", p.From, "to", p.To, "took", m.now().Sub(m.began).Round(time.Millisecond))
	}
	m.progress, m.samples = nil, nil
}

// snapshot returns the progress, or nil while no range is read.
func (m *meter) snapshot() *Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.progress == nil {
		return nil
	}
	p := *m.progress
	return &p
}
