package chaintest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	token  = invoice.Address{0x70}
	alice  = invoice.Address{0xa1}
	bob    = invoice.Address{0xb0}
	filter = chain.LogFilter{
		Addresses: []common.Address{common.Address(token)},
		Topics:    []common.Hash{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))},
	}
)

// world is a chain of ten blocks above block 0, each with one transaction with two transfers, and a node and a client
// of it.
type world struct {
	*chain.Client
	chain *chaintest.Chain
	proxy *chaintest.Proxy
}

func newWorld(t *testing.T, faults ...chaintest.Fault) *world {
	t.Helper()
	w := &world{chain: chaintest.New(5)}
	for n := range uint64(10) {
		w.chain.Mine(chaintest.NewTx(transfer(n+1), transfer(100)))
	}
	w.proxy = chaintest.NewProxy(t, w.chain.Serve(t), 7)
	w.proxy.SetFaults(faults...)
	e, err := chain.NewClient(chain.ClientConfig{URL: w.proxy.URL})
	expect.OK(t, err)
	t.Cleanup(e.Close)
	w.Client = e
	return w
}

func transfer(n uint64) chaintest.Log {
	return chaintest.Transfer(token, alice, bob, invoice.NewAmount(n))
}

// logs returns the node's logs of the transfers in each block.
func (w *world) logs(t *testing.T, blocks ...*chaintest.Block) []int {
	t.Helper()
	var hashes []invoice.Hash
	for _, b := range blocks {
		hashes = append(hashes, invoice.Hash(b.Hash))
	}
	found, err := w.LogsOfBlocks(t.Context(), hashes, filter)
	expect.OK(t, err)
	var counts []int
	for _, logs := range found {
		counts = append(counts, len(logs))
	}
	return counts
}

func tx(b *chaintest.Block) []common.Hash { return []common.Hash{b.Txs[0].Hash} }

func TestDropLogs(t *testing.T) {
	w := newWorld(t, chaintest.DropLogs{From: 3, To: 4})
	b := w.chain.Blocks()
	if n := w.logs(t, b[2], b[3], b[4], b[5]); !slices.Equal(n, []int{2, 0, 0, 2}) {
		t.Errorf("blocks 2 to 5 have %v logs", n)
	}
	if receipts, err := w.Receipts(t.Context(), tx(b[3])); err != nil || len(receipts[0].Logs) != 2 {
		t.Errorf("Receipts = %+v, %v; want them whole", receipts, err)
	}
	w.proxy.SetFaults(chaintest.DropLogs{Percent: 50})
	first, err := w.LogsInRange(t.Context(), 1, 10, filter)
	if err != nil || len(first) == 0 || len(first) == 20 {
		t.Errorf("%d of 20 logs are left, %v; want about half", len(first), err)
	}
	again, err := w.LogsInRange(t.Context(), 1, 10, filter)
	if err != nil || !slices.EqualFunc(first, again, func(a, b types.Log) bool { return a.BlockNumber == b.BlockNumber && a.Index == b.Index }) {
		t.Errorf("other logs are left when asked again: %v", err)
	}
}

func TestStale(t *testing.T) {
	for _, fault := range []chaintest.Stale{{At: 6}, {Behind: 4}} {
		w := newWorld(t, fault)
		w.chain.Tag(chain.TagSafe, 8)
		b := w.chain.Blocks()
		if head, tagged, err := w.HeadAndTagged(t.Context(), chain.TagSafe); err != nil || head.Number != 6 || tagged.Number != 6 {
			t.Errorf("head %d, safe block %d, %v; want 6 and 6", head.Number, tagged.Number, err)
		}
		for what, ask := range map[string]func() error{
			"header": func() error { _, err := w.Headers(t.Context(), []uint64{7}); return err },
			"logs": func() error {
				_, err := w.LogsOfBlocks(t.Context(), []invoice.Hash{invoice.Hash(b[7].Hash)}, filter)
				return err
			},
			"receipt":  func() error { _, err := w.Receipts(t.Context(), tx(b[7])); return err },
			"evidence": func() error { _, _, err := w.Evidence(t.Context(), tx(b[7])); return err },
			"inputs":   func() error { _, err := w.BlockInputs(t.Context(), invoice.Hash(b[7].Hash)); return err },
			"known tx": func() error { _, _, err := w.Evidence(t.Context(), tx(b[6])); return err },
		} {
			err := ask()
			if what == "logs" { // the node returns an error for them
				if !chain.IsRefusal(err) {
					t.Errorf("logs of block 7: %v", err)
				}
				continue
			}
			if errors.Is(err, chain.ErrNotFound) != (what != "known tx") {
				t.Errorf("%s of block 7: %v", what, err)
			}
		}
		if logs, err := w.LogsInRange(t.Context(), 5, 9, filter); err != nil || len(logs) != 4 {
			t.Errorf("blocks 5 to 9 have %d logs, %v; want those of 5 and 6", len(logs), err)
		}
		if logs, err := w.LogsInRange(t.Context(), 7, 9, filter); err != nil || len(logs) != 0 {
			t.Errorf("blocks 7 to 9 have %d logs, %v; want none", len(logs), err)
		}
		if n := w.logs(t, b[6]); !slices.Equal(n, []int{2}) {
			t.Errorf("block 6 has %v logs", n)
		}
	}
}

