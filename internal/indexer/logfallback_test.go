package indexer

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

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
			if got := f.ledger.count(invoice.Confirmed); got != 3 {
				t.Errorf("%s, %s: %d payments are confirmed, want 3", name, where, got)
			}
			if len(f.ledger.events) != 1 {
				t.Errorf("%s, %s: the registry's events are %v", name, where, f.ledger.events)
			}
			if got := f.state(0); got != chain.StateOK {
				t.Errorf("%s, %s: the node is %s, want ok", name, where, got)
			}
		}
	}
}
