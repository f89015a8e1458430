package indexer

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/invoice"
)

// The judges compare what several nodes say. They are pure: each takes the
// readings gathered so far and returns a ruling, or which reading is missing.
// The indexer gathers readings until there is one. In every list of readings,
// the first is that of the node that is judged.

// ruling is a judge's decision about the first reading.
type ruling int

const (
	accept    ruling = iota // it is right
	reject                  // its node is wrong
	undecided               // the readings do not show which node is wrong
	askMore                 // more readings are needed
)

// wrongNode names a node that is wrong: the index of its reading, and why.
type wrongNode struct {
	reading int
	reason  string
}

// hint says how the operator can resolve a disagreement of the nodes.
const hint = "add another node, or find out which of them is wrong"

// judgeHeight returns the height up to which blocks are final, given the
// finalized height of a node and those of the others that answered. The highest
// of the others counts, so that a lagging or byzantine one delays nothing while there
// is a third. Without an answer it is the node's own: confirming needs a second
// reading anyway. ok is false when finality depends on a tag and it holds for no
// block of any other node. Without a tag, height 0 is valid: the chain is younger
// than its depth.
func judgeHeight(own uint64, others []uint64, tagged bool) (height uint64, ok bool) {
	if len(others) == 0 {
		return own, true
	}
	var highest uint64
	for _, h := range others {
		highest = max(highest, h)
	}
	return min(own, highest), highest > 0 || !tagged
}

// judgeEmpty decides whether a node was right to return no logs for blocks whose
// bloom filter may match, given the logs that another node returned for them.
func judgeEmpty(other string, blocks []invoice.Hash, logs [][]types.Log) (r ruling, reason string) {
	for i, of := range logs {
		if len(of) > 0 {
			return reject, fmt.Sprintf("left out the logs of block %s, which its bloom filter may match and %s has", blocks[i], other)
		}
	}
	return accept, ""
}

// judgeMissing decides whether to accept that the receipts of a node lack a recorded
// transfer, given whether the receipts of the other nodes hold it. A majority
// for the transfer rejects the node, a tie is undecided.
func judgeMissing(node string, t invoice.Transfer, held []bool) (r ruling, reason string) {
	holds, lacks := 0, 1
	for _, h := range held {
		if h {
			holds++
		} else {
			lacks++
		}
	}
	switch {
	case holds > lacks:
		return reject, fmt.Sprintf("lacks a transfer of transaction %s in block %d, which %d other nodes hold", t.TxHash, t.BlockNumber, holds)
	case holds == lacks:
		return undecided, fmt.Sprintf("%s lacks a transfer of transaction %s in block %d, which another node holds; %s", node, t.TxHash, t.BlockNumber, hint)
	}
	return accept, ""
}

// judgeViolation decides whether to believe a node that replaced a final block,
// given the blocks of other nodes at that height. It is rejected when at least as
// many nodes still have the final block as have another. It is undecided when a
// minority still has it, or when the chain has other nodes and none answered.
func judgeViolation(node string, final invoice.Header, others []blockReading, sole bool) (r ruling, reason string) {
	keep, lost := 0, 1
	for _, o := range others {
		if o.hash == final.Hash {
			keep++
		} else {
			lost++
		}
	}
	switch {
	case keep >= lost:
		return reject, fmt.Sprintf("replaced block %d, which was final as %s and still is to %d others", final.Number, final.Hash, keep)
	case keep > 0:
		return undecided, fmt.Sprintf("block %d was final as %s, and %d of %d nodes have another block there now", final.Number, final.Hash, lost, lost+keep)
	case lost == 1 && !sole:
		return undecided, fmt.Sprintf("%s replaced block %d, which was final as %s, and no other node answers whether it has that block",
			node, final.Number, final.Hash)
	}
	return accept, ""
}
