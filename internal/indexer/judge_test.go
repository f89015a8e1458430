package indexer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// drawBlockReadings draws nodes that have one of three blocks at the judged height, two of which differ only in time.
func drawBlockReadings(t *rapid.T) []blockReading {
	n := rapid.IntRange(1, 7).Draw(t, "nodes")
	readings := make([]blockReading, n)
	for i := range readings {
		readings[i] = blockReading{node: fmt.Sprint("node", i), block: rapid.SampledFrom([]blockID{
			{invoice.Hash{1}, 7}, {invoice.Hash{1}, 8}, {invoice.Hash{2}, 7},
		}).Draw(t, "block")}
	}
	return readings
}

// judgeBlocks gathers readings for judgeBlock as verifyHeader does: first from the polled nodes, and with the chain
// faults of the nodes in faulty.
func judgeBlocks(t *rapid.T, readings []blockReading, polled int, faulty map[string]bool) (blockVerdict, []blockReading) {
	known := slices.Clone(readings[:min(polled, len(readings))])
	for range len(readings) + 3 {
		v := judgeBlock(6, known, len(known) == len(readings))
		switch {
		case v.ruling != askMore:
			return v, known
		case len(v.inspect) == 0 && len(known) == len(readings):
			t.Fatal("it asks for more nodes when there are none")
		case len(v.inspect) == 0:
			known = append(known, readings[len(known):]...)
		}
		for _, i := range v.inspect {
			if known[i].inspected {
				t.Fatalf("it inspects %s twice", known[i].node)
			}
			known[i].inspected = true
			if faulty[known[i].node] {
				known[i].fault = "impossible"
			}
		}
	}
	t.Fatal("it asks for more and more readings")
	return blockVerdict{}, nil
}

// TestJudgeBlock checks the rules of judgeBlock on random nodes: a block without disagreement is accepted, only a
// majority of valid nodes rejects one, only the minority and nodes with impossible chains are wrong, and neither the
// order of the nodes nor their names matter.
func TestJudgeBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		readings := drawBlockReadings(t)
		faulty := map[string]bool{}
		for _, r := range readings {
			faulty[r.node] = rapid.IntRange(0, 3).Draw(t, "faulty") == 0
		}
		v, known := judgeBlocks(t, readings, 1+maxPolled, faulty)

		sound, same := 0, 0
		for _, r := range known {
			if !faulty[r.node] || !r.inspected {
				sound++
				if r.block == readings[0].block {
					same++
				}
			}
		}
		ownFault := faulty[readings[0].node] && known[0].inspected
		switch v.ruling {
		case accept:
			if 2*same <= sound || ownFault {
				t.Fatalf("accepted with %d of %d sound votes, own fault %t", same, sound, ownFault)
			}
		case reject:
			if 2*same > sound && !ownFault {
				t.Fatalf("rejected with %d of %d sound votes", same, sound)
			}
		case askMore:
			t.Fatal("judgeBlocks returned without a ruling")
		case undecided:
			votes := map[blockID]int{}
			for _, r := range known {
				if r.fault == "" {
					if votes[r.block]++; 2*votes[r.block] > sound {
						t.Fatalf("undecided, though %s has a majority", r.block)
					}
				}
			}
		}
		for _, w := range v.wrong {
			if r := known[w.reading]; r.fault == "" && v.ruling == accept && r.block == readings[0].block {
				t.Fatalf("%s is wrong for agreeing with what is accepted", r.node)
			}
		}

		if len(readings) > 2 {
			swapped := slices.Concat(readings[:1], rapid.Permutation(readings[1:]).Draw(t, "order"))
			all, _ := judgeBlocks(t, readings, len(readings), faulty)
			if again, _ := judgeBlocks(t, swapped, len(readings), faulty); again.ruling != all.ruling {
				t.Fatalf("ruling %d in one order, %d in another", all.ruling, again.ruling)
			}
		}
	})
}

