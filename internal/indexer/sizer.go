package indexer

import (
	"sync"

	"github.com/quittance/quittance/internal/chain"
)

// Limits of the sizes of questions for logs.
const (
	// firstSpan and maxSpan are how many blocks the first and the longest
	// range has. Several are asked for before the first answer tells how much
	// they hold, and what is too much was gathered in vain.
	firstSpan = 64
	maxSpan   = 8192
	// targetLogs is how many logs the answer for a range should hold: enough
	// that the way there and back does not matter, and few enough that several
	// answers fit into memory.
	targetLogs = 10_000
	// patience is how many answers later a size that was refused is tried
	// again.
	patience = 64
)

// sizer decides how many blocks to ask one provider for at once: fewer when it
// refuses or answers a lot, more while it does not. It is safe for concurrent
// use.
type sizer struct {
	most uint64 // never more

	mu      sync.Mutex
	size    uint64
	refusal uint64 // size that was refused last; 0 for none
	calm    int    // answers as near to the refusal as may be
}

func newSizer(first, most uint64) *sizer { return &sizer{most: most, size: first} }

// next returns how many blocks to ask for.
func (s *sizer) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// answered notes that so many blocks were asked for, and answered with so many
// logs.
func (s *sizer) answered(blocks uint64, logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case logs > targetLogs:
		s.size = min(s.size, max(1, blocks*targetLogs/uint64(logs)))
		return
	case blocks < s.size || logs > targetLogs*3/4:
		return
	}
	step := s.size/4 + 1
	if s.refusal == 0 && logs < targetLogs/4 {
		step = s.size
	}
	if s.refusal > 0 {
		if step = min(step, (s.refusal-s.size)/2); step == 0 {
			if s.calm++; s.calm >= patience {
				s.refusal, s.calm = 0, 0
			}
			return
		}
	}
	s.size = min(s.size+step, s.most)
}

// refused notes that so many blocks were too many, and reports whether to ask
// again for fewer. A range that the provider suggests instead is taken.
func (s *sizer) refused(blocks uint64, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocks <= 1 {
		return false
	}
	fewer := blocks / 2
	if from, to, ok := chain.SuggestedRange(err); ok && to >= from && to-from+1 < blocks {
		fewer = to - from + 1
	}
	s.size = max(1, min(s.size, fewer))
	s.refusal, s.calm = blocks, 0
	return true
}

// sizers are a provider's sizers: of ranges, and of blocks by their hashes.
type sizers struct{ ranges, blocks *sizer }

// sizersOf returns those of a provider.
func (w *Watcher) sizersOf(n node) sizers {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.sizers[n.Provider]
	if !ok {
		s = sizers{newSizer(firstSpan, maxSpan), newSizer(maxBlocks, maxBlocks)}
		w.sizers[n.Provider] = s
	}
	return s
}
