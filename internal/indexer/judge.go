package indexer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
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

// blockReading is a node's answer about the block at a height.
type blockReading struct {
	node      string
	block     blockID
	inspected bool   // chainFault checked the node's chain, or the chain could not be read
	fault     string // why the node's chain is impossible; empty if it is valid
}

// blockID is what the nodes must agree on about a block. The hash commits to the time, but a node may return it with
// another time.
type blockID struct {
	hash invoice.Hash
	time int64
}

func idOf(h invoice.Header) blockID { return blockID{h.Hash, h.Time.Unix()} }

// String returns the hash and the time.
func (b blockID) String() string { return fmt.Sprintf("%s of %d", b.hash, b.time) }

// blockVerdict is the result of judgeBlock.
type blockVerdict struct {
	ruling  ruling
	reason  string      // for reject and undecided
	inspect []int       // for askMore: the readings to inspect; empty to ask the remaining nodes
	wrong   []wrongNode // nodes that are wrong
}

// judgeBlock decides whether a block may become final, from the readings of its height. It ignores a reading if the
// node's chain is impossible. Among the others a strict majority wins. complete reports that every node was asked.
func judgeBlock(number uint64, readings []blockReading, complete bool) blockVerdict {
	var v blockVerdict
	var rivals, uninspected []int // valid readings of another block
	own := readings[0]
	for i, r := range readings {
		switch {
		case r.fault != "":
			v.wrong = append(v.wrong, wrongNode{i, r.fault})
		case r.block != own.block:
			rivals = append(rivals, i)
			if !r.inspected {
				uninspected = append(uninspected, i)
			}
		}
	}
	switch {
	case own.fault != "":
		v.ruling, v.reason = reject, "returned an inconsistent header chain"
	case len(rivals) == 0:
		v.ruling = accept
	case !complete:
		v.ruling = askMore
	case len(uninspected) > 0:
		v.ruling, v.inspect = askMore, uninspected
	case !own.inspected:
		v.ruling, v.inspect = askMore, []int{0}
	default:
		v.countVotes(number, readings)
	}
	return v
}

// countVotes counts the votes of the valid readings, and finds the nodes that are outvoted.
func (v *blockVerdict) countVotes(number uint64, readings []blockReading) {
	votes, total := map[blockID]int{}, 0
	var said []string
	for _, r := range readings {
		if r.fault == "" {
			total++
			votes[r.block]++
			said = append(said, r.node+" has "+r.block.String())
		}
	}
	i := slices.IndexFunc(readings, func(r blockReading) bool { return r.fault == "" && 2*votes[r.block] > total })
	if i < 0 {
		v.ruling = undecided
		v.reason = fmt.Sprintf("the nodes disagree on block %d, which should be final: %s; %s", number, strings.Join(said, ", "), hint)
		return
	}
	winner := readings[i].block
	for i, r := range readings {
		if r.fault == "" && r.block != winner {
			v.wrong = append(v.wrong, wrongNode{i,
				fmt.Sprintf("has %s as block %d, where %d of %d nodes have %s", r.block, number, votes[winner], total, winner)})
		}
	}
	if winner != readings[0].block {
		v.ruling, v.reason = reject, fmt.Sprintf("is outvoted on block %d", number)
	}
}

// chainFault returns why the headers of a node are impossible, or "" if they are valid. They must contain the final
// block, unless no block is final yet; they must still have the block that the node voted for at the height; and their
// parent hashes must link them. Headers are ascending and may have gaps.
func chainFault(headers []chain.Header, number uint64, voted blockID, final invoice.Header) string {
	for i, h := range headers {
		switch {
		case h.Number == final.Number && h.Hash != final.Hash && !final.Hash.IsZero():
			return fmt.Sprintf("has %s as block %d, which was final as %s", h.Hash, h.Number, final.Hash)
		case h.Number == number && idOf(h.Header) != voted:
			return fmt.Sprintf("has %s as block %d, and had %s when it was final", idOf(h.Header), number, voted)
		case i > 0 && h.Number == headers[i-1].Number+1 && h.Parent != headers[i-1].Hash:
			return fmt.Sprintf("has block %d on top of %s, and %s as the block below", h.Number, h.Parent, headers[i-1].Hash)
		}
	}
	return ""
}

// heightsToInspect returns the heights that chainFault needs, ascending: the final block, and up to maxLinked blocks
// that end above the judged one.
func heightsToInspect(number, final uint64) []uint64 {
	low, high := final, number+1
	if number < final {
		low, high = number, min(final, number+maxLinked)
	} else if high-low > maxLinked {
		low = high - maxLinked
	}
	heights := []uint64{final}
	for at := low; at <= high; at++ {
		if at != final {
			heights = append(heights, at)
		}
	}
	slices.Sort(heights)
	return heights
}
