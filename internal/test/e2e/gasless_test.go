package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// gaslessConfig is the configuration of a service that sends authorizations on an external
// chain.
const gaslessConfig = `
listen: 127.0.0.1:0
database: %s
merchants: [{id: acme}]
` + keySetting + `
chains:
  - chainKey: testnet
    idleInterval: 1s
    chainId: %d
    rpc: ["%s"]
    finality: 2
    tokens: [{currency: USDC, address: "%s"}]
    registry: "%s"
    authorizationRelay: "%s"
    depositFactory: "%s"
    operatorKeyEnv: OPERATOR_KEY
    gasless: {enabled: on, perPayer: 1000}
`

// deafNode forwards JSON-RPC, and loses the answers to broadcasts while deaf is set.
type deafNode struct {
	node string
	deaf atomic.Bool
	lost atomic.Int64
}

func (d *deafNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, d.node, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		http.Error(w, "", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if d.deaf.Load() && bytes.Contains(body, []byte("eth_sendRawTransaction")) {
		d.lost.Add(1)
		panic(http.ErrAbortHandler) // the connection breaks
	}
	w.Header().Set("Content-Type", "application/json")
	io.Copy(w, answer.Body) //nolint:errcheck // the client is gone
}

// TestExtraGasless pays invoices by authorizations of a key, of a contract account, and of a contract account that is
// not deployed, also to a deposit address, and while the node loses the answers to broadcasts. Each invoice is paid
// once.
func TestExtraGasless(t *testing.T) {
	t.Parallel()
	g := newGaslessWorld(t, dbtest.MigratedPostgres(t))
	g.serve()
	plain := func(signature []byte) []byte { return signature }
	prefixed := func(signature []byte) []byte { return append([]byte{0}, signature...) }
	wrapped := func(signature []byte) []byte {
		text, err := contracts.WrapSignature(g.factory, hostile.NewSmartAccountFactory().PackDeploy(g.customer.address), prefixed(signature))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	g.pay("the key", g.customer.address, plain)
	g.pay("an account that is not deployed", g.account, wrapped)
	g.pay("an account that is deployed", g.account, prefixed)
	deposited := g.payDeposit()

	g.node.deaf.Store(true)
	g.pay("the key, without answers", g.customer.address, plain)
	if g.node.lost.Load() == 0 {
		t.Error("the node has lost no answer")
	}
	for account, want := range map[string]int64{g.info.Load().Merchant.Address: 4_000_000, deposited: 1_000_000} {
		if got := g.balance(account); got.Cmp(big.NewInt(want)) != 0 {
			t.Errorf("%s has %s, want %d", account, got, want)
		}
	}
}

// gaslessWorld is a service that sends authorizations, on the chain of another world.
type gaslessWorld struct {
	*servedWorld
	node     *deafNode
	customer *wallet        // has tokens and no ether
	factory  common.Address // of the customer's contract account
	account  common.Address // which has tokens
}

func newGaslessWorld(t *testing.T, database string) *gaslessWorld {
	t.Helper()
	g := &gaslessWorld{servedWorld: newServedWorld(t)}
	info := g.info.Load()
	g.node = &deafNode{node: info.Chain.RPCURL}
	proxy := httptest.NewServer(g.node)
	t.Cleanup(proxy.Close)
	operator := g.chain.newWallet("")
	g.env = []string{"OPERATOR_KEY=" + common.Bytes2Hex(crypto.FromECDSA(operator.key))}
	if _, err := g.chain.payer().send(g.ctx, operator.address, units(t, "1000000000000000000"), nil, nil); err != nil {
		t.Fatal(err)
	}
	deploy := launchWith(t, g.env, "chain", "deploy", "--rpc", info.Chain.RPCURL, "--key-env", "OPERATOR_KEY", "--contracts", "registry")
	if code := deploy.exit(t, patience); code != 0 {
		t.Fatalf("deploy: exit code %d", code)
	}
	registry := strings.Trim(strings.TrimPrefix(deploy.stdout.String(), "registry: "), "\"\n")
	g.configure(fmt.Sprintf(gaslessConfig, database, info.Chain.ChainID, proxy.URL, info.Chain.Token, registry, info.Chain.AuthorizationRelay, info.Chain.DepositFactory))
	g.customer = g.newWallet("")
	g.deployAccount()
	for _, a := range []common.Address{g.customer.address, g.account} {
		g.chain.payer().mustTransfer(t, a.Hex(), "100000000", nil)
	}
	return g
}

// deployAccount deploys the factory of the customer's contract account through the chain's CREATE2
// deployer, and computes the account's address.
func (g *gaslessWorld) deployAccount() {
	g.Helper()
	payer := g.chain.payer()
	factory, err := payer.create(g.ctx, common.FromHex(hostile.SmartAccountFactoryMetaData.Bin))
	if err != nil {
		g.Fatal(err)
	}
	code := append(common.FromHex(hostile.SmartAccountMetaData.Bin), hostile.NewSmartAccount().PackConstructor(g.customer.address)...)
	g.factory, g.account = factory, crypto.CreateAddress2(factory, [32]byte{}, crypto.Keccak256(code))
}

// create deploys a contract.
func (a *wallet) create(ctx context.Context, code []byte) (common.Address, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	node, err := a.node(ctx)
	if err != nil {
		return common.Address{}, err
	}
	nonce, err := node.NonceAt(ctx, a.address, nil)
	if err != nil {
		return common.Address{}, err
	}
	const createGas = 3_000_000
	chainID := new(big.Int).SetUint64(a.info().Chain.ChainID)
	tx, err := types.SignNewTx(a.key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei), Gas: createGas, Data: code,
	})
	if err != nil {
		return common.Address{}, err
	}
	if err := node.SendTransaction(ctx, tx); err != nil {
		return common.Address{}, err
	}
	err = await(ctx, func() bool {
		receipt, err := node.TransactionReceipt(ctx, tx.Hash())
		return err == nil && receipt.Status == types.ReceiptStatusSuccessful
	})
	return crypto.CreateAddress(a.address, nonce), err
}

