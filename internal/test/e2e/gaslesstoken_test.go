package e2e

import (
	"math/big"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// tokenPayment is an authorization that was submitted.
type tokenPayment struct {
	id, path, body string
}

// TestExtraGaslessDuringTokenChange adds a token by restarting two replicas one after the other, while
// payers sign authorizations in it and in the former token, and submit them to both replicas. Each is
// carried out once and reported as paid, also after its window has closed, and no invoice is charged
// again.
func TestExtraGaslessDuringTokenChange(t *testing.T) {
	t.Parallel()
	g := newGaslessWorld(t, dbtest.MigratedPostgres(t))
	euro := g.deployToken()
	usdc := common.HexToAddress(g.info.Load().Chain.Token)
	first := g.serve()
	firstURL := g.info.Load().BaseURL
	second := g.serve()
	secondURL := g.info.Load().BaseURL

	var all []tokenPayment
	for range 2 {
		all = append(all, g.authorizeBy(g.newPayer(euro), "USDC", usdc, secondURL, firstURL))
	}
	g.addToConfiguration(euro)
	if code := first.stop(t, os.Interrupt, patience); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	first = g.serve()
	firstURL = g.info.Load().BaseURL
	for range 3 {
		all = append(all, g.authorizeBy(g.newPayer(euro), "EURC", euro, firstURL, secondURL), g.authorizeBy(g.newPayer(euro), "USDC", usdc, firstURL, secondURL))
	}
	for _, p := range all {
		g.awaitPaid(p.path, p.body)
	}
	second.stop(t, os.Interrupt, patience) // it may have ended: others run a newer revision
	second = g.serve()
	end := time.Now().Add(tokenWindow + time.Second)
	if err := await(g.ctx, func() bool { return time.Now().After(end) && g.chain.payer().head(g.ctx).Time > uint64(end.Unix()) }); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if got := g.awaitPaid(p.path, p.body); got.Status != apitypes.AuthorizationPaid {
			t.Errorf("after its window the authorization of %s is %+v", p.id, got)
		}
		if got := g.payments(p.id); len(got) != 1 {
			t.Errorf("invoice %s has the payments %+v, want one", p.id, got)
		}
	}
	for token, want := range map[common.Address]int64{euro: 3, usdc: 5} {
		if got := g.balanceIn(token, g.info.Load().Merchant.Address); got.Cmp(big.NewInt(want*1_000_000)) != 0 {
			t.Errorf("the merchant has %s of %s, want %d000000", got, token, want)
		}
	}
	for _, c := range []*child{first, second} {
		if code := c.stop(t, os.Interrupt, patience); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

// tokenWindow is how long the authorizations are valid.
const tokenWindow = 30 * time.Second

// deployToken deploys another token that takes authorizations.
func (g *gaslessWorld) deployToken() common.Address {
	g.Helper()
	payer, token := g.chain.payer(), contracts.NewTestUSDC()
	at, err := payer.create(g.ctx, append(common.FromHex(contracts.TestUSDCMetaData.Bin), token.PackConstructor(payer.address)...))
	if err != nil {
		g.Fatal(err)
	}
	return at
}

// newPayer returns a payer who has tokens of both kinds, and no ether.
func (g *gaslessWorld) newPayer(euro common.Address) *wallet {
	g.Helper()
	payer, w := g.chain.payer(), g.newWallet("")
	payer.mustTransfer(g, w.address.Hex(), "1000000", nil)
	if _, err := payer.send(g.ctx, euro, nil, contracts.NewTestUSDC().PackMint(w.address, big.NewInt(1_000_000)), nil); err != nil {
		g.Fatal(err)
	}
	return w
}

// addToConfiguration adds the token EURC to the configuration.
func (g *gaslessWorld) addToConfiguration(euro common.Address) {
	g.Helper()
	text, err := os.ReadFile(g.file)
	if err != nil {
		g.Fatal(err)
	}
	g.configure(strings.Replace(string(text), "tokens: [", `tokens: [{currency: EURC, address: "`+euro.Hex()+`"}, `, 1))
}

// authorizeBy creates an invoice at a replica, submits an authorization for it there, and again at another one, which
// may refuse to work.
func (g *gaslessWorld) authorizeBy(payer *wallet, currency string, token common.Address, at, other string) tokenPayment {
	g.Helper()
	info := *g.info.Load()
	info.BaseURL = at
	g.info.Store(&info)
	draft := g.draft("1000000")
	draft.Currency = currency
	made := g.create(draft)
	plain := func(signature []byte) []byte { return signature }
	body := payer.authorizeIn(g, made, token, tokenWindow, payer.address, common.HexToHash(made.OnChainInvoiceID), plain)
	p := tokenPayment{made.ID, "/checkout/" + made.ID + "/authorization", body}
	if err := await(g.ctx, func() bool { // the chain is read
		return g.do(http.MethodPost, p.path, body, "Content-Type", "application/json").status == http.StatusOK
	}); err != nil {
		g.Fatal(err)
	}
	elsewhere := info
	elsewhere.BaseURL = other
	g.info.Store(&elsewhere)
	g.submit(p.path, body)
	g.info.Store(&info)
	return p
}
