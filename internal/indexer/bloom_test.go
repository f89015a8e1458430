package indexer

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// blooming returns a node with this bloom filter in its headers, or with the real ones if it is empty. The node leaves
// out the logs of a block that is requested by hash.
func blooming(t *testing.T, f *fixture, bloom string, silent func(block string) bool) string {
	t.Helper()
	return tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		if q.Method == "eth_getLogs" && silent(string(q.Params[0])) {
			return []any{}
		}
		return each(ask(q), func(o map[string]any) {
			if o["logsBloom"] != nil && bloom != "" {
				o["logsBloom"] = bloom
			}
		})
	})
}

var (
	noLogs   = "0x" + strings.Repeat("00", 256)
	whole    = func(string) bool { return false }
	ownChain = func(c *Config) { c.Chain.FullBloom = false }
)

// TestOwnChainVerifiesEmptyAnswers has a node of a chain that is not built in
// leave the logs of a block out. The block's bloom filter shows that logs exist,
// so they come from its receipts, or from another node.
func TestOwnChainVerifiesEmptyAnswers(t *testing.T) {
	for _, known := range []bool{false, true} { // whether a seen log shows that the filters hold logs
		for nodes, want := range map[int]chain.State{1: chain.StateOK, 2: chain.StateQuarantined} {
			f := newFixture(t, nil)
			f.catchUp(t)
			if known {
				f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
			}
			omitted := ""
			url := blooming(t, f, "", func(filter string) bool {
				return omitted == "all" || omitted != "" && strings.Contains(filter, omitted)
			})
			f.restart(t, ownChain, []string{url, f.node.URL}[:nodes]...)
			f.catchUp(t)
			if omitted = "all"; known {
				omitted = ""
			}
			b := f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
			if known {
				omitted = b.Hash.Hex()
			}
			f.catchUp(t)
			expect.Equal(t, f.ledger.count(invoice.Pending), 1, "%d nodes, known %t: payments are pending:", nodes, known)
			expect.Equal(t, f.state(0), want, "%d nodes, known %t: the node is", nodes, known)
		}
	}
}

// TestFiltersWithoutLogs gives the headers of a chain empty bloom filters, also if the chain is known for correct ones:
// no block is skipped by them, and the status reports that they are useless.
func TestFiltersWithoutLogs(t *testing.T) {
	for _, full := range []bool{false, true} {
		f := newFixture(t, nil)
		f.restart(t, func(c *Config) { c.Chain.FullBloom = full }, blooming(t, f, noLogs, whole))
		f.catchUp(t)
		expect.Equal(t, f.Status().Blooms, BloomsUnknown, "full %t: before any log the bloom filters are", full)
		for n := range uint64(3) {
			f.chain.Mine(chaintest.NewTx(pays(alice, n+1)))
			f.catchUp(t)
		}
		f.expect(t, 3, 0, 3, 0, 0)
		expect.Equal(t, f.Status().Blooms, BloomsNone, "full %t: the bloom filters are", full)
	}
}

// TestFiltersThatGoEmpty has a node of a chain with correct bloom filters send empty ones from some block on: it skips
// no block with transactions.
func TestFiltersThatGoEmpty(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
	f.catchUp(t)
	if got := f.Status().Blooms; got != BloomsTrue {
		t.Fatalf("the bloom filters are %s, want on", got)
	}
	empty := false
	f.restart(t, nil, tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		return each(ask(q), func(o map[string]any) {
			if empty && o["logsBloom"] != nil {
				o["logsBloom"] = noLogs
			}
		})
	}), f.node.URL)
	f.catchUp(t)
	empty = true
	f.chain.Mine(chaintest.NewTx(pays(alice, 2)))
	f.catchUp(t)
	expect.Equal(t, f.ledger.count(invoice.Pending), 2, "payments are pending:")
}

