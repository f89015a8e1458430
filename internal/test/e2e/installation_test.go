package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/certstest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// installationConfig is the configuration of a service that payers and shops reach over HTTPS.
// Equal addresses would share a listener, so each is written differently.
const installationConfig = `
publicUrl: https://pay.example.com
doors:
  public: https://127.0.0.1:0
  api: https://localhost:0
  operator: http://[::ffff:127.0.0.1]:0
tls: {certificateFile: %[1]s/tls.crt, keyFile: %[1]s/tls.key}
database: {urlEnv: DATABASE_URL}
masterKeyEnv: MASTER_KEY
webhooks: {allow: [127.0.0.1]}
chains:
  - chainKey: testnet
    idleInterval: 1s
    chainId: %[2]d
    rpc: ["%[3]s"]
    finality: 2
    tokens: [{currency: USDC, address: "%[4]s"}]
`

const installationMasterKey = "5ec7e78c3f1d5e9ab2047c6e11f0d93b58a7c42d7e9016fb83c5aa4e6d2719b0"

// revocationTime bounds how long a revoked key may still be accepted.
const revocationTime = 2 * time.Second

// installation runs a service with the program's commands, as documented.
type installation struct {
	testing.TB
	dir, config string
	env         []string
	serving     *child
	doors       map[string]string // host and port by the door's name
	secrets     []string          // which no log may contain
}

// newInstallation writes the configuration of a service that uses a database and a world's chain.
func newInstallation(tb testing.TB, chainWorld *world, database string, certificate certstest.Pair) *installation {
	tb.Helper()
	c := &installation{
		TB: tb, dir: tb.TempDir(), env: []string{"DATABASE_URL=" + database, "MASTER_KEY=" + installationMasterKey},
		doors: make(map[string]string), secrets: []string{installationMasterKey},
	}
	c.config = filepath.Join(c.dir, "quittance.yaml")
	on := chainWorld.info.Load().Chain
	expect.OK(tb, os.WriteFile(c.config, fmt.Appendf(nil, installationConfig, c.dir, on.ChainID, on.RPCURL, on.Token), 0o600))
	c.install(certificate)
	return c
}

// install writes the files of the certificate.
func (c *installation) install(p certstest.Pair) {
	c.Helper()
	certstest.Write(c, filepath.Join(c.dir, "tls.crt"), p.Certificate, filepath.Join(c.dir, "tls.key"), p.Key)
}

// command runs a command of the program and returns what it printed.
func (c *installation) command(args ...string) string {
	c.Helper()
	run := launchWith(c, c.env, append(args, "--config", c.config)...)
	if code := run.exit(c, patience); code != 0 {
		c.Fatalf("%q: exit code %d", args, code)
	}
	return run.stdout.String()
}

// createKey creates a key with quittance key create.
func (c *installation) createKey(args ...string) apitypes.KeySecretResponse {
	c.Helper()
	var made apitypes.KeySecretResponse
	expect.OK(c, json.Unmarshal([]byte(c.command(append([]string{"key", "create", "--json"}, args...)...)), &made))
	c.secrets = append(c.secrets, made.Secret)
	return made
}

var (
	listening = regexp.MustCompile(`msg=listening address=(127\.0\.0\.1:\d+) doors=\[(\w+)\]`)
	ready     = regexp.MustCompile(`msg=ready url=(https://127\.0\.0\.1:\d+)`)
)

// serve runs the service, waits until it is ready, and stores the addresses of its doors.
func (c *installation) serve() {
	c.Helper()
	c.serving = launchWith(c, c.env, "serve", "--config", c.config)
	var found []string
	if err := await(within(c, patience), func() bool {
		found = ready.FindStringSubmatch(c.serving.stderr.String())
		return found != nil || c.serving.ended()
	}); err != nil || found == nil {
		c.Fatalf("serve is not ready: %v", err)
	}
	for _, door := range listening.FindAllStringSubmatch(c.serving.stderr.String(), -1) {
		c.doors[door[2]] = door[1]
	}
	if len(c.doors) != 3 || found[1] != "https://"+c.doors["api"] {
		c.Fatalf("the doors are %v, and the API is at %s", c.doors, found[1])
	}
	if err := await(within(c, patience), func() bool { // its chain is indexed
		return launch(c, "ready", "--url", "http://"+c.doors["operator"]).exit(c, patience) == 0
	}); err != nil {
		c.Errorf("quittance ready: %v", err)
	}
}

