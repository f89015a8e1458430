package indexer

import (
	"sync"

	"github.com/quittance/quittance/internal/chain"
)

// Limits of requests for logs.
const (
	// initialRange and maxRange are the numbers of blocks of the first and of the
	// longest range. The first is short because several ranges are requested
	// before an answer shows how many logs they hold.
	initialRange = 64
	maxRange     = 8192
	// targetLogs is how many logs the answer for a range should hold: so many that
	// the round trip is a small part of the time, and so few that several answers
	// fit into memory.
	targetLogs = 10_000
	// retryRefusedAfter is how many answers later a size that was refused is tried
	// again.
	retryRefusedAfter = 64
)

// adaptiveRange is the number of blocks to request from one node at once: fewer
// when it refuses or returns many logs, more while it does not. It is safe for
// concurrent use.
type adaptiveRange struct {
	max uint64 // never more

	mu          sync.Mutex
	size        uint64
	refusedSize uint64 // size that was refused last; 0 for none
	atLimit     int    // answers as near to the refusal as may be
}

func newAdaptiveRange(first, most uint64) *adaptiveRange {
	return &adaptiveRange{max: most, size: first}
}

// next returns how many blocks to request.
func (s *adaptiveRange) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// grow records an answer, of so many blocks with so many logs, and adjusts the
// number of blocks.
func (s *adaptiveRange) grow(blocks uint64, logs int) {
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
	if s.refusedSize == 0 && logs < targetLogs/4 {
		step = s.size
	}
	if s.refusedSize > 0 {
		if step = min(step, (s.refusedSize-s.size)/2); step == 0 {
			if s.atLimit++; s.atLimit >= retryRefusedAfter {
				s.refusedSize, s.atLimit = 0, 0
			}
			return
		}
	}
	s.size = min(s.size+step, s.max)
}

// shrink records that so many blocks were refused, and reports whether to request
// fewer. It takes the range that the node suggests, if any.
func (s *adaptiveRange) shrink(blocks uint64, err error) bool {
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
	s.refusedSize, s.atLimit = blocks, 0
	return true
}

// adaptiveRanges are those of a node: for ranges, and for blocks by their hashes.
type adaptiveRanges struct{ ranges, blocks *adaptiveRange }

// rangesOf returns the adaptive ranges of a node.
func (ix *Indexer) rangesOf(n node) adaptiveRanges {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s, ok := ix.ranges[n.Node]
	if !ok {
		s = adaptiveRanges{newAdaptiveRange(initialRange, maxRange), newAdaptiveRange(maxBlocks, maxBlocks)}
		ix.ranges[n.Node] = s
	}
	return s
}