// pay pays an invoice by an authorization of an account, in one request once the chain is
// followed.
func (g *gaslessWorld) pay(whose string, from common.Address, wrap func([]byte) []byte) {
	g.Helper()
	made := g.create(g.draft("1000000"))
	path, body := "/checkout/"+made.ID+"/authorization", g.customer.authorizeAs(g, made, from, crypto.Keccak256Hash([]byte(made.ID)), wrap)
	if got := g.awaitPaid(path, body); got.From != from.Hex() {
		g.Errorf("%s: paid by %s, want %s", whose, got.From, from.Hex())
	}
}

// payDeposit pays an invoice at its deposit address, which it returns.
func (g *gaslessWorld) payDeposit() string {
	g.Helper()
	draft := g.draft("1000000")
	draft.Collection = apitypes.CollectionDeposit
	made := g.create(draft)
	if made.Invoice.DepositAddress == "" {
		g.Fatalf("the invoice has no deposit address: %+v", made.Invoice)
	}
	got := g.awaitPaid("/checkout/"+made.ID+"/authorization", g.customer.authorize(g, made))
	if got.To != made.Invoice.DepositAddress {
		g.Errorf("it is paid to %s, want %s", got.To, made.Invoice.DepositAddress)
	}
	g.awaitInvoice(made.ID, func(inv apitypes.Invoice) bool { return inv.Status == apitypes.StatusPaid })
	return made.Invoice.DepositAddress
}

// awaitPaid submits the same authorization until it is paid.
func (g *gaslessWorld) awaitPaid(path, body string) apitypes.Authorization {
	g.Helper()
	var last answer
	var got apitypes.Authorization
	err := await(g.ctx, func() bool {
		last = g.do(http.MethodPost, path+"?wait=5", body, "Content-Type", "application/json")
		if last.status != http.StatusOK { // the chain is not read yet
			return false
		}
		got = decoded[apitypes.AuthorizationResponse](g, last, http.StatusOK).Authorization
		if got.Status == apitypes.AuthorizationRefused {
			g.Fatalf("it is refused: %s", last.body)
		}
		return got.Status == apitypes.AuthorizationPaid
	})
	if err != nil {
		g.Fatalf("%v: %d %s", err, last.status, last.body)
	}
	return got
}

// authorize returns the body of a request that pays an invoice by an authorization of the
// wallet's account, with the invoice's on-chain id as nonce.
func (a *wallet) authorize(tb testing.TB, made apitypes.CreateInvoiceResponse) string {
	tb.Helper()
	return a.authorizeAs(tb, made, a.address, common.HexToHash(made.OnChainInvoiceID), func(signature []byte) []byte { return signature })
}

// authorizeAs is authorize for an account that the wallet's key signs for, with a nonce; wrap
// returns the account's signature from the key's.
func (a *wallet) authorizeAs(tb testing.TB, made apitypes.CreateInvoiceResponse, from common.Address, nonce common.Hash, wrap func([]byte) []byte) string {
	tb.Helper()
	auth := contracts.Authorization{
		From: from, To: common.HexToAddress(cmp.Or(made.Invoice.DepositAddress, made.Invoice.MerchantAddress)), Value: units(tb, made.Invoice.Amount),
		ValidAfter: new(big.Int), ValidBefore: big.NewInt(time.Now().Add(10 * time.Minute).Unix()), Nonce: nonce,
	}
	chain := a.info().Chain
	domain := contracts.TestUSDCDomain(new(big.Int).SetUint64(chain.ChainID), common.HexToAddress(chain.Token))
	signature, err := auth.Sign(domain, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf(`{
  "from": %q,
  "to": %q,
  "value": %q,
  "validAfter": 0,
  "validBefore": %s,
  "nonce": %q,
  "signature": "%#x"
}`, from.Hex(), auth.To.Hex(), auth.Value.String(), auth.ValidBefore, auth.Nonce.Hex(), wrap(signature.Bytes()))
}
