package e2e

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
)

// TestExtraGethHistories plays histories on a go-ethereum node. Its blocks have several
// transactions, and are replaced by blocks with the same transactions.
func TestExtraGethHistories(t *testing.T) {
	t.Parallel()
	for n := range *histories {
		seed := *firstHistory + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.approve(s.payer, s.chain.Registry)
			s.configure(nil)
			play(&gethBackend{stage: s}, seed, true)
		})
	}
}

// gethBackend is a service on a go-ethereum chain.
type gethBackend struct {
	*stage
	next time.Time // of the next block; zero for the node's time
}

func (g *gethBackend) startService()               { g.restart() }
func (g *gethBackend) killService()                { g.child.kill() }
func (g *gethBackend) awaitIndexing()              { g.read() }
func (g *gethBackend) client() *client.Client      { return g.api() }
func (g *gethBackend) receiver() *receiver         { return g.hook }
func (g *gethBackend) node() *ethclient.Client     { return g.chain.Client() }
func (g *gethBackend) minesOnDemand() bool         { return true }
func (g *gethBackend) setNextBlockTime(unix int64) { g.next = time.Unix(unix, 0) }

func (g *gethBackend) parties() parties {
	return parties{token: g.chain.Token, customer: g.customer(), shop: g.shop(), chainKey: "testnet", merchantID: "acme"}
}

func (g *gethBackend) sendTransfer(refund bool, amount *big.Int, tag []byte) common.Hash {
	g.Helper()
	from, to := g.payer, g.shop()
	if refund {
		from, to = g.till, g.customer()
	}
	return g.send(from, g.chain.Token, append(g.token.PackTransfer(to, amount), tag...))
}

func (g *gethBackend) sendRegistryPayment(made apitypes.CreateInvoiceResponse) common.Hash {
	g.Helper()
	return g.send(g.payer, g.chain.Registry, contracts.NewInvoiceRegistry().PackPay(g.contractTerms(made)))
}

func (g *gethBackend) sendAuthorizedPayment(made apitypes.CreateInvoiceResponse) common.Hash {
	g.Helper()
	return g.submit(g.payer, g.authorize(g.payer, g.shop(), units(g, made.Invoice.Amount), made))
}

func (g *gethBackend) mineBlock() {
	g.Helper()
	if g.next.IsZero() {
		g.seal()
		return
	}
	if err := g.chain.SealAt(g.Context(), g.next); err != nil {
		g.Fatal(err)
	}
	g.next = time.Time{}
}

func (g *gethBackend) replaceBlocks(depth int, back [][]*types.Transaction) {
	g.Helper()
	if err := g.chain.Fork(g.Context(), uint64(depth), back...); err != nil {
		g.Fatal(err)
	}
	g.chain.DropPending()
}

func (g *gethBackend) undoAfter(what func()) {
	g.Helper()
	before, err := g.node().BlockNumber(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	what()
	after, err := g.node().BlockNumber(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	g.replaceBlocks(int(after-before), nil)
}