// TestChainFault checks each way in which a node's headers are impossible.
func TestChainFault(t *testing.T) {
	hash := func(n int) invoice.Hash { return invoice.Hash{1, byte(n)} }
	line := func(change func([]chain.Header)) []chain.Header {
		var headers []chain.Header
		for n := 3; n <= 7; n++ {
			headers = append(headers, chain.Header{Header: invoice.Header{Number: uint64(n), Hash: hash(n), Parent: hash(n - 1)}})
		}
		change(headers)
		return headers
	}
	final := invoice.Header{Number: 3, Hash: hash(3)}
	for name, test := range map[string]struct {
		headers []chain.Header
		final   invoice.Header
		want    string
	}{
		"sound":                {line(func([]chain.Header) {}), final, ""},
		"no answer":            {nil, final, ""},
		"nothing is final yet": {line(func(h []chain.Header) { h[0].Hash = invoice.Hash{9}; h[1].Parent = h[0].Hash }), invoice.Header{}, ""},
		"another final block":  {line(func(h []chain.Header) { h[0].Hash = invoice.Hash{9} }), final, "which was final"},
		"another time":         {line(func(h []chain.Header) { h[3].Time = h[3].Time.Add(time.Second) }), final, "and had"},
		"another block":        {line(func(h []chain.Header) { h[3].Hash = invoice.Hash{9} }), final, "and had"},
		"not linked":           {line(func(h []chain.Header) { h[2].Parent = invoice.Hash{9} }), final, "on top of"},
		"a gap":                {slices.Delete(line(func(h []chain.Header) { h[2].Parent = invoice.Hash{9} }), 1, 2), final, ""},
	} {
		got := chainFault(test.headers, 6, idOf(line(func([]chain.Header) {})[3].Header), test.final)
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestHeightsToInspect(t *testing.T) {
	for _, test := range []struct {
		number, final uint64
		want          []uint64
	}{
		{6, 3, []uint64{3, 4, 5, 6, 7}},
		{3, 3, []uint64{3, 4}},
		{2, 4, []uint64{2, 3, 4}},
	} {
		expect.List(t, heightsToInspect(test.number, test.final), test.want, "block %d above %d:", test.number, test.final)
	}
	far := heightsToInspect(10_000, 5)
	if len(far) != maxLinked+2 || far[0] != 5 || far[1] != 10_001-maxLinked || far[len(far)-1] != 10_001 {
		t.Errorf("far above the final block: %d heights, from %v to %d", len(far), far[:2], far[len(far)-1])
	}
	if below := heightsToInspect(5, 10_000); len(below) != maxLinked+2 || below[0] != 5 || below[len(below)-1] != 10_000 {
		t.Errorf("far below the final block: %d heights", len(below))
	}
}

// transferIn is a transfer in a block that pays the evidence's invoice.
func transferIn(block uint64, evidence byte) invoice.Transfer {
	t := invoice.Transfer{TxHash: invoice.Hash{byte(block)}}
	t.BlockNumber, t.Evidence.Calldata = block, invoice.Hash{evidence}
	return t
}

// TestJudgeTransfers gathers readings as requireSecond does, from nodes with receipts that hold some of the transfers
// that the nodes left out.
func TestJudgeTransfers(t *testing.T) {
	a, b, c := transferIn(4, 0), transferIn(5, 0), transferIn(6, 0)
	type reading struct {
		transfers []invoice.Transfer
		honest    bool // its receipts hold a, b and c
	}
	list := func(transfers ...invoice.Transfer) []invoice.Transfer { return transfers }
	for name, test := range map[string]struct {
		readings []reading
		ruling   ruling
		block    uint64
		wrong    []int
		reason   string
	}{
		"alone":                       {[]reading{{list(a), true}}, undecided, 0, nil, "none besides node0 answers for block 9"},
		"two agree":                   {[]reading{{list(a, b), true}, {list(a, b), true}}, accept, 0, nil, ""},
		"in another order":            {[]reading{{list(a, b), true}, {list(b, a), true}}, accept, 0, nil, ""},
		"the first left out":          {[]reading{{list(a), true}, {list(a, b), true}}, reject, 5, []int{0}, ""},
		"the second left out":         {[]reading{{list(a, b), true}, {list(a), true}}, undecided, 0, []int{1}, "none besides"},
		"the third confirms":          {[]reading{{list(a, b), true}, {list(a), true}, {list(a, b), true}}, accept, 0, []int{1}, ""},
		"receipts against each other": {[]reading{{list(a), false}, {list(a, b), true}}, undecided, 0, nil, "node0 and node1 report different transfers up to block 9"},
		"the first is outvoted":       {[]reading{{list(a), false}, {list(a, b), true}, {list(a, b), true}}, reject, 5, []int{0}, ""},
		"the second is outvoted":      {[]reading{{list(a), false}, {list(a, b), true}, {list(a), true}}, accept, 0, []int{1}, ""},
		"three opinions":              {[]reading{{list(a), false}, {list(a, b), true}, {list(a, c), true}}, undecided, 0, nil, "node0 and node1"},
		"other evidence":              {[]reading{{list(a), true}, {list(transferIn(4, 1)), true}}, undecided, 0, nil, "report different"},
		"other evidence, outvoted":    {[]reading{{list(a), true}, {list(transferIn(4, 1)), true}, {list(transferIn(4, 1)), true}}, reject, 4, []int{0}, ""},
		"nothing at all":              {[]reading{{nil, true}, {nil, true}}, accept, 0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var known []transfersReading
			add := func() {
				r := test.readings[len(known)]
				known = append(known, transfersReading{node: fmt.Sprint("node", len(known)), transfers: r.transfers})
			}
			add()
			wrong := map[int]bool{}
			for range 2*len(test.readings) + 1 {
				v := judgeTransfers(9, known, len(known) == len(test.readings))
				for _, w := range v.wrong {
					wrong[w.reading] = true
				}
				if v.ruling != askMore {
					if v.ruling != test.ruling || v.block != test.block || !strings.Contains(v.reason, test.reason) {
						t.Errorf("it is %+v, want ruling %d, block %d, %q", v, test.ruling, test.block, test.reason)
					}
					for i := range known {
						if wrong[i] != slices.Contains(test.wrong, i) {
							t.Errorf("wrong are %v, want %v", wrong, test.wrong)
						}
					}
					return
				}
				if v.prove == nil {
					add()
					continue
				}
				held := test.readings[v.prove.of].honest
				known[v.prove.result].proof = proofOf(held)
			}
			t.Fatal("it asks for more and more readings")
		})
	}
}

func TestJudgeHeight(t *testing.T) {
	for name, test := range map[string]struct {
		own    uint64
		others []uint64
		tagged bool
		want   uint64
		ok     bool
	}{
		"nobody else answers":       {7, nil, true, 7, true},
		"the highest other counts":  {7, []uint64{3, 6}, true, 6, true},
		"never above its own":       {7, []uint64{9}, true, 7, true},
		"no block is tagged":        {7, []uint64{0, 0}, true, 0, false},
		"younger than its depth":    {7, []uint64{0}, false, 0, true},
		"one lags and one is ahead": {7, []uint64{0, 9}, true, 7, true},
	} {
		if got, ok := judgeHeight(test.own, test.others, test.tagged); got != test.want || ok != test.ok {
			t.Errorf("%s: %d, %t; want %d, %t", name, got, ok, test.want, test.ok)
		}
	}
}

// TestJudgeMissing and TestJudgeViolation count votes; the judged node has one vote.
func TestJudgeMissing(t *testing.T) {
	for _, test := range []struct {
		held []bool
		want ruling
	}{
		{nil, accept}, {[]bool{false}, accept}, {[]bool{true}, undecided}, {[]bool{true, true}, reject},
		{[]bool{true, false}, accept}, {[]bool{true, true, false}, undecided}, {[]bool{true, true, true, false}, reject},
	} {
		if got, reason := judgeMissing("node", transferIn(4, 0), test.held); got != test.want || (reason == "") != (got == accept) {
			t.Errorf("%v: ruling %d, %q; want %d", test.held, got, reason, test.want)
		}
	}
}

func TestJudgeViolation(t *testing.T) {
	final := invoice.Header{Number: 4, Hash: invoice.Hash{4}}
	for _, test := range []struct {
		others string // k has the final block, l another one
		sole   bool
		want   ruling
	}{
		{"", true, accept}, {"", false, undecided}, {"k", false, reject}, {"l", false, accept},
		{"kl", false, undecided}, {"kkl", false, reject}, {"kkll", false, undecided}, {"ll", false, accept},
	} {
		var others []blockReading
		for _, o := range test.others {
			r := blockReading{block: blockID{hash: invoice.Hash{9}}}
			if o == 'k' {
				r.block.hash = final.Hash
			}
			others = append(others, r)
		}
		if got, reason := judgeViolation("node", final, others, test.sole); got != test.want || (reason == "") != (got == accept) {
			t.Errorf("%q: ruling %d, %q; want %d", test.others, got, reason, test.want)
		}
	}
}

func TestJudgeEmpty(t *testing.T) {
	blocks := []invoice.Hash{{1}, {2}}
	logs := make([][]types.Log, 2)
	if got, reason := judgeEmpty("node", blocks, logs); got != accept || reason != "" {
		t.Errorf("no logs: ruling %d, %q", got, reason)
	}
	logs[1] = []types.Log{{}}
	if got, reason := judgeEmpty("node", blocks, logs); got != reject || !strings.Contains(reason, blocks[1].String()) {
		t.Errorf("logs in the second block: ruling %d, %q", got, reason)
	}
}
