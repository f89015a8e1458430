package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// Limits of asking others about a block.
const (
	// maxPolled is how many other providers are asked for the block at a
	// height before it becomes final. They are all asked when they differ.
	maxPolled = 2
	// maxLinked is over how many blocks a provider's chain is followed to see
	// whether it hangs together.
	maxLinked = 256
)

// NoQuorumError says that nothing more is called final, because the providers do
// not agree on what the chain holds or too few of them answer. What is not
// final is read on, and the question is asked again.
type NoQuorumError struct{ Reason string }

// Error says why.
func (e *NoQuorumError) Error() string { return "nothing is confirmed: " + e.Reason }

// vote is what another provider says of the block at a height.
type vote struct {
	node
	hash invoice.Hash
}

// votes asks providers for their block at a height, all at once, and
// returns what those said that answered in time.
func (w *Indexer) votes(ctx context.Context, providers []*chain.Node, number uint64) []vote {
	answers := make([]*vote, len(providers))
	var group sync.WaitGroup
	for i, p := range providers {
		group.Go(func() {
			n := node{p}
			_ = w.consult(ctx, n, func(ctx context.Context) error {
				headers, err := n.headers(ctx, number)
				if err == nil {
					answers[i] = &vote{n, headers[0].Hash}
				}
				return err
			})
		})
	}
	group.Wait()
	var said []vote
	for _, a := range answers {
		if a != nil {
			said = append(said, *a)
		}
	}
	return said
}

// crossCheck asks other providers for their block at the height of one that a
// provider told of and that is about to become final above the block final,
// which is zero when nothing is final yet.
// Those who are wrong are set aside: first those whose chain is not a chain, or
// goes around the block that is final already; then those who are outvoted. It
// is a *providerError when that is the provider itself, and a *UnsureError when
// it cannot be told who is wrong. Providers that do not answer have no voice.
func (w *Indexer) crossCheck(ctx context.Context, n node, at, final settle.Header) error {
	others := w.Pool.Others(n.Node)
	said := w.votes(ctx, others[:min(len(others), maxPolled)], at.Number)
	differs := func(v vote) bool { return v.hash != at.Hash }
	if !slices.ContainsFunc(said, differs) {
		return nil
	}
	if len(others) > maxPolled {
		said = append(said, w.votes(ctx, others[maxPolled:], at.Number)...)
	}
	said = slices.DeleteFunc(said, func(v vote) bool { return differs(v) && !w.verifyChain(ctx, v, at.Number, final) })
	if !slices.ContainsFunc(said, differs) {
		return nil
	}
	if !w.verifyChain(ctx, vote{n, at.Hash}, at.Number, final) {
		return &nodeError{node: n.Node, err: fmt.Errorf("%s tells of a chain that is none", n), reported: true}
	}
	votes := map[invoice.Hash]int{at.Hash: 1}
	for _, v := range said {
		votes[v.hash]++
	}
	for hash, count := range votes {
		if 2*count <= len(said)+1 {
			continue
		}
		for _, v := range append(said, vote{n, at.Hash}) {
			if v.hash != hash {
				v.Quarantine(fmt.Sprintf("has %s as block %d, where %d of %d providers have %s", v.hash, at.Number, count, len(said)+1, hash))
			}
		}
		if hash == at.Hash {
			return nil
		}
		return &nodeError{node: n.Node, err: fmt.Errorf("%s is outvoted on block %d", n, at.Number), reported: true}
	}
	words := []string{fmt.Sprintf("%s has %s", n, at.Hash)}
	for _, v := range said {
		words = append(words, fmt.Sprintf("%s has %s", v.node, v.hash))
	}
	return &NoQuorumError{fmt.Sprintf("the providers disagree on block %d, which should be final: %s; add another provider or find out which of them is wrong",
		at.Number, strings.Join(words, ", "))}
}

