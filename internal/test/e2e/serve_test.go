package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// serveConfig is the configuration of a service on an external chain.
const serveConfig = `
listen: 127.0.0.1:0
database: sqlite:%s
merchants: [{id: acme, webhookUrl: "%s", webhookSecretEnv: ACME_SECRET}]
webhooks: {allow: [127.0.0.1]}
` + keySetting + `
chains:
  - chainKey: testnet
    idleInterval: 1s
    chainId: %d
    rpc: ["%s"]
    finality: 2
    tokens: [{currency: USDC, address: "%s"}]
    registry: "%s"
    operatorKeyEnv: OPERATOR_KEY
`

// TestServe deploys a registry on a chain, runs the service there from a configuration,
// kills it while a payment is pending, and restarts it.
func TestServe(t *testing.T) {
	t.Parallel()
	g, r := newServedWorld(t), newReceiver(t)
	r.setSecret("whsec_of_acme_shop")
	info, operatorSecret := *g.info.Load(), g.chain.info.Load().Payer.PrivateKey
	g.env = []string{"ACME_SECRET=whsec_of_acme_shop", "OPERATOR_KEY=" + operatorSecret}

	deploy := launchWith(t, g.env, "chain", "deploy", "--rpc", info.Chain.RPCURL, "--key-env", "OPERATOR_KEY", "--contracts", "registry")
	if code := deploy.exit(t, patience); code != 0 {
		t.Fatalf("deploy: exit code %d", code)
	}
	registry := strings.Trim(strings.TrimPrefix(deploy.stdout.String(), "registry: "), "\"\n")
	if !common.IsHexAddress(registry) || common.HexToAddress(registry).Hex() != registry || registry == info.Chain.Registry {
		t.Fatalf("deploy printed %q", deploy.stdout.String())
	}
	g.configure(fmt.Sprintf(serveConfig, filepath.Join(g.dir, "pay.db"), r.URL, info.Chain.ChainID, info.Chain.RPCURL, info.Chain.Token, registry))
	info.Chain.Registry = registry
	g.info.Store(&info)

	// The service must be the only user of the operator's key, so tokens are transferred before it starts.
	customer := g.newWallet("")
	if _, err := g.chain.merchant().send(g.ctx, customer.address, units(t, "1000000000000000000"), nil, nil); err != nil {
		t.Fatal(err)
	}
	g.chain.payer().mustTransfer(t, customer.address.Hex(), "100000000", nil)
	c := g.serve()
	if a := g.post(g.body("merchantId", `"stranger"`, "chainKey", `"testnet"`)); decoded[apitypes.Problem](t, a, http.StatusBadRequest).Field != "merchantId" {
		t.Errorf("a merchant that is not configured: %s", a.body)
	}
	transferred, recorded := g.create(g.draft("4900000")), g.create(g.draft("7000000"))
	for _, made := range []apitypes.CreateInvoiceResponse{transferred, recorded} {
		g.awaitCommitment(customer, made, contracts.StatusOpen)
	}
	expect.OK(t, customer.approve(g.ctx))
	customer.mustTransfer(t, info.Merchant.Address, transferred.Invoice.TransferAmount, nil)
	c.kill()
	if _, err := customer.pay(g.ctx, chain.ContractTerms(g.terms(recorded.Invoice), recorded.ID), nil); err != nil {
		t.Fatal(err)
	}
	c = g.serve()
	for _, made := range []apitypes.CreateInvoiceResponse{transferred, recorded} {
		r.await(g.ctx, webhook.PaymentReceived, made.ID)
		r.await(g.ctx, webhook.InvoicePaid, made.ID)
	}
	g.awaitCommitment(customer, transferred, contracts.StatusClosed)
	g.awaitCommitment(customer, recorded, contracts.StatusPaid)
	if code := c.stop(t, syscall.SIGTERM, 15*time.Second); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	for _, secret := range []string{"whsec_of_acme_shop", strings.TrimPrefix(operatorSecret, "0x")} {
		if strings.Contains(c.stderr.String(), secret) {
			t.Error("the log shows a secret")
		}
	}
	r.clean()
}

// awaitCommitment waits until the registry has an invoice's commitment in a state.
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
