package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of cross-checks.
const (
	// maxPolled is how many other nodes are asked for a block before it becomes final. If they differ, all nodes are
	// asked.
	maxPolled = 2
	// maxLinked is how many headers of a node are inspected for their links.
	maxLinked = 256
)

// NoQuorumError means that no more blocks are confirmed, because the nodes disagree or too few of them answer. Indexing
// continues, and confirming is retried.
type NoQuorumError struct{ Reason string }

// Error returns the reason.
func (e *NoQuorumError) Error() string { return "nothing is confirmed: " + e.Reason }

// poll holds the nodes' answers about the block at a height: one reading for each node.
type poll struct {
	nodes    []node
	readings []blockReading
}

// ask asks nodes for their block at a height, in parallel, and adds the readings of the nodes that answer within
// consultTimeout.
func (p *poll) ask(ctx context.Context, ix *Indexer, nodes []*chain.Node, number uint64) {
	blocks := make([]*blockID, len(nodes))
	var group sync.WaitGroup
	for i, c := range nodes {
		group.Go(func() {
			_ = ix.consult(ctx, node{c}, func(ctx context.Context) error { // logged there; a node that does not answer has no vote
				headers, err := node{c}.headers(ctx, number)
				if err == nil {
					blocks[i] = new(idOf(headers[0].Header))
				}
				return err
			})
		})
	}
	group.Wait()
	for i, block := range blocks {
		if block != nil {
			p.nodes = append(p.nodes, node{nodes[i]})
			p.readings = append(p.readings, blockReading{node: nodes[i].String(), block: *block})
		}
	}
}

// quarantine quarantines the nodes that a judge found to be wrong.
func quarantine(nodes []node, wrong []wrongNode) {
	for _, f := range wrong {
		nodes[f.reading].Quarantine(f.reason)
	}
}

// errOtherTime means that a node has a block with another time than it was recorded with, from an answer of another node
// or an earlier answer of this one.
var errOtherTime = errors.New("the block was recorded with another time")

// verifyBlock asks other nodes for their block at the height of a block that the node has returned, and that is about to
// become final. final is the newest final block, or zero before the first. judgeBlock decides, and nodes that are wrong
// are quarantined. The error is a *nodeError if the node itself is wrong, and a *NoQuorumError if the result is
// undecided.
func (ix *Indexer) verifyBlock(ctx context.Context, n node, at, final invoice.Header) error {
	err := ix.verifyHeader(ctx, n, at, final)
	if errors.Is(err, errOtherTime) {
		err = n.contradicts("returned block %d, %s, with two times", at.Number, at.Hash)
	}
	return err
}

// verifyHeader is verifyBlock for a block that any node has returned. The error is errOtherTime if the node is right and
// at is not.
func (ix *Indexer) verifyHeader(ctx context.Context, n node, at, final invoice.Header) error {
	p := poll{nodes: []node{n}, readings: []blockReading{{node: n.String(), block: idOf(at)}}}
	rest := ix.cfg.Pool.Others(n.Node)
	some := rest[:min(len(rest), maxPolled)]
	p.ask(ctx, ix, some, at.Number)
	rest = rest[len(some):]
	for asked := false; ; {
		if !asked && slices.ContainsFunc(p.readings, func(r blockReading) bool { return r.block.hash == at.Hash && r.block != idOf(at) }) {
			// Another node may have reported the time, so the node is judged by its own answer.
			headers, err := n.headers(ctx, at.Number)
			if err != nil {
				return err
			}
			p.readings[0].block, asked = idOf(headers[0].Header), true
		}
		v := judgeBlock(at.Number, p.readings, len(rest) == 0)
		quarantine(p.nodes, v.wrong)
		switch v.ruling {
		case accept:
			if p.readings[0].block != idOf(at) {
				return fmt.Errorf("block %d: %w", at.Number, errOtherTime)
			}
			return nil
		case reject:
			return &nodeError{node: n.Node, err: fmt.Errorf("%s %s", n, v.reason), reported: true}
		case undecided:
			return &NoQuorumError{v.reason}
		case askMore:
		}
		if len(v.inspect) == 0 {
			p.ask(ctx, ix, rest, at.Number)
			rest = nil
		}
		for _, i := range v.inspect {
			p.readings[i].fault = ix.inspect(ctx, p.nodes[i], at.Number, p.readings[i].block, final)
			p.readings[i].inspected = true
		}
	}
}

