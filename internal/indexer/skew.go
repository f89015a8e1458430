package indexer

import (
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
)

// Limits of measuring how far this machine's clock is from the chain's time.
const (
	// SkewLimit is the skew from which it is reported.
	SkewLimit = 30 * time.Second
	// skewRecovered is the skew below which the report is withdrawn.
	skewRecovered = 25 * time.Second
	// skewHeads is how many new heads the skew is measured over, and minSkewHeads is how many it needs.
	skewHeads    = 5
	minSkewHeads = 3
	// maxHeadAge is the longest time since the last look at the head for a new head to count: the head may have existed
	// for all of that time.
	maxHeadAge = 10 * time.Second
)

// skew measures how far this machine's clock is ahead of the time of new blocks. It compares them when a new head is
// first seen, so that neither slow blocks nor a pause in polling count, and takes the median of several heads. The skew
// is only reported.
type skew struct {
	highest  uint64    // newest head seen; 0 before the first
	lastLook time.Time // when the head was last requested
	samples  []time.Duration
}

// observe records a head that a node has just returned, and returns the skew. ok is false while the skew is unknown,
// and if the head is not new.
func (s *skew) observe(h chain.Header, now time.Time) (ahead time.Duration, ok bool) {
	follows := s.highest > 0 && now.Sub(s.lastLook) <= maxHeadAge
	s.lastLook = now
	if h.Number <= s.highest && s.highest-h.Number <= chain.MaxRegress { // otherwise the highest one was wrong
		return 0, false
	}
	s.highest = h.Number
	if !follows {
		return 0, false
	}
	s.samples = append(s.samples, now.Sub(h.Time))
	s.samples = s.samples[max(0, len(s.samples)-skewHeads):]
	if len(s.samples) < minSkewHeads {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s.samples))
	return sorted[len(sorted)/2], true
}

// measureSkew records a head, and reports in the status and the log if this machine's clock is too far from the chain's
// time.
func (ix *Indexer) measureSkew(h chain.Header) {
	ahead, ok := ix.skew.observe(h, ix.cfg.Now())
	if !ok {
		return
	}
	var before, after bool
	ix.updateStatus(func(s *Status) {
		before = s.Skewed
		after = ahead.Abs() > SkewLimit || before && ahead.Abs() > skewRecovered
		s.Skew, s.Skewed = &ahead, after
	})
	log := ix.cfg.Logger.With("chain", ix.cfg.Chain.Key, "clock_ahead", ahead.Round(time.Second))
	switch {
	case after && !before:
		log.Warn("clock differs from the chain's time")
	case before && !after:
		log.Info("clock matches the chain's time again")
	}
}
