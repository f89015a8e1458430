package indexer

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// judge checks that a block that was reported as final is on the chain.
func (s *scenario) judge(final invoice.Header) {
	s.mu.Lock()
	blocks, floor := s.net.Blocks(), s.floor
	s.mu.Unlock()
	switch {
	case final.Number > floor:
		s.report(extraPayments, "block %d was called final, but block %d is the newest that can be", final.Number, floor)
	case invoice.Hash(blocks[final.Number].Hash) != final.Hash:
		s.report(extraPayments, "block %d was called final as %s, and is %s", final.Number, final.Hash, blocks[final.Number].Hash)
	}
}

// mine adds a block with new transactions, and with some that a reorg removed.
func (s *scenario) mine() {
	s.clock.Add(int64(1 + s.IntN(15)))
	var of []*action
	for range s.IntN(4) {
		of = append(of, s.compose())
	}
	for len(s.loose) > 0 && s.chance(60) {
		i := s.IntN(len(s.loose))
		of = append(of, s.loose[i])
		s.loose = slices.Delete(s.loose, i, i+1)
	}
	s.mineBlock(of)
	s.moveTag()
}

// mineBlock adds a block. Its time may equal its parent's time, and may be a little behind the clock, but is not
// earlier than the creation of an invoice minus the tolerated skew.
func (s *scenario) mineBlock(of []*action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var txs []chaintest.Tx
	for _, d := range of {
		txs = append(txs, d.tx)
	}
	at := max(s.net.Head().Time+int64(s.IntN(2)), s.clock.Load()-int64(s.IntN(15)))
	s.clock.Store(max(s.clock.Load(), at-3))
	b := s.net.MineAt(at, txs...)
	for _, d := range of {
		d.at = append(d.at, b)
	}
	s.highest = max(s.highest, b.Number)
	s.settle()
}

// settle computes the highest block that a node can have reported as final.
func (s *scenario) settle() {
	if line, ok := s.finality.Height(s.highest, s.tag); ok {
		s.floor = max(s.floor, line)
	}
}

// tagAt moves the tag "finalized" to a block.
func (s *scenario) tagAt(number uint64) {
	s.tag = number
	s.net.Tag(s.finality.Tag, number)
	s.settle()
}

// moveTag moves the tag "finalized" towards the head.
func (s *scenario) moveTag() {
	if s.finality.Tag == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if head := s.net.Head().Number; s.tag < head && s.chance(60) {
		s.tagAt(s.tag + 1 + s.Uint64N(min(head-s.tag, 4)))
	}
}

// silence adds blocks without transactions.
func (s *scenario) silence() {
	n := 1 + s.IntN(6)
	if s.long && s.chance(50) {
		n = 3*maxBlocks + s.IntN(3*maxBlocks)
	}
	for range n {
		s.clock.Add(int64(s.IntN(10)))
		s.mineBlock(nil)
	}
	if n > 10 && s.finality.Tag != "" {
		s.mu.Lock()
		s.tagAt(s.net.Head().Number - s.Uint64N(4))
		s.mu.Unlock()
	}
	s.moveTag()
}

// planFork returns a function that replaces blocks that no node can have reported as final,
// and mines some of their transactions in the new blocks.
func (s *scenario) planFork() func() {
	s.mu.Lock()
	head := s.net.Head().Number
	s.mu.Unlock()
	most := head - s.floor
	if most == 0 {
		return func() {}
	}
	depth := 1 + s.Uint64N(most)
	var dropped []*action
	for _, b := range s.net.Blocks()[head-depth+1:] {
		for _, tx := range b.Txs {
			dropped = append(dropped, s.actionOf(tx.Hash))
		}
	}
	if s.chance(30) {
		s.Shuffle(len(dropped), func(i, j int) { dropped[i], dropped[j] = dropped[j], dropped[i] })
	}
	var again [][]*action
	for range s.Uint64N(depth + 2) {
		n := s.IntN(len(dropped) + 1)
		again = append(again, dropped[:n])
		dropped = dropped[n:]
	}
	seconds := int64(s.IntN(10))
	return func() {
		s.count("reorgs")
		s.mu.Lock()
		s.net.Fork(int(depth))
		if head := s.net.Head().Number; s.finality.Tag != "" && s.tag > head {
			s.tagAt(head)
		}
		s.mu.Unlock()
		s.clock.Add(seconds)
		for _, of := range again {
			s.mineBlock(of)
		}
		s.loose = append(s.loose, dropped...)
	}
}

func (s *scenario) actionOf(tx common.Hash) *action {
	i := slices.IndexFunc(s.actions, func(d *action) bool { return d.tx.Hash == tx })
	return s.actions[i]
}
