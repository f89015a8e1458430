package indexer

import (
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// Methods of faults.
var (
	receiptMethods = []string{"eth_getTransactionReceipt", "eth_getBlockReceipts"}
	methods        = []string{
		"eth_chainId", "eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionReceipt", "eth_getTransactionByHash",
		"eth_getBlockReceipts",
	}
)

// clearFaults removes the faults of the nodes. At the end of a history, one node of three
// may keep its faults, and so may a failing one of two if one vote suffices. It reports
// whether a node kept them.
func (s *scenario) clearFaults() (spared bool) {
	spared = s.chance(30) && (s.nodes == 3 || s.nodes == 2 && s.quorum == 1 && !s.falsifies)
	for i, p := range s.proxies {
		if i != s.dishonest || !spared {
			p.SetFaults()
		}
	}
	return spared
}

// injectFaults replaces the nodes' faults. While the dishonest node falsifies answers, the
// nodes that can detect it answer; see falseAnswers.
func (s *scenario) injectFaults() {
	s.pass(2 * time.Minute) // until the backoff of every node has ended
	for _, p := range s.proxies {
		p.SetFaults()
	}
	s.falsifies = s.chance(50)
	if s.falsifies {
		if answers := s.falseAnswers(); len(answers) > 0 {
			s.proxies[s.dishonest].SetFaults(pick(s, answers...)())
			s.count("lies")
			if s.quorum < 2 {
				return
			}
		}
	}
	for i, p := range s.proxies {
		if i == s.dishonest && s.falsifies || s.chance(50) {
			continue
		}
		var faults []chaintest.Fault
		for range 1 + s.IntN(2) {
			faults = append(faults, s.failure())
		}
		p.SetFaults(faults...)
		s.count("failures")
	}
}

// failure returns a fault that does not falsify a block.
func (s *scenario) failure() chaintest.Fault {
	var f chaintest.Fault
	switch s.IntN(13) {
	case 0:
		f = chaintest.Refuse{Status: http.StatusTooManyRequests, RetryAfter: pick(s, "", "2", "30")}
	case 1:
		f = chaintest.Refuse{Status: pick(s, http.StatusInternalServerError, http.StatusBadGateway, http.StatusRequestEntityTooLarge)}
	case 2:
		f = chaintest.Garbage{}
	case 3:
		f = chaintest.Truncate{}
	case 4:
		f = chaintest.Disconnect{Middle: s.chance(50)}
	case 5:
		f = chaintest.PartialBatch{}
	case 6:
		f = chaintest.Fail{Code: pick(s, -32000, -32005, -32603), Message: pick(s, "internal error", "rate limit exceeded", "header not found")}
	case 7:
		f = chaintest.Only{Methods: []string{pick(s, methods...)}, Fault: chaintest.Fail{Code: -32601, Message: "the method does not exist"}}
	case 8:
		f = chaintest.Only{Methods: []string{pick(s, methods...)}, Fault: chaintest.Null{}}
	case 9:
		return chaintest.LimitLogs{Blocks: 1 + s.Uint64N(64), Logs: 1 + s.Uint64N(20), Wording: pick(s, chaintest.Wordings...)}
	case 10:
		return chaintest.Stale{Behind: 1 + s.Uint64N(5)}
	case 11:
		return chaintest.Sometimes{Percent: 50, Fault: chaintest.Stale{Behind: 1 + s.Uint64N(5)}}
	case 12:
		return chaintest.Stale{At: s.net.Head().Number + 1}
	}
	if s.stalls && s.chance(40) {
		f = chaintest.Stall{}
	}
	if s.chance(60) {
		f = chaintest.Sometimes{Percent: 10 + s.Uint64N(60), Fault: f}
	}
	return f
}

// falseAnswers are the faults of the dishonest node that can be detected from its own answers or from the other nodes'
// answers, under these assumptions:
//
//   - Receipts that are missing or name another block contradict its logs.
//   - Omitting all logs of a block contradicts the block's bloom filter, if the
//     filter has every log and the block is read by its hash.
//   - Inconsistent hashes, and an invented chain, are detected by comparison with
//     another node, while the other nodes answer.
//   - Omitting some logs of a block, inventing logs, and omitting logs of a range
//     are detected only if a second node must agree. An example of the last is a
//     node of which a part is more than maxBlocks behind. Refunds can be missed
//     even then, because no mark identifies a transfer as a refund.
func (s *scenario) falseAnswers() []func() chaintest.Fault {
	near := func() uint64 {
		low := s.floor
		if s.chance(40) {
			low = s.Uint64N(low + 1) // for the time when blocks are read again
		}
		return low + s.Uint64N(s.net.Head().Number-low+4)
	}
	answers := []func() chaintest.Fault{
		func() chaintest.Fault { return chaintest.Only{Methods: receiptMethods, Fault: chaintest.FalseChain{}} },
		func() chaintest.Fault { return chaintest.Only{Methods: receiptMethods[:1], Fault: chaintest.Null{}} },
	}
	dropped := func() chaintest.Fault { return chaintest.DropLogs{From: near()} }
	if s.fullBloom && !s.long || s.quorum > 1 {
		answers = append(answers, dropped)
	}
	if s.nodes > 1 && !s.stalls {
		answers = append(answers,
			func() chaintest.Fault { return chaintest.WrongHash{At: near()} },
			func() chaintest.Fault { return chaintest.FalseChain{From: near()} },
		)
	}
	if s.quorum > 1 {
		forge := func() chaintest.Fault { return s.forge(near()) }
		answers = append(answers, forge, forge, func() chaintest.Fault {
			s.partial = true
			return chaintest.DropLogs{From: near(), Percent: 30 + s.Uint64N(60)}
		})
	}
	return answers
}

// forge returns the log of an invented payment of an order's amount.
func (s *scenario) forge(at uint64) chaintest.Fault {
	o := pick(s, s.orders...)
	f := chaintest.Forge{
		At:   at,
		Logs: []chaintest.Log{chaintest.Transfer(token, alice, o.Merchant, invoice.NewAmount(pick(s, o.exact, o.amount)))},
	}
	s.forgedPayments = append(s.forgedPayments, f)
	return f
}