// browser returns a client that trusts a certificate, and for which pay.example.com is a door of the service.
func (c *installation) browser(trusted certstest.Pair, door string) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted.Pool(), MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, c.doors[door])
		},
	}
	c.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: apitest.Transport(c, transport), Timeout: patience}
}

// get gets a page of pay.example.com.
func (c *installation) get(browser *http.Client, path string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "https://pay.example.com"+path, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := browser.Do(r)
	if err != nil {
		return 0, "", err
	}
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(raw), errors.Join(err, answer.Body.Close())
}

// shop returns a client of the API with a key.
func (c *installation) shop(trusted certstest.Pair, key apitypes.KeySecretResponse) *client.Client {
	c.Helper()
	made := expect.Must(client.New("https://"+c.doors["api"], client.WithHTTPClient(c.browser(trusted, "api")), client.WithRetries(0), client.WithKey(key.Secret)))
	return made
}

// listed returns the ids of the invoices that a client can list.
func (c *installation) listed(shop *client.Client) (ids []string, err error) {
	for inv, err := range shop.Invoices(c.Context(), client.InvoiceFilter{}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, inv.ID)
	}
	return ids, nil
}

// failsWith reports whether an error is a response with a code.
func failsWith(err error, code apitypes.ErrorCode) bool {
	problem := (*client.Error)(nil)
	return errors.As(err, &problem) && problem.Code == code
}

// TestExtraInstallation installs a service with HTTPS and a merchant by the commands of the docs,
// pays an invoice, replaces the certificate, revokes a key, and stops the service.
func TestExtraInstallation(t *testing.T) {
	t.Parallel()
	chainWorld, _ := startWorld(t, "--block-time", quick)
	first, second := certstest.New(t, time.Now().Add(time.Hour)), certstest.New(t, time.Now().Add(2*time.Hour))
	c := newInstallation(t, chainWorld, dbtest.Postgres(t), first)
	if out := c.command("config", "check"); !strings.Contains(out, "is usable") {
		t.Errorf("config check prints %q", out)
	}
	c.serve()
	till := chainWorld.newWallet("").address.Hex() // used only by this test
	operator := c.createKey("--name", "admin", "--scopes", "admin")
	c.command("merchant", "create", "acme", "--name", "Acme Books", "--default-address", "testnet="+till, "--allow-address", "testnet="+till)
	c.command("merchant", "create", "beta", "--name", "Beta")
	acme := c.createKey("--name", "shop backend", "--merchant", "acme", "--scopes", "standard,webhooks:write")
	beta := c.createKey("--name", "other shop", "--merchant", "beta")

	c.sell(chainWorld, till, first, acme, beta)
	c.replaceCertificate(first, second)
	c.revoke(second, acme, operator)
	c.checkAudit("acme", access.ActionMerchantCreate, access.ActionKeyCreate, access.ActionEndpointUpdate, access.ActionKeyRevoke)
	c.stop()
}

