package indexer

import (
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
)

// Limits of measuring how far this machine's clock is from the chain's time.
const (
	// SkewLimit is how far the two may be apart before it is said.
	SkewLimit = 30 * time.Second
	// skewRecovered is how near they must come again before it is taken back.
	skewRecovered = 25 * time.Second
	// skewHeads is over how many new heads the skew is taken, and fewestHeads
	// how many there must be.
	skewHeads    = 5
	minSkewHeads = 3
	// maxHeadAge is how long ago the head may have been asked for before, when a
	// new one counts: it can have been there for as long.
	maxHeadAge = 10 * time.Second
)

// skew measures how far this machine's clock is ahead of the time of new blocks. It
// compares them when a new head is first seen, so that neither slow blocks nor a pause
// in polling count, and takes the median of several heads. It is only reported.
type skew struct {
	highest  uint64    // newest head seen; 0 for none
	lastLook time.Time // when the head was asked for last
	samples  []time.Duration
}

// observe notes a head that a node returned just now, and returns the skew; ok
// is false while it is unknown or nothing new was learned.
func (s *skew) observe(h chain.Header, now time.Time) (ahead time.Duration, ok bool) {
	follows := s.highest > 0 && now.Sub(s.lastLook) <= maxHeadAge
	s.lastLook = now
	if h.Number <= s.highest {
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

// measureSkew records a head, and reports in the status and the log when this machine's
// clock is too far from the chain's time.
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
