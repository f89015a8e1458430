package e2e

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestExtraAnvilHistories plays histories on anvil, with payments by cast: on a chain that is rolled back,
// on one with the service's own transactions, and on one that mines blocks on a timer.
func TestExtraAnvilHistories(t *testing.T) {
	t.Parallel()
	for n := range *histories {
		seed := *firstHistory + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var o anviltest.Options
			if seed%3 == 0 {
				o.BlockTime = time.Second
			}
			database := dbtest.MigratedPostgres(t)
			if seed%2 == 0 {
				database = "sqlite:" + filepath.Join(t.TempDir(), "pay.db")
			}
			a := &anvilBackend{service: newService(t, database, o)}
			stepsBack := seed%3 == 1
			if stepsBack {
				a.withoutOperator()
			}
			a.chain.Send(t, a.payer, a.token, "approve(address,uint256)", a.registry, "1000000000000")
			var err error
			if a.rpc, err = ethclient.DialContext(t.Context(), a.chain.URL()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.rpc.Close)
			play(a, seed, stepsBack)
		})
	}
}

// anvilBackend is a service on an anvil chain.
type anvilBackend struct {
	*service
	replica *replica
	rpc     *ethclient.Client
}

// withoutOperator removes the operator key from the configuration, so that the service
// sends no transactions. A block with one of them between a change and its reorg would
// make the reorg reach finalized blocks.
func (a *anvilBackend) withoutOperator() {
	a.Helper()
	text, err := os.ReadFile(a.config)
	if err != nil {
		a.Fatal(err)
	}
	rest := strings.Replace(string(text), "operatorKeyEnv: "+operatorEnv, "", 1)
	if err := os.WriteFile(a.config, []byte(rest), 0o600); err != nil {
		a.Fatal(err)
	}
}

func (a *anvilBackend) startService()           { a.replica = a.begin() }
func (a *anvilBackend) killService()            { a.replica.kill() }
func (a *anvilBackend) awaitIndexing()          { a.awaitIndexed(a.replica) }
func (a *anvilBackend) client() *client.Client  { return a.api(a.replica) }
func (a *anvilBackend) receiver() *receiver     { return a.merchant }
func (a *anvilBackend) node() *ethclient.Client { return a.rpc }
func (a *anvilBackend) minesOnDemand() bool     { return false }
func (a *anvilBackend) mineBlock()              { a.chain.Mine(a, 1) }

func (a *anvilBackend) parties() parties {
	return parties{
		token: common.HexToAddress(a.token), customer: common.HexToAddress(a.payer.Address), shop: common.HexToAddress(a.till.Address),
		chainKey: "anvil", merchantID: shopID,
	}
}

func (a *anvilBackend) sendTransfer(refund bool, amount *big.Int, tag []byte) common.Hash {
	a.Helper()
	from, to := a.payer, a.till.Address
	if refund {
		from, to = a.till, a.payer.Address
	}
	data := a.chain.Cast(a, "calldata", "transfer(address,uint256)", to, amount.String())
	return common.HexToHash(a.chain.Send(a, from, a.token, data+common.Bytes2Hex(tag)).TxHash)
}

func (a *anvilBackend) sendRegistryPayment(made apitypes.CreateInvoiceResponse) common.Hash {
	a.Helper()
	return common.HexToHash(a.payTerms(made))
}

func (a *anvilBackend) sendAuthorizedPayment(made apitypes.CreateInvoiceResponse) common.Hash {
	a.Helper()
	return common.HexToHash(a.payAuthorized(made))
}

func (a *anvilBackend) setNextBlockTime(unix int64) {
	a.Helper()
	refused := a.rpc.Client().CallContext(a.Context(), nil, "evm_setNextBlockTimestamp", unix)
	if refused == nil {
		return
	}
	// The service and the timer mine blocks as well.
	last, err := a.rpc.HeaderByNumber(a.Context(), nil)
	if err != nil || int64(last.Time) < unix {
		a.Fatalf("set the time of the next block: %v", errors.Join(refused, err))
	}
}

func (a *anvilBackend) replaceBlocks(depth int, back [][]*types.Transaction) {
	a.Helper()
	a.chain.Reorg(a, depth, back...)
}

func (a *anvilBackend) undoAfter(what func()) {
	a.Helper()
	before := a.chain.Snapshot(a)
	what()
	a.chain.Revert(a, before)
}
