package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
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
	expect.Success(t)(g.chain.merchant().send(g.ctx, customer.address, units(t, "1000000000000000000"), nil, nil))
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
	expect.Success(t)(customer.pay(g.ctx, chain.ContractTerms(g.terms(recorded.Invoice), recorded.ID), nil))
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

// TestCommandLine runs a merchant's day on the command line, through the API of a world.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quick)
	info := w.info.Load()
	command := func(args ...string) string {
		t.Helper()
		c := launch(t, append(args, "--url", info.BaseURL)...)
		if code := c.exit(t, patience); code != 0 {
			t.Fatalf("%q: exit code %d", args, code)
		}
		return c.stdout.String()
	}
	read := func(into any, args ...string) {
		t.Helper()
		if err := json.Unmarshal([]byte(command(append(args, "--json")...)), into); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	}
	wants := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is missing in\n%s", part, text)
			}
		}
	}

	wants(command("merchants", "create", "acme", "--name", "Acme", "--default-address", "local="+info.Merchant.Address), "default address  local="+info.Merchant.Address)
	wants(command("merchants", "update", "acme", "--statement", "Thank you", "--tolerance", "0.5%"), "Thank you", "0.5%")
	wants(command("merchants", "list"), "acme           database  Acme")

	var key apitypes.KeySecretResponse
	read(&key, "keys", "create", "--name", "till", "--merchant", "acme", "--expires", "12h")
	wants(command("keys", "list", "--merchant", "acme"), key.Key.ID, "till", "active")
	var second apitypes.KeySecretResponse
	read(&second, "keys", "rotate", key.Key.ID, "--overlap", "1h")
	wants(command("keys", "revoke", key.Key.ID), key.Key.ID+" is revoked")
	wants(command("keys", "list", "--merchant", "acme", "--all"), "revoked", second.Key.ID)

	var made apitypes.CreateInvoiceResponse
	read(&made, "invoices", "create", "--merchant", "acme", "--chain", "local", "--amount", "4.90", "--item", "Coffee=4.90", "--reference", "A-17", "--metadata", "table=7")
	wants(command("invoices", "list", "--merchant", "acme"), made.ID, "open", "4.90 USDC", "A-17")
	wants(command("invoices", "list", "--reference", "A-17"), made.ID)
	var draft apitypes.CreateInvoiceResponse
	read(&draft, "invoices", "create", "--draft", "--merchant", "acme", "--chain", "local", "--amount", "1")
	wants(command("invoices", "finalize", draft.ID), draft.ID+"  open", "/checkout/"+draft.ID)
	wants(command("invoices", "void", draft.ID), draft.ID+" is void.")
	wants(command("invoices", "show", made.ID), "Coffee: 4.90 USDC", "A-17")
	answer, err := w.http.PostForm(w.url(made.CheckoutURL+"/test-payment"), url.Values{})
	expect.OK(t, err)
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the test payment: %s %v", answer.Status, err)
	}
	wants(command("invoices", "watch", made.ID), "paid  paid 4.9")
	var payments apitypes.PaymentList
	read(&payments, "payments", "list", "--merchant", "acme")
	if len(payments.Payments) != 1 || payments.Payments[0].InvoiceID != made.ID {
		t.Fatalf("the payments are %+v", payments)
	}
	wants(command("payments", "show", payments.Payments[0].ID), made.ID, payments.Payments[0].TxHash)

	payment := payments.Payments[0].ID
	var prepared apitypes.RefundResponse
	read(&prepared, "refunds", "prepare", payment, "--amount", "1.50", "--reason", "one cup was broken")
	if prepared.Refund.Amount != "1500000" || prepared.Transaction == nil {
		t.Errorf("the refund is %+v", prepared)
	}
	safe := filepath.Join(t.TempDir(), "safe.json")
	wants(command("refunds", "show", prepared.Refund.ID, "--safe", safe), "1.50 USDC", prepared.Transaction.Data, prepared.Transaction.Link)
	if text, err := os.ReadFile(safe); err != nil || !json.Valid(text) {
		t.Errorf("the batch file: %s %v", text, err)
	}
	wants(command("refunds", "list", "--payment", payment), prepared.Refund.ID, "pending")
	wants(command("refunds", "cancel", prepared.Refund.ID), "canceled")
	wants(command("refunds", "prepare", payment, "--ask-payer"), "awaiting_address", "the payer's page")
}