// TestBloomsAreKnownFromTheStart has logs in the newest blocks when reading
// begins.
func TestBloomsAreKnownFromTheStart(t *testing.T) {
	for name, tx := range map[string]chaintest.Tx{
		"of the token": chaintest.NewTx(pays(alice, 5)), "of another contract": chaintest.NewTx(chaintest.Transfer(other, alice, bob, five)),
	} {
		f := newFixture(t, nil)
		f.chain.Mine(tx)
		f.restart(t, ownChain)
		expect.Success(t)(f.sync(t.Context()))
		expect.Equal(t, f.Status().Blooms, BloomsTrue, "%s: the bloom filters are", name)
	}
}

// TestLogOutsideTheFilter has a node forge a log in a block of a chain with
// true bloom filters: the filter does not hold it.
func TestLogOutsideTheFilter(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
	f.catchUp(t)
	b := f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
	forging := tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		return each(ask(q), func(o map[string]any) {
			if topics, ok := o["topics"].([]any); ok && o["blockHash"] == b.Hash.Hex() {
				topics[2] = common.BytesToHash(merchant[:]).Hex()
			}
		})
	})
	f.restart(t, nil, forging, f.node.URL)
	f.catchUp(t)
	f.expect(t, 2, 0, 0, 0, 0)
	expect.Equal(t, f.state(0), chain.StateQuarantined, "the node is")
}

// TestBlockWhoseLogsAreRefused has the only node refuse the logs of one block, and some of the possible substitutes:
// the payments in the block are still read, near the head and far behind it.
func TestBlockWhoseLogsAreRefused(t *testing.T) {
	tooMuch := errors.New("query returned more than 10000 results")
	noMethod := errors.New("the method eth_getBlockReceipts does not exist")
	for name, refuses := range map[string]func(q question) error{
		"the whole block's": func(question) error { return nil },
		"block receipts, unknown": func(q question) error {
			if q.Method == "eth_getBlockReceipts" {
				return noMethod
			}
			return nil
		},
		"block receipts, too large": func(q question) error {
			if q.Method == "eth_getBlockReceipts" {
				return tooMuch
			}
			return nil
		},
		"every question for logs": func(q question) error {
			if q.Method == "eth_getBlockReceipts" || q.Method == "eth_getLogs" {
				return tooMuch
			}
			return nil
		},
	} {
		for where, blocks := range map[string]int{"near": 3, "in range": 3 * maxBlocks} {
			f := newFixture(t, nil)
			f.catchUp(t)
			f.chain.MineEmpty(4)
			full := f.chain.Mine(chaintest.NewTx(pays(alice, 5), pays(alice, 6)), chaintest.NewTx(pays(bob, 7)), chaintest.NewTx(chaintest.Opened(registry, id1)))
			f.chain.MineEmpty(blocks)
			url := tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
				var filter struct {
					FromBlock, ToBlock, BlockHash string
					Address                       []string
				}
				whole := false
				if q.Method == "eth_getLogs" && json.Unmarshal(q.Params[0], &filter) == nil {
					whole = filter.BlockHash == full.Hash.Hex() && len(filter.Address) > 1 ||
						filter.BlockHash == "" && parse(t, filter.FromBlock) <= full.Number && full.Number <= parse(t, filter.ToBlock)
				}
				about := whole || filter.BlockHash == full.Hash.Hex() || q.Method == "eth_getBlockReceipts" && string(q.Params[0]) == strconv.Quote(full.Hash.Hex())
				if whole {
					return tooMuch
				}
				if err := refuses(q); err != nil && about {
					return err
				}
				return ask(q)
			})
			f.restart(t, nil, url)
			f.catchUp(t)
			expect.Equal(t, f.ledger.count(invoice.Confirmed), 3, "%s, %s: payments are confirmed:", name, where)
			if len(f.ledger.events) != 1 {
				t.Errorf("%s, %s: the registry's events are %v", name, where, f.ledger.events)
			}
			expect.Equal(t, f.state(0), chain.StateOK, "%s, %s: the node is", name, where)
		}
	}
}
