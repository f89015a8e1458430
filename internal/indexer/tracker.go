package indexer

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Tracker holds the indexed blocks that can still be replaced, and decides what a block that a node calls canonical
// means for them. It does no I/O: the loop passes it blocks and reports what was done.
type Tracker struct {
	// blocks are the canonical blocks that were read, ascending, starting at the newest final one. A range that was
	// read as a whole leaves gaps.
	blocks []invoice.Header
}

// Verdict is what to do about a block.
type Verdict int

// Verdicts of Classify.
const (
	// Known: the block is the newest indexed one. No action is needed.
	Known Verdict = iota
	// Extends: the block follows the newest indexed one. Read it.
	Extends
	// Ask: the decision depends on the node's block at the height Step.Ask. Classify that block next.
	Ask
	// Reorg: blocks above Step.Ancestor were replaced. Roll back to it.
	Reorg
	// Violation: a final block was replaced. Stop.
	Violation
)

// Step is the decision of Classify.
type Step struct {
	Verdict  Verdict
	Ask      uint64
	Ancestor invoice.Header
}

// NewTracker returns a tracker at the cursor's position, with the stored headers of the blocks between its two ends.
func NewTracker(c ledger.Progress, stored []invoice.Header) *Tracker {
	t := &Tracker{blocks: []invoice.Header{c.Confirmed}}
	for _, h := range stored {
		// The cursor does not know the parent of its newest block.
		if t.Tip().Number < h.Number && (h.Number < c.Indexed.Number || h.Hash == c.Indexed.Hash) {
			t.Append(h)
		}
	}
	if c.Indexed.Number > t.Tip().Number {
		t.Append(c.Indexed)
	}
	return t
}

// Tip returns the newest indexed block.
func (t *Tracker) Tip() invoice.Header { return t.blocks[len(t.blocks)-1] }

// Linked returns the number of the lowest block from which each indexed block names the one below as its parent, up to
// the tip. A node that calls the tip canonical also confirms all of these.
func (t *Tracker) Linked() uint64 {
	i := len(t.blocks) - 1
	for i > 0 && t.blocks[i].Parent == t.blocks[i-1].Hash {
		i--
	}
	return t.blocks[i].Number
}

// Final returns the newest final block.
func (t *Tracker) Final() invoice.Header { return t.blocks[0] }

// At returns the newest kept block at or below a height. There is one unless the height is below the newest final
// block.
func (t *Tracker) At(number uint64) (h invoice.Header, ok bool) {
	i := t.above(number)
	if i == 0 {
		return invoice.Header{}, false
	}
	return t.blocks[i-1], true
}

// Ahead returns the newest kept block that is up to the given number of blocks above the newest final one, or else the
// first block above the final one. If there is no block above the final one it returns the final one.
func (t *Tracker) Ahead(blocks uint64) invoice.Header {
	h, _ := t.At(t.Final().Number + blocks)
	if h.Number == t.Final().Number && len(t.blocks) > 1 {
		return t.blocks[1]
	}
	return h
}

// Part returns the newest kept block up to at with at most n of the pending transfers in or below it, or else the first
// block above the final one.
func (t *Tracker) Part(at invoice.Header, pending []invoice.Transfer, n int) invoice.Header {
	if len(pending) <= n {
		return at
	}
	numbers := make([]uint64, len(pending))
	for i, p := range pending {
		numbers[i] = p.BlockNumber
	}
	slices.Sort(numbers)
	final := t.Final().Number
	if part := t.Ahead(max(numbers[n]-1, final) - final); part.Number < at.Number {
		return part
	}
	return at
}

// above returns the index of the first block above a height.
func (t *Tracker) above(number uint64) int {
	i, exact := slices.BinarySearchFunc(t.blocks, number, func(h invoice.Header, n uint64) int {
		switch {
		case h.Number < n:
			return -1
		case h.Number > n:
			return 1
		}
		return 0
	})
	if exact {
		i++
	}
	return i
}

// Classify decides what it means that the node's canonical chain holds h. It judges a block below the tip only if an
// earlier step asked for it, or if it is known to differ: if it is the same as the indexed one, the fork is above it.
func (t *Tracker) Classify(h invoice.Header) Step {
	tip := t.Tip()
	same, ok := t.At(h.Number)
	switch {
	case !ok:
		// Below the final block there is no header to compare with.
		return Step{Verdict: Ask, Ask: t.Final().Number}
	case same.Number == h.Number && same.Hash == h.Hash:
		if h.Number == tip.Number {
			return Step{Verdict: Known}
		}
		return Step{Verdict: Reorg, Ancestor: same}
	case h.Number <= t.Final().Number:
		return Step{Verdict: Violation}
	}
	below, _ := t.At(h.Number - 1)
	switch {
	case below.Number == h.Number-1 && below.Hash == h.Parent:
		if below.Number == tip.Number {
			return Step{Verdict: Extends}
		}
		return Step{Verdict: Reorg, Ancestor: below}
	case below.Number == h.Number-1 && below.Number == t.Final().Number:
		return Step{Verdict: Violation}
	case h.Number > tip.Number+1:
		return Step{Verdict: Ask, Ask: tip.Number + 1}
	}
	return Step{Verdict: Ask, Ask: below.Number}
}

// Append records that blocks up to h have been read. Blocks between the tip and h are taken to be without events.
func (t *Tracker) Append(h invoice.Header) { t.blocks = append(t.blocks, h) }

// Rewind records that everything above ancestor was rolled back.
func (t *Tracker) Rewind(ancestor invoice.Header) {
	t.blocks = t.blocks[:t.above(ancestor.Number)]
}

// Finalize records that h, one of the blocks, and all below are final.
func (t *Tracker) Finalize(h invoice.Header) {
	t.blocks = slices.Delete(t.blocks, 0, t.above(h.Number)-1)
}