// idleConfig configures a service on a chain with a node that is down.
const idleConfig = `
listen: 127.0.0.1:0
database: sqlite:%s
http: {stopDelay: %s}
merchants: [{id: acme}]
chains: [{chainKey: base, rpc: ["http://127.0.0.1:1"]}]
`

// launchIdle runs a service on a SQLite file.
func launchIdle(t *testing.T, database, stopDelay string) (c *child, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "quittance.yaml")
	expect.OK(t, os.WriteFile(file, fmt.Appendf(nil, idleConfig, database, stopDelay), 0o600))
	c = launch(t, "serve", "--config", file)
	ready := regexp.MustCompile(`msg=ready url=(http://127\.0\.0\.1:\d+)`)
	if err := await(within(t, patience), func() bool {
		if found := ready.FindStringSubmatch(c.stderr.String()); found != nil {
			url = found[1]
		}
		return url != "" || c.ended()
	}); err != nil {
		t.Fatal("it is not ready")
	}
	return c, url
}

// TestExtraSecondSignal sends a second SIGTERM to a service that waits before it stops. It must end at once.
func TestExtraSecondSignal(t *testing.T) {
	t.Parallel()
	c, _ := launchIdle(t, filepath.Join(t.TempDir(), "q.db"), "25s")
	expect.OK(t, c.cmd.Process.Signal(syscall.SIGTERM))
	if err := await(within(t, patience), func() bool { return strings.Contains(c.stderr.String(), "msg=stopping") }); err != nil {
		t.Fatal("it does not stop")
	}
	if code := c.stop(t, syscall.SIGTERM, patience); code == 0 {
		t.Errorf("exit code %d of a process that was killed", code)
	}
}

// TestExtraHangup checks that SIGHUP is logged and ignored.
func TestExtraHangup(t *testing.T) {
	t.Parallel()
	c, url := launchIdle(t, filepath.Join(t.TempDir(), "q.db"), "0s")
	expect.OK(t, c.cmd.Process.Signal(syscall.SIGHUP))
	if err := await(within(t, patience), func() bool { return strings.Contains(c.stderr.String(), "SIGHUP changes nothing") || c.ended() }); err != nil || c.ended() {
		t.Fatal("a SIGHUP is not logged, or ends it")
	}
	response, err := http.Get(url + "/healthz")
	expect.OK(t, err)
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("/healthz answers %s, %v", response.Status, err)
	}
	if code := c.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTwoServicesOnOneFile starts two services on one SQLite file. The second fails.
func TestTwoServicesOnOneFile(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "q.db")
	first, _ := launchIdle(t, database, "0s")
	second, _ := launchIdle(t, database, "0s")
	if code := second.exit(t, patience); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{database, fmt.Sprint("process ", first.cmd.Process.Pid)} {
		if !strings.Contains(second.stderr.String(), want) {
			t.Errorf("it says %q; want %q in it", second.stderr.String(), want)
		}
	}
	first.kill() // releases the lock of the file
	third, url := launchIdle(t, database, "0s")
	if url == "" {
		t.Errorf("after a kill it does not start: %s", third.stderr.String())
	}
}

// TestDevLandingPage follows every link of the page at a world's root.
func TestDevLandingPage(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t)
	if err := await(within(t, patience), func() bool { // the chain must be indexed
		return launch(t, "ready", "--url", w.info.Load().BaseURL).exit(t, patience) == 0
	}); err != nil {
		t.Errorf("quittance ready: %v", err)
	}
	get := func(path string) string {
		answer, err := w.http.Get(w.url(path))
		expect.OK(t, err)
		defer answer.Body.Close() //nolint:errcheck // it was read
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v", path, answer.Status, err)
		}
		return string(body)
	}
	page := get("/")
	info := w.info.Load()
	for _, want := range []string{info.Merchant.Address, info.Chain.RPCURL, info.Chain.Token} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	for _, key := range []string{info.Merchant.PrivateKey, info.Payer.PrivateKey, info.Merchant.WebhookSecret, info.Merchant.Key} {
		if strings.Contains(page, key) {
			t.Error("the page shows a secret")
		}
	}
	links := regexp.MustCompile(`href="(/[^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 8 {
		t.Errorf("the page has %d links", len(links))
	}
	for _, link := range links {
		get(html.UnescapeString(link[1]))
	}
}
