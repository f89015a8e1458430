package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/webhook"
)

// serveConfig is the configuration of a service on an external chain. Its tokens are
// tokenEntry, separated by commas.
const serveConfig = `
listen: 127.0.0.1:0
database: sqlite:%s
merchants:
  - id: acme
    webhookUrl: %s
    webhookSecretEnv: ACME_SECRET
webhooks: {allow: [127.0.0.1]}
` + keySetting + `
chains:
  - chainKey: testnet
    idleInterval: 1s
    chainId: %d
    rpc: [%s]
    finality: 2
    tokens: [%s]
    registry: "%s"
    operatorKeyEnv: OPERATOR_KEY
`

const tokenEntry = `{currency: %s, address: "%s"}`

// TestServe deploys a registry on a chain, runs the service there from a configuration,
// kills it while a payment is pending, and restarts it.
func TestServe(t *testing.T) {
	t.Parallel()
	chainWorld, _ := startWorld(t, "--block-time", quick)
	info := *chainWorld.info.Load()
	ctx := within(t, 90*time.Second)
	env := []string{"ACME_SECRET=whsec_of_acme_shop", "OPERATOR_KEY=" + info.Payer.PrivateKey}

	deploy := launchWith(t, env, "chain", "deploy", "--rpc", info.Chain.RPCURL, "--key-env", "OPERATOR_KEY", "--contracts", "registry")
	if code := deploy.exit(t, patience); code != 0 {
		t.Fatalf("deploy: exit code %d", code)
	}
	registry := strings.Trim(strings.TrimPrefix(deploy.stdout.String(), "registry: "), "\"\n")
	if !common.IsHexAddress(registry) || common.HexToAddress(registry).Hex() != registry || registry == info.Chain.Registry {
		t.Fatalf("deploy printed %q", deploy.stdout.String())
	}

	r := newReceiver(t)
	r.setSecret("whsec_of_acme_shop")
	dir := t.TempDir()
	file := filepath.Join(dir, "quittance.yaml")
	text := fmt.Sprintf(serveConfig, filepath.Join(dir, "pay.db"), r.URL, info.Chain.ChainID, info.Chain.RPCURL,
		fmt.Sprintf(tokenEntry, "USDC", info.Chain.Token), registry)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, dir: dir, http: withKey(chainWorld.http)}
	serve := func() *child {
		c := launchWith(t, env, "serve", "--config", file)
		w.info.Store(&dev.Info{
			BaseURL:  c.awaitURL(t),
			Merchant: dev.MerchantInfo{ID: "acme", Address: info.Merchant.Address},
			Payer:    info.Payer,
			Chain: dev.ChainInfo{
				ChainKey: "testnet", ChainID: info.Chain.ChainID, RPCURL: info.Chain.RPCURL, Token: info.Chain.Token, Registry: registry,
			},
		})
		return c
	}
	// The service must be the only user of the operator's key, so tokens are transferred
	// before it starts.
	customer := w.newWallet("")
	if _, err := chainWorld.merchant().send(ctx, customer.address, units(t, "1000000000000000000"), nil, nil); err != nil {
		t.Fatal(err)
	}
	chainWorld.payer().mustTransfer(t, customer.address.Hex(), "100000000", nil)
	c := serve()
	if a := w.post(w.body("merchantId", `"stranger"`, "chainKey", `"testnet"`)); decoded[apitypes.Problem](t, a, http.StatusBadRequest).Field != "merchantId" {
		t.Errorf("a merchant that is not configured: %s", a.body)
	}
	transferred, recorded := w.create(w.draft("4900000")), w.create(w.draft("7000000"))
	for _, made := range []apitypes.CreateInvoiceResponse{transferred, recorded} {
		w.awaitCommitment(customer, made, contracts.StatusOpen)
	}
	if err := customer.approve(ctx); err != nil {
		t.Fatal(err)
	}
	customer.mustTransfer(t, info.Merchant.Address, transferred.Invoice.TransferAmount, nil)
	c.kill()
	if _, err := customer.pay(ctx, chain.ContractTerms(w.terms(recorded.Invoice), recorded.ID), nil); err != nil {
		t.Fatal(err)
	}
	c = serve()
	for _, made := range []apitypes.CreateInvoiceResponse{transferred, recorded} {
		r.await(ctx, webhook.PaymentReceived, made.ID)
		r.await(ctx, webhook.InvoicePaid, made.ID)
	}
	w.awaitCommitment(customer, transferred, contracts.StatusClosed)
	w.awaitCommitment(customer, recorded, contracts.StatusPaid)
	if code := c.stop(t, syscall.SIGTERM, 15*time.Second); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	for _, secret := range []string{"whsec_of_acme_shop", strings.TrimPrefix(info.Payer.PrivateKey, "0x")} {
		if strings.Contains(c.stderr.String(), secret) {
			t.Error("the log shows a secret")
		}
	}
	r.clean()
}

// awaitCommitment waits until the registry has an invoice's commitment in a
// state.
func (w *world) awaitCommitment(a *wallet, made apitypes.CreateInvoiceResponse, want contracts.Status) {
	w.Helper()
	ctx := within(w, patience)
	var got contracts.Status
	var failed error
	if err := await(ctx, func() bool {
		got, failed = a.statusOf(ctx, common.HexToHash(made.OnChainInvoiceID))
		return failed == nil && got == want
	}); err != nil {
		w.Fatalf("the commitment of %s is %s (%v); want %s", made.ID, got, failed, want)
	}
}
