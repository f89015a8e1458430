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

// TestGethHistories plays histories on a go-ethereum node. Its blocks have several
// transactions, and are replaced by blocks with the same transactions.
func TestGethHistories(t *testing.T) {
	t.Parallel()
	for n := range *histories {
		seed := *firstHistory + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.allow(s.payer, s.chain.Registry)
			s.configure(nil)
			play(&gethScene{stage: s}, seed, true)
		})
	}
}

// gethScene is a stage on which a history plays.
type gethScene struct {
	*stage
	next time.Time // of the next block, if it is dated
}

func (g *gethScene) begins()                 { g.restart() }
func (g *gethScene) dies()                   { g.child.kill() }
func (g *gethScene) reads()                  { g.read() }
func (g *gethScene) client() *client.Client  { return g.api() }
func (g *gethScene) receiver() *receiver     { return g.hook }
func (g *gethScene) node() *ethclient.Client { return g.chain.Client() }
func (g *gethScene) waits() bool             { return true }
func (g *gethScene) dates(unix int64)        { g.next = time.Unix(unix, 0) }

func (g *gethScene) shopOf() shopOf {
	return shopOf{token: g.chain.Token, customer: g.customer(), shop: g.shop(), chainKey: "testnet", merchantID: "acme"}
}

func (g *gethScene) transfers(refund bool, amount *big.Int, tag []byte) common.Hash {
	g.Helper()
	from, to := g.payer, g.shop()
	if refund {
		from, to = g.till, g.customer()
	}
	return g.send(from, g.chain.Token, append(g.token.PackTransfer(to, amount), tag...))
}

func (g *gethScene) paysRegistry(made apitypes.CreateInvoiceResponse) common.Hash {
	g.Helper()
	return g.send(g.payer, g.chain.Registry, contracts.NewInvoiceRegistry().PackPay(g.contractTerms(made)))
}

func (g *gethScene) paysAuthorized(made apitypes.CreateInvoiceResponse) common.Hash {
	g.Helper()
	return g.submit(g.payer, g.authorize(g.payer, g.shop(), units(g, made.Invoice.Amount), made))
}

func (g *gethScene) mines() {
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

func (g *gethScene) reorgs(depth int, back [][]*types.Transaction) {
	g.Helper()
	if err := g.chain.Fork(g.Context(), uint64(depth), back...); err != nil {
		g.Fatal(err)
	}
	g.chain.DropPending()
}

func (g *gethScene) undoes(what func()) {
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
	g.reorgs(int(after-before), nil)
}
