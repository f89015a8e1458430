package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// node wraps a node's calls: its errors are *nodeError, to distinguish them from the ledger's errors.
type node struct{ *chain.Node }

// nodeError is a failure of a node. Another node may succeed.
type nodeError struct {
	node       *chain.Node
	err        error
	reported   bool   // to the node's health
	rereadFrom uint64 // first block to roll back; 0 for no rollback
	byRange    bool   // the node failed to return the logs of a range
}

func (e *nodeError) Error() string { return e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

// report reports the error to the node's health, once.
func (e *nodeError) report() {
	if !e.reported {
		e.reported = true
		e.node.ReportFailure(e.err)
	}
}

// wrap returns err as a *nodeError, or nil.
func (n node) wrap(err error) error {
	if err == nil {
		return nil
	}
	return &nodeError{node: n.Node, err: err}
}

// contradicts quarantines the node for an answer that cannot be true, and returns the error.
func (n node) contradicts(format string, args ...any) *nodeError {
	reason := fmt.Sprintf(format, args...)
	n.Quarantine(reason)
	return &nodeError{node: n.Node, err: fmt.Errorf("%s %s", n, reason), reported: true}
}

// rejected returns the error of a node that a judge rejected and that is quarantined. Blocks from rereadFrom on are
// rolled back.
func (n node) rejected(reason string, rereadFrom uint64) error {
	return &nodeError{node: n.Node, err: fmt.Errorf("%s %s", n, reason), reported: true, rereadFrom: rereadFrom}
}

// ready checks the node against the chain's configuration, if that is due.
func (n node) ready(ctx context.Context) error {
	err := n.Node.Ready(ctx)
	if errors.Is(err, chain.ErrMismatch) {
		return &nodeError{node: n.Node, err: err, reported: true}
	}
	return n.wrap(err)
}

// heads are a node's newest block and its newest block with the finality tag, which is zero if there is no such block.
type heads struct{ head, tagged chain.Header }

// above returns how many of the node's blocks are above a height.
func (t heads) above(height uint64) uint64 { return t.head.Number - min(height, t.head.Number) }

// head reads the node's heads.
func (n node) head(ctx context.Context, tag string) (t heads, err error) {
	if t.head, t.tagged, err = n.HeadAndTagged(ctx, tag); err != nil {
		return heads{}, n.wrap(err)
	}
	if err := n.ReportHead(t.head); err != nil {
		return heads{}, &nodeError{node: n.Node, err: err, reported: true}
	}
	return t, nil
}

func (n node) headers(ctx context.Context, numbers ...uint64) ([]chain.Header, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	headers, err := n.Headers(ctx, numbers)
	return headers, n.wrap(err)
}

func (n node) logsOfBlocks(ctx context.Context, blocks []invoice.Hash, f chain.LogFilter) ([][]types.Log, error) {
	if len(blocks) == 0 {
		return nil, nil
	}
	logs, err := n.LogsOfBlocks(ctx, blocks, f)
	return logs, n.wrap(err) // after an error, the logs that were returned
}

// receipts returns the receipts of transactions by their hash.
func (n node) receipts(ctx context.Context, txs []common.Hash) (map[common.Hash]*chain.Receipt, error) {
	found := make(map[common.Hash]*chain.Receipt, len(txs))
	if len(txs) == 0 {
		return found, nil
	}
	receipts, err := n.Receipts(ctx, txs)
	for _, r := range receipts {
		if r != nil {
			found[r.TxHash] = r
		}
	}
	return found, n.wrap(err)
}

// try calls do with the first usable node, and with the next one while do fails with a *nodeError. If all nodes fail it
// returns the first error; it returns any other error immediately. turn rotates the order, to spread the load.
func (ix *Indexer) try(ctx context.Context, turn int, do func(node) error) error {
	var first error
	tried := map[*chain.Node]bool{}
	for {
		usable := slices.DeleteFunc(ix.cfg.Pool.Usable(), func(p *chain.Node) bool { return tried[p] })
		if len(usable) == 0 {
			return first
		}
		p := usable[turn%len(usable)]
		tried[p] = true
		err := do(node{p})
		var failed *nodeError
		switch {
		case err == nil:
			p.ReportSuccess()
			return nil
		case ctx.Err() != nil || !errors.As(err, &failed):
			return err
		}
		failed.report()
		ix.cfg.Logger.Debug("trying another node", "chain", ix.cfg.Chain.Key, "node", p.String(), "err", err)
		if first == nil || errors.Is(first, errNodeBehind) {
			first = err
		}
	}
}

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