// verifyChain reports whether the provider's chain holds the final block, and hangs
// together between there and the block above the one at a height, as far as
// that is looked at. A provider whose chain does not is set aside; one that
// does not answer is taken for sound.
func (w *Indexer) verifyChain(ctx context.Context, v vote, number uint64, final settle.Header) bool {
	low, high := final.Number, number+1
	if number < final.Number {
		low, high = number, min(final.Number, number+maxLinked)
	} else if high-low > maxLinked {
		low = high - maxLinked
	}
	numbers := []uint64{final.Number}
	for at := low; at <= high; at++ {
		if at != final.Number {
			numbers = append(numbers, at)
		}
	}
	slices.Sort(numbers)
	var headers []chain.Header
	if err := w.consult(ctx, v.node, func(ctx context.Context) (err error) {
		headers, err = v.headers(ctx, numbers...)
		if errors.Is(err, chain.ErrNotFound) {
			// The block above may not be there yet.
			headers, err = v.headers(ctx, numbers[:len(numbers)-1]...)
		}
		return err
	}); err != nil {
		return true
	}
	for i, h := range headers {
		switch {
		case h.Number == final.Number && h.Hash != final.Hash && !final.Hash.IsZero():
			v.Quarantine(fmt.Sprintf("has %s as block %d, which was final as %s", h.Hash, h.Number, final.Hash))
			return false
		case h.Number == number && h.Hash != v.hash:
			v.Quarantine(fmt.Sprintf("has %s as block %d, and had %s when it was final", h.Hash, number, v.hash))
			return false
		case i > 0 && h.Number == headers[i-1].Number+1 && h.Parent != headers[i-1].Hash:
			v.Quarantine(fmt.Sprintf("has block %d on top of %s, and %s as the block below", h.Number, h.Parent, headers[i-1].Hash))
			return false
		}
	}
	return true
}

// handleViolation decides what it means that a provider replaced the newest final
// block, by a chain of which h is a block. When at least as many others still
// have the final block, the provider is set aside. When no other has it, or
// there is none, the chain is halted. Where no other answers, those that are
// set aside are heard as well, against the block alone: it may be for saying
// the same, only sooner, that they are.
func (w *Indexer) handleViolation(ctx context.Context, n node, h chain.Header) error {
	final := w.tracker.Final()
	others := w.Pool.Others(n.Node)
	said := w.votes(ctx, others, final.Number)
	if len(said) == 0 {
		rest := slices.DeleteFunc(w.Pool.Nodes(), func(p *chain.Node) bool { return p == n.Node || slices.Contains(others, p) })
		said = slices.DeleteFunc(w.votes(ctx, rest, final.Number), func(v vote) bool { return v.hash == final.Hash })
	}
	keep, lost := 0, 1
	for _, v := range said {
		if v.hash == final.Hash {
			keep++
		} else {
			lost++
		}
	}
	switch {
	case keep >= lost:
		return n.contradicts("replaced block %d, which was final as %s and still is to %d others", final.Number, final.Hash, keep)
	case keep > 0:
		return &NoQuorumError{fmt.Sprintf("block %d was final as %s, and %d of %d providers have another block there now", final.Number, final.Hash, lost, lost+keep)}
	case lost == 1 && len(w.Pool.Nodes()) > 1:
		return &NoQuorumError{fmt.Sprintf("%s replaced block %d, which was final as %s, and no other provider answers whether it has that block",
			n, final.Number, final.Hash)}
	}
	return w.halt(ctx, n, h)
}

// halt records that the provider replaced a final block by one that h descends
// from or is.
func (w *Indexer) halt(ctx context.Context, n node, h chain.Header) error {
	final := w.tracker.Final()
	reason := fmt.Sprintf("block %d was final as %s, but %s now has a chain without it, with block %d as %s; finality %s is too weak, or the node is wrong",
		final.Number, final.Hash, n, h.Number, h.Hash, w.Chain.Finality)
	if err := w.Ledger.Halt(ctx, w.Chain.Key, reason); err != nil {
		return err
	}
	return &HaltedError{ChainKey: w.Chain.Key, Reason: reason}
}