// sell sets acme's endpoint, and creates and pays an invoice.
func (c *installation) sell(chainWorld *world, till string, trusted certstest.Pair, acme, beta apitypes.KeySecretResponse) {
	c.Helper()
	ctx, r := within(c, 90*time.Second), newReceiver(c)
	shop, other := c.shop(trusted, acme), c.shop(trusted, beta)
	_, secret, err := shop.PutWebhook(ctx, "acme", r.URL)
	expect.OK(c, err)
	r.setSecret(secret)
	c.secrets = append(c.secrets, secret)

	order := apitypes.CreateInvoiceRequest{Amount: "4900000", Currency: "USDC", ChainKey: "testnet", ExpiresAt: time.Now().Unix() + 3600}
	made, err := shop.CreateInvoice(ctx, order)
	expect.OK(c, err)
	if inv := made.Invoice; inv.MerchantID != "acme" || inv.MerchantAddress != till || made.CheckoutPage != "https://pay.example.com/checkout/"+made.ID {
		c.Errorf("created %+v with the page %s", inv, made.CheckoutPage)
	}
	order.MerchantAddress = chainWorld.info.Load().Merchant.Address
	if _, err := shop.CreateInvoice(ctx, order); !failsWith(err, apitypes.CodeInvalidField) {
		c.Errorf("an address that is not allowed: %v", err)
	}
	if status, page, err := c.get(c.browser(trusted, "public"), made.CheckoutURL); err != nil || status != http.StatusOK || !strings.Contains(page, "Acme Books") {
		c.Errorf("the page: %d, %v: %s", status, err, page)
	}
	for _, door := range []string{"api", "public"} { // each requests a path of the other
		path := map[string]string{"api": made.CheckoutURL, "public": "/api/invoices/" + made.ID}[door]
		if status, _, err := c.get(c.browser(trusted, door), path); err != nil || status != http.StatusNotFound {
			c.Errorf("%s at the %s door: %d, %v", path, door, status, err)
		}
	}

	chainWorld.payer().mustTransfer(c, made.Invoice.MerchantAddress, made.Invoice.TransferAmount, nil)
	r.await(ctx, webhook.InvoicePaid, made.ID)
	r.clean()
	if ids, err := c.listed(shop); err != nil || !slices.Equal(ids, []string{made.ID}) {
		c.Errorf("acme lists %v, %v", ids, err)
	}
	if ids, err := c.listed(other); err != nil || len(ids) != 0 {
		c.Errorf("beta lists %v, %v", ids, err)
	}
	if _, err := other.Invoice(ctx, made.ID); !failsWith(err, apitypes.CodeNotFound) {
		c.Errorf("beta reads acme's invoice: %v", err)
	}
}

// replaceCertificate replaces the certificate of the running service.
func (c *installation) replaceCertificate(old, next certstest.Pair) {
	c.Helper()
	c.install(next)
	if err := await(within(c, patience), func() bool { return strings.Contains(c.serving.stderr.String(), "TLS certificate loaded") }); err != nil {
		c.Fatal("the new certificate is not loaded")
	}
	for _, door := range []string{"public", "api"} {
		if _, _, err := c.get(c.browser(next, door), "/"); err != nil {
			c.Errorf("a new connection to the %s door: %v", door, err)
		}
		if _, _, err := c.get(c.browser(old, door), "/"); err == nil {
			c.Errorf("a new connection to the %s door has the old certificate", door)
		}
	}
}

// revoke revokes a merchant's key.
func (c *installation) revoke(trusted certstest.Pair, merchants, operator apitypes.KeySecretResponse) {
	c.Helper()
	shop, owner := c.shop(trusted, merchants), c.shop(trusted, operator)
	if _, err := c.listed(shop); err != nil {
		c.Errorf("before it is revoked: %v", err)
	}
	c.command("key", "revoke", merchants.Key.ID)
	var err error
	if late := await(within(c, revocationTime), func() bool {
		_, err = c.listed(shop)
		return err != nil
	}); late != nil || !failsWith(err, apitypes.CodeUnauthorized) {
		c.Errorf("the revoked key: %v, %v", err, late)
	}
	if ids, err := c.listed(owner); err != nil || len(ids) != 1 {
		c.Errorf("the operator lists %v, %v", ids, err)
	}
}

// checkAudit verifies the audit log, and compares the actions of a merchant's entries.
func (c *installation) checkAudit(merchantID string, want ...access.Action) {
	c.Helper()
	if out := c.command("audit", "verify"); !strings.Contains(out, "is intact") {
		c.Errorf("audit verify prints %q", out)
	}
	var log apitypes.AuditList
	out := c.command("audit", "list", "--json", "--merchant", merchantID)
	expect.OK(c, json.Unmarshal([]byte(out), &log))
	for _, action := range want {
		if !slices.ContainsFunc(log.Entries, func(e apitypes.AuditEntry) bool { return e.Action == string(action) }) {
			c.Errorf("the audit log has no %s: %s", action, out)
		}
	}
}

// stop stops the service with SIGTERM, and searches its log for secrets.
func (c *installation) stop() {
	c.Helper()
	if code := c.serving.stop(c, syscall.SIGTERM, patience); code != 0 {
		c.Errorf("SIGTERM: exit code %d", code)
	}
	log := c.serving.stderr.String()
	if stopping, stopped := strings.Index(log, "msg=stopping"), strings.LastIndex(log, "msg=stopped"); stopping < 0 || stopped < stopping {
		c.Error("the log does not say that the service stops and has stopped")
	}
	for _, secret := range c.secrets {
		if strings.Contains(log, secret) {
			c.Error("the log shows a secret")
		}
	}
}
