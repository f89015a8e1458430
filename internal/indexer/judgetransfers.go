package indexer

import (
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// transfersReading is a node's answer about the transfers of a block range.
type transfersReading struct {
	node      string
	transfers []invoice.Transfer
	proof     proof // for the transfers that judgeTransfers asked to prove; unknown for the first reading
}

// proof reports whether receipts hold transfers that a node did not report.
type proof int

const (
	proofUnknown proof = iota
	proofHeld          // the node's own receipts hold what the node left out
	proofMissing       // they do not
)

func proofOf(held bool) proof {
	if held {
		return proofHeld
	}
	return proofMissing
}

// transfersVerdict is the result of judgeTransfers.
type transfersVerdict struct {
	ruling ruling
	reason string     // for undecided
	block  uint64     // for reject: the lowest block where the first reading is wrong
	prove  *proveStep // for askMore: what to prove; nil to take another reading
	wrong  []wrongNode
}

// proveStep asks whether a node's own receipts hold transfers that it left out.
type proveStep struct {
	of        int // index of the reading of the node to ask
	result    int // index of the reading that stores the proof
	transfers []invoice.Transfer
}

// judgeTransfers decides whether a second node confirms the first reading of a block range that ends with last. If two
// readings differ, the receipts of the node that reported less show whether it left a transfer out. If the receipts do
// not show it, a third reading that equals one of the two decides. complete reports that no other node can be read.
func judgeTransfers(last uint64, readings []transfersReading, complete bool) transfersVerdict {
	first := readings[0]
	var v transfersVerdict
	var rivals []int // readings that differ and are not disproved
	for i := 1; i < len(readings); i++ {
		r := readings[i]
		d := compare(first.transfers, r.transfers)
		if d.equal() {
			for _, rival := range rivals {
				v.wrong = append(v.wrong, wrongNode{rival,
					fmt.Sprintf("reports other transfers up to block %d than %s and %s", last, first.node, r.node)})
			}
			return v
		}
		step := d.prove(i)
		switch {
		case step != nil && r.proof == proofUnknown:
			v.ruling, v.prove = askMore, step
			return v
		case step != nil && r.proof == proofHeld:
			v.wrong = append(v.wrong, wrongNode{step.of, fmt.Sprintf("left out transfers of block %d that are in its receipts", d.block)})
			if step.of == 0 {
				v.ruling, v.block = reject, d.block
				return v
			}
			continue
		}
		if ally := slices.IndexFunc(rivals, func(rival int) bool { return compare(readings[rival].transfers, r.transfers).equal() }); ally >= 0 {
			v.ruling, v.block = reject, d.block
			v.wrong = append(v.wrong, wrongNode{0,
				fmt.Sprintf("reports other transfers in block %d than %s and %s", d.block, readings[rivals[ally]].node, r.node)})
			return v
		}
		rivals = append(rivals, i)
	}
	if !complete {
		v.ruling = askMore
		return v
	}
	v.ruling = undecided
	v.reason = fmt.Sprintf("the quorum is two nodes, but none besides %s answers for block %d", first.node, last)
	if len(rivals) > 0 {
		v.reason = fmt.Sprintf("%s and %s report different transfers up to block %d; %s", first.node, readings[rivals[0]].node, last, hint)
	}
	return v
}

// difference is how the transfers of two readings differ.
type difference struct {
	onlyFirst, onlySecond         []invoice.Transfer
	unseenByFirst, unseenBySecond []invoice.Transfer // without regard to their evidence
	block                         uint64             // the lowest block that differs; 0 if all are equal
}

func (d difference) equal() bool { return len(d.onlyFirst)+len(d.onlySecond) == 0 }

// prove returns which node's receipts can show that it left a transfer out, if the second reading is the ith. It is nil
// if both report the same movements with different evidence.
func (d difference) prove(i int) *proveStep {
	switch {
	case len(d.unseenByFirst) > 0:
		return &proveStep{of: 0, result: i, transfers: d.unseenByFirst}
	case len(d.unseenBySecond) > 0:
		return &proveStep{of: i, result: i, transfers: d.unseenBySecond}
	}
	return nil
}

func compare(first, second []invoice.Transfer) difference {
	var d difference
	d.onlyFirst, d.onlySecond = differences(first, second)
	if d.equal() {
		return d
	}
	d.unseenByFirst, d.unseenBySecond = differences(withoutEvidence(d.onlySecond), withoutEvidence(d.onlyFirst))
	d.block = slices.MinFunc(slices.Concat(d.onlyFirst, d.onlySecond), byPosition).BlockNumber
	return d
}

// withoutEvidence returns the transfers without the evidence for their invoices.
func withoutEvidence(transfers []invoice.Transfer) []invoice.Transfer {
	all := slices.Clone(transfers)
	for i := range all {
		all[i].Evidence = invoice.Evidence{}
	}
	return all
}

// differences returns the transfers that only one of two lists holds.
func differences(a, b []invoice.Transfer) (onlyA, onlyB []invoice.Transfer) {
	return without(a, b), without(b, a)
}

func without(list, other []invoice.Transfer) []invoice.Transfer {
	has := make(map[invoice.Transfer]bool, len(other))
	for _, t := range other {
		has[t] = true
	}
	var rest []invoice.Transfer
	for _, t := range list {
		if !has[t] {
			rest = append(rest, t)
		}
	}
	return rest
}

func byPosition(a, b invoice.Transfer) int { return a.Compare(b.Position) }