// inspect reads the headers of a node around a height, and returns their chainFault. It returns no fault if the node
// does not answer.
func (ix *Indexer) inspect(ctx context.Context, n node, number uint64, voted blockID, final invoice.Header) string {
	heights := heightsToInspect(number, final.Number)
	var headers []chain.Header
	err := ix.consult(ctx, n, func(ctx context.Context) (err error) {
		headers, err = n.headers(ctx, heights...)
		if chain.IsRefusal(err) && ctx.Err() == nil {
			// The block above may not be there yet.
			headers, err = n.headers(ctx, heights[:len(heights)-1]...)
		}
		return err
	})
	if err != nil {
		return ""
	}
	return chainFault(headers, number, voted, final)
}

// handleViolation handles a node that replaced the newest final block by a chain that contains h. judgeViolation
// decides whether the node is wrong or, after askAgain, the chain is halted. If no other node answers, the quarantined
// ones are asked as well, but they count only against the final block: they may be quarantined for replacing it
// earlier.
func (ix *Indexer) handleViolation(ctx context.Context, n node, h chain.Header) error {
	final := ix.tracker.Final()
	all, others := ix.cfg.Pool.Nodes(), ix.cfg.Pool.Others(n.Node)
	var p poll
	p.ask(ctx, ix, others, final.Number)
	if len(p.readings) == 0 {
		rest := slices.DeleteFunc(slices.Clone(all), func(p *chain.Node) bool { return p == n.Node || slices.Contains(others, p) })
		p.ask(ctx, ix, rest, final.Number)
		p.readings = slices.DeleteFunc(p.readings, func(r blockReading) bool { return r.block.hash == final.Hash })
	}
	switch r, reason := judgeViolation(n.String(), final, p.readings, len(all) == 1); r {
	case reject:
		return n.contradicts("%s", reason)
	case undecided:
		return &NoQuorumError{reason}
	case accept, askMore:
	}
	if err := ix.askAgain(ctx, n, final); err != nil {
		return err
	}
	return ix.halt(ctx, n, h)
}

// askAgain asks a node a second time about a final block that it replaced, because only a person can resume a halted
// chain. It fails if the node has the block again, or calls no block at that height final, so that its state may be old.
func (ix *Indexer) askAgain(ctx context.Context, n node, final invoice.Header) error {
	t, err := n.head(ctx, ix.cfg.Chain.Finality.Tag)
	if err != nil {
		return err
	}
	if height, _ := ix.cfg.Chain.Finality.Height(t.head.Number, t.tagged.Number); height < final.Number {
		return &nodeError{node: n.Node, reported: true, err: fmt.Errorf("%s has no block %s, which was final as block %d, and calls only blocks up to %d final: %w",
			n, final.Hash, final.Number, height, errNodeBehind)}
	}
	headers, err := n.headers(ctx, final.Number)
	if err == nil && headers[0].Hash == final.Hash {
		err = n.wrap(fmt.Errorf("%s replaced block %d, which was final as %s, and has it again", n, final.Number, final.Hash))
	}
	return err
}

// halt halts the chain, because the node replaced a final block by a chain that contains h.
func (ix *Indexer) halt(ctx context.Context, n node, h chain.Header) error {
	final := ix.tracker.Final()
	reason := fmt.Sprintf("block %d was final as %s, but %s now has a chain without it, with block %d as %s; finality %s is too weak, or the node is wrong",
		final.Number, final.Hash, n, h.Number, h.Hash, ix.cfg.Chain.Finality)
	if err := ix.cfg.Ledger.Halt(ctx, ix.cfg.Chain.Key, reason); err != nil {
		return err
	}
	return &HaltedError{ChainKey: ix.cfg.Chain.Key, Reason: reason}
}
