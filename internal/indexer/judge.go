package indexer

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/invoice"
)

// The judges compare the answers of several nodes. They are pure: each takes the readings gathered so far and returns a
// ruling, or the missing reading. The indexer gathers readings until there is a ruling. In every list of readings, the
// first belongs to the node under judgement.

// ruling is a judge's decision about the first reading.
type ruling int

const (
	accept    ruling = iota // it is right
	reject                  // its node is wrong
	undecided               // the readings do not show which node is wrong
	askMore                 // more readings are needed
)

// wrongNode identifies a node that is wrong by the index of its reading, with the reason.
type wrongNode struct {
	reading int
	reason  string
}

// hint is how the operator can resolve a disagreement of the nodes.
const hint = "add another node, or find out which of them is wrong"

// judgeHeight returns the height up to which blocks are final, given the finalized height of a node and the heights of
// the others that answered. It takes the highest of the others, so that a lagging or byzantine node delays no block
// while there is a third. If no other node answered, it takes the node's own height: confirming needs a second reading
// anyway. ok is false if finality depends on a tag and no other node has a block with the tag. Without a tag, height 0
// is valid: the chain is younger than its depth.
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

// judgeEmpty decides whether a node was right to return no logs for blocks with bloom filters that may match, given
// another node's logs of these blocks.
func judgeEmpty(other string, blocks []invoice.Hash, logs [][]types.Log) (r ruling, reason string) {
	for i, of := range logs {
		if len(of) > 0 {
			return reject, fmt.Sprintf("left out the logs of block %s, which its bloom filter may match and %s has", blocks[i], other)
		}
	}
	return accept, ""
}

// judgeMissing decides whether to accept that a node's receipts do not hold a recorded transfer. held reports whether
// the receipts of each other node hold it. A majority for the transfer rejects the node; a tie is undecided.
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

// judgeViolation decides whether to believe a node that replaced a final block, given the blocks of other nodes at that
// height. The node is rejected if at least half of the other nodes still have the final block. The result is undecided
// if a minority still has it, or if the chain has other nodes and no other node answered.
func judgeViolation(node string, final invoice.Header, others []blockReading, sole bool) (r ruling, reason string) {
	keep, lost := 0, 1
	for _, o := range others {
		if o.block.hash == final.Hash {
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