// TestFalseChain expects a node's answers about blocks from a height on to agree with each other, and not with another
// node's.
func TestFalseChain(t *testing.T) {
	w := newWorld(t, chaintest.FalseChain{From: 3})
	true3 := w.chain.Blocks()[3]
	h, err := w.Headers(t.Context(), []uint64{2, 3, 4})
	if err != nil || h[0].Hash != h[1].Parent || h[1].Hash != h[2].Parent || h[1].Hash == invoice.Hash(true3.Hash) {
		t.Fatalf("Headers = %+v, %v", h, err)
	}
	logs, err := w.LogsOfBlocks(t.Context(), []invoice.Hash{h[0].Hash, h[1].Hash}, filter)
	if err != nil || len(logs[0]) != 2 || len(logs[1]) != 2 || invoice.Hash(logs[1][0].BlockHash) != h[1].Hash {
		t.Errorf("LogsOfBlocks = %+v, %v", logs, err)
	}
	receipts, err := w.Receipts(t.Context(), tx(true3))
	if err != nil || invoice.Hash(receipts[0].BlockHash) != h[1].Hash || invoice.Hash(receipts[0].Logs[0].BlockHash) != h[1].Hash {
		t.Errorf("Receipts = %+v, %v", receipts, err)
	}
	if of, err := w.BlockReceipts(t.Context(), h[1].Hash); err != nil || len(of) != 1 {
		t.Errorf("BlockReceipts = %+v, %v", of, err)
	}
	if in, err := w.BlockInputs(t.Context(), h[1].Hash); err != nil || len(in) != 1 {
		t.Errorf("BlockInputs = %v, %v", in, err)
	}
}

// TestForge expects every method to report an invented transaction.
func TestForge(t *testing.T) {
	forged := chaintest.Forge{At: 3, Logs: []chaintest.Log{transfer(9)}}
	w := newWorld(t, forged)
	b := w.chain.Blocks()[3]
	if n := w.logs(t, b, w.chain.Blocks()[4]); !slices.Equal(n, []int{3, 2}) {
		t.Errorf("blocks 3 and 4 have %v logs, want 3 and 2", n)
	}
	if logs, err := w.LogsInRange(t.Context(), 2, 4, filter); err != nil || len(logs) != 7 {
		t.Errorf("blocks 2 to 4 have %d logs, %v; want 7", len(logs), err)
	}
	receipts, inputs, err := w.Evidence(t.Context(), []common.Hash{forged.TxHash()})
	if err != nil || len(inputs) != 1 || receipts[0].BlockHash != b.Hash || len(receipts[0].Logs) != 1 || !receipts[0].Succeeded() {
		t.Errorf("Evidence = %+v, %v", receipts, err)
	}
	if of, err := w.BlockReceipts(t.Context(), invoice.Hash(b.Hash)); err != nil || len(of) != 2 {
		t.Errorf("BlockReceipts = %+v, %v", of, err)
	}
	if in, err := w.BlockInputs(t.Context(), invoice.Hash(b.Hash)); err != nil || len(in) != 2 {
		t.Errorf("BlockInputs = %v, %v", in, err)
	}
	if h, err := w.Headers(t.Context(), []uint64{3}); err != nil || h[0].Hash != invoice.Hash(b.Hash) || !filter.MayMatch(h[0].Bloom) {
		t.Errorf("Headers = %+v, %v", h, err)
	}
}

// TestSometimes expects a fault to affect about the right share of the questions, and the same ones with the same seed.
func TestSometimes(t *testing.T) {
	const asked = 100
	failures := func() (failed []int) {
		w := newWorld(t, chaintest.Sometimes{Percent: 30, Fault: chaintest.Fail{Code: -32000, Message: "no"}},
			chaintest.Only{Methods: []string{"eth_chainId"}, Fault: chaintest.Sometimes{Percent: 20, Fault: chaintest.Garbage{}}})
		for i := range asked {
			if _, err := w.Headers(context.Background(), []uint64{uint64(i % 10)}); err != nil {
				failed = append(failed, i)
			}
		}
		return failed
	}
	first := failures()
	if len(first) < 15 || len(first) > 50 {
		t.Errorf("%d of %d questions failed, want about 30", len(first), asked)
	}
	if again := failures(); !slices.Equal(first, again) {
		t.Errorf("failed: %v, and the second time %v", first, again)
	}
}
