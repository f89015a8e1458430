package e2e

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/anviltest"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestAnvilHistories plays histories on anvil, with payments by cast: in turn on a chain
// that is rolled back, on one with the service's own transactions, and on one that seals
// blocks by itself.
func TestAnvilHistories(t *testing.T) {
	t.Parallel()
	for n := range *histories {
		seed := *firstHistory + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var o anviltest.Options
			if seed%3 == 0 {
				o.BlockTime = time.Second
			}
			database := storetest.Postgres(t)
			if seed%2 == 0 {
				database = "sqlite:" + filepath.Join(t.TempDir(), "pay.db")
			}
			a := &anvilScene{service: newService(t, database, o)}
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

// anvilScene is a service on which a history plays.
type anvilScene struct {
	*service
	replica *replica
	rpc     *ethclient.Client
}

// withoutOperator starts the service without transactions of its own. A block with one
// between a change and its reorg would make the reorg reach finalized blocks.
func (a *anvilScene) withoutOperator() {
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

func (a *anvilScene) begins()                 { a.replica = a.begin() }
func (a *anvilScene) dies()                   { a.replica.kill() }
func (a *anvilScene) reads()                  { a.awaitIndexed(a.replica) }
func (a *anvilScene) client() *client.Client  { return a.api(a.replica) }
func (a *anvilScene) receiver() *receiver     { return a.merchant }
func (a *anvilScene) node() *ethclient.Client { return a.rpc }
func (a *anvilScene) waits() bool             { return false }
func (a *anvilScene) mines()                  { a.chain.Mine(a, 1) }

func (a *anvilScene) shopOf() shopOf {
	return shopOf{
		token: common.HexToAddress(a.token), customer: common.HexToAddress(a.payer.Address), shop: common.HexToAddress(a.till.Address),
		chainKey: "anvil", merchantID: shopID,
	}
}

func (a *anvilScene) transfers(refund bool, amount *big.Int, tag []byte) common.Hash {
	a.Helper()
	from, to := a.payer, a.till.Address
	if refund {
		from, to = a.till, a.payer.Address
	}
	data := a.chain.Cast(a, "calldata", "transfer(address,uint256)", to, amount.String())
	return common.HexToHash(a.chain.Send(a, from, a.token, data+common.Bytes2Hex(tag)).TxHash)
}

func (a *anvilScene) paysRegistry(made apitypes.CreateInvoiceResponse) common.Hash {
	a.Helper()
	return common.HexToHash(a.payTerms(made))
}

func (a *anvilScene) paysAuthorized(made apitypes.CreateInvoiceResponse) common.Hash {
	a.Helper()
	return common.HexToHash(a.payAuthorized(made))
}

func (a *anvilScene) dates(unix int64) {
	a.Helper()
	a.chain.Cast(a, "rpc", "evm_setNextBlockTimestamp", strconv.FormatInt(unix, 10))
}

func (a *anvilScene) reorgs(depth int, back [][]*types.Transaction) {
	a.Helper()
	a.chain.Reorg(a, depth, back...)
}

func (a *anvilScene) undoes(what func()) {
	a.Helper()
	before := a.chain.Snapshot(a)
	what()
	a.chain.Revert(a, before)
}
