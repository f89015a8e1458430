package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// five is 5 units.
var five = invoice.NewAmount(5_000_000)

// secondToken is a token that a replica adds to its configuration.
var secondToken = invoice.Address{0xee}

// withTokens returns the chain with these tokens only.
func withTokens(c Chain, tokens ...chain.Token) Chain {
	c.Tokens = tokens
	return c
}

// createIn creates an invoice of 5 units at a new address, and returns its id and address.
func createIn(t *testing.T, base, currency string, n int) (id string, address invoice.Address, a answer) {
	t.Helper()
	address = invoice.Address{0xad, byte(n)}
	a = ask(t, http.MethodPost, base+"/api/invoices", fmt.Sprintf(
		`{"merchantId":"m","merchantAddress":%q,"amount":"5000000","currency":%q,"chainKey":"house","expiresAt":%d}`,
		address, currency, time.Now().Add(300*24*time.Hour).Unix()))
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(a.body), &made); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return made.ID, address, a
}

// end stops the service, and waits for it.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	expect.OK(t, <-r.ended)
}

// startError returns the error of a start with a chain.
func startError(t *testing.T, database string, c Chain) error {
	t.Helper()
	return Run(t.Context(), Config{
		Listeners: listenOn(t, Address{}), Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true},
		Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler), Access: Access{Mode: access.Test, Open: true},
	})
}

// awaitPaid waits until an invoice is paid.
func awaitPaid(t *testing.T, base, id string) {
	t.Helper()
	awaitBody(t, base+"/api/invoices/"+id, `"status":"paid"`)
}

// awaitBody waits until an answer holds a text.
func awaitBody(t *testing.T, url, text string) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		a := ask(t, http.MethodGet, url, "")
		if strings.Contains(a.body, text) {
			return
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("no %s: %d %s", text, a.status, a.body)
		}
	}
}

// TestTokenAddedByRollingRestart adds a token with a replica that starts while another one still reads
// the chain without it. No payment is lost. The other replica stops its work and reports why.
func TestTokenAddedByRollingRestart(t *testing.T) {
	t.Parallel()
	database := dbtest.MigratedPostgres(t)
	c, blocks, eurc, start := withTwoTokens(t, database)
	usdc := c.Tokens[0]
	old := start(usdc).url
	await(t, old, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	if _, _, a := createIn(t, old, "EURC", 0); a.status != http.StatusBadRequest {
		t.Fatalf("the old replica takes EURC: %d %s", a.status, a.body)
	}
	current := start(usdc, eurc).url
	var ids []string
	for n := range 8 {
		id, address, a := createIn(t, current, "EURC", n)
		if a.status != http.StatusCreated {
			t.Fatalf("create: %d %s", a.status, a.body)
		}
		ids = append(ids, id)
		blocks.Mine(chaintest.NamedTx(fmt.Sprint("payment ", n), chaintest.Transfer(secondToken, invoice.Address{0xaa}, address, five)))
	}
	blocks.MineEmpty(3)
	for _, id := range ids {
		awaitPaid(t, current, id)
	}
	h := await(t, old, "stop", func(status int, h health) bool { return status == http.StatusServiceUnavailable && h.Revision != "" })
	if want := "runs configuration revision 1; the others run 2; restart it with the current configuration"; h.Revision != want {
		t.Errorf("/readyz says %q, want %q", h.Revision, want)
	}
	for _, path := range []string{"/api/invoices", "/checkout/" + ids[0], "/dashboard"} {
		if a := ask(t, http.MethodGet, old+path, ""); a.status != http.StatusServiceUnavailable {
			t.Errorf("the old replica answers %s with %d %s", path, a.status, a.body)
		}
	}

	// A restart with the former configuration is refused while the other replica runs. One with the current one is not.
	if err := startError(t, database, withTokens(c, usdc)); err == nil || !strings.Contains(err.Error(), "other replicas run revision 2") {
		t.Errorf("a start with the former configuration: %v, want a refusal", err)
	}
	third := start(eurc, usdc)
	await(t, third.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	await(t, current, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Revision == "" })
}

// TestFailedStartStopsNoReplica starts a replica with a new token that fails before it serves. The
// running one continues.
func TestFailedStartStopsNoReplica(t *testing.T) {
	t.Parallel()
	database := dbtest.MigratedPostgres(t)
	c, _, eurc, start := withTwoTokens(t, database)
	old := start(c.Tokens...).url
	await(t, old, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	failing := withTokens(c, c.Tokens[0], eurc)
	failing.RPC = []string{"gopher://127.0.0.1"}
	if err := startError(t, database, failing); err == nil {
		t.Fatal("a start with a node of no known scheme succeeds")
	}
	store := dbtest.Open(t, database)
	if newest, err := store.NewestRevision(t.Context()); err != nil || newest.Number != 1 {
		t.Errorf("the newest revision is %d (%v), want 1", newest.Number, err)
	}
	if _, _, a := createIn(t, old, "USDC", 1); a.status != http.StatusCreated {
		t.Errorf("the replica that runs answers %d %s", a.status, a.body)
	}
}

// TestExtraAbandonedRevision ends the only replica with the newest revision. The other one, which had stopped its work, ends
// with an error, and takes over when it is started again. The newer configuration is refused then, until a command
// makes it the newest again.
func TestExtraAbandonedRevision(t *testing.T) {
	t.Parallel()
	database := dbtest.MigratedPostgres(t)
	c, _, eurc, start := withTwoTokens(t, database)
	usdc := c.Tokens[0]
	more := withTokens(c, usdc, eurc)
	old := start(usdc)
	current := start(usdc, eurc)
	await(t, old.url, "stop", func(_ int, h health) bool { return h.Revision != "" })
	current.end(t)
	if err := <-old.ended; err == nil || !strings.Contains(err.Error(), "no replica runs configuration revision 2 any more") {
		t.Fatalf("the replica with the older revision ended with %v", err)
	}
	old = start(usdc)
	await(t, old.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	if err := startError(t, database, more); err == nil || !strings.Contains(err.Error(), "other replicas run revision 3") || !strings.Contains(err.Error(), "quittance config apply") {
		t.Errorf("a start with the newer configuration: %v, want a refusal that names the command", err)
	}
	expect.OK(t, ApplyConfiguration(t.Context(), Config{Database: database, Chains: []Chain{more}, Merchants: Merchants{AcceptAll: true}, Now: time.Now}))
	current = start(usdc, eurc)
	await(t, current.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	await(t, old.url, "stop", func(_ int, h health) bool { return h.Revision != "" })
}

// TestApplyNeedsStoppedSQLite applies another configuration to the SQLite database of a running
// service, which would then stop reading blocks. It is refused, and the service keeps working.
func TestApplyNeedsStoppedSQLite(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	c, blocks, eurc, start := withTwoTokens(t, database)
	usdc := c.Tokens[0]
	both := Config{Database: database, Chains: []Chain{withTokens(c, usdc, eurc)}, Merchants: Merchants{AcceptAll: true}, Now: time.Now}
	r := start(usdc)
	id, address, _ := createIn(t, r.url, "USDC", 1)
	err := ApplyConfiguration(t.Context(), both)
	if err == nil || !strings.Contains(err.Error(), "in use by another quittance") {
		t.Errorf("applied while the service runs: %v", err)
	}
	blocks.Mine(chaintest.NamedTx("payment", chaintest.Transfer(usdc.Address, invoice.Address{0xaa}, address, five)))
	blocks.MineEmpty(3)
	awaitPaid(t, r.url, id)
	r.end(t)
	must(t, ApplyConfiguration(t.Context(), both))
}

// withTwoTokens returns a chain with two tokens, and a function that starts a service with some of them.
func withTwoTokens(t *testing.T, database string) (c Chain, blocks *chaintest.Chain, eurc chain.Token, start func(...chain.Token) *running) {
	t.Helper()
	c, blocks, _ = scriptedChain(t, "house", 7)
	blocks.Token(secondToken, 6)
	return c, blocks, chain.Token{Currency: "EURC", Address: secondToken, Decimals: 6}, func(tokens ...chain.Token) *running {
		t.Helper()
		return startServer(t, Config{Database: database, Chains: []Chain{withTokens(c, tokens...)}, Merchants: Merchants{AcceptAll: true}})
	}
}

// TestRemovedToken removes a token while an invoice in it is open. Its checkout works, its payment
// settles it, and new invoices in it are refused.
func TestRemovedToken(t *testing.T) {
	t.Parallel()
	c, blocks, eurc, start := withTwoTokens(t, dbtest.Migrated(t))
	usdc := c.Tokens[0]
	moved := invoice.Address{0xef}
	blocks.Token(moved, 6)
	first := start(usdc, eurc)
	id, address, a := createIn(t, first.url, "EURC", 1)
	if a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	pending, pendingAt, a := createIn(t, first.url, "EURC", 9)
	if a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	blocks.Mine(chaintest.NamedTx("pending payment", chaintest.Transfer(secondToken, invoice.Address{0xaa}, pendingAt, five)))
	awaitBody(t, first.url+"/api/payments?include=pending", `"status":"pending"`)
	first.end(t)
	blocks.Mine(chaintest.NamedTx("payment", chaintest.Transfer(secondToken, invoice.Address{0xaa}, address, five)))
	blocks.MineEmpty(3)

	second := start(usdc)
	if a := ask(t, http.MethodGet, second.url+"/checkout/"+id, ""); a.status != http.StatusOK {
		t.Errorf("the checkout answers %d", a.status)
	}
	if _, _, a := createIn(t, second.url, "EURC", 2); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"field":"currency"`) {
		t.Errorf("an invoice in the removed token: %d %s", a.status, a.body)
	}
	awaitPaid(t, second.url, id)
	awaitPaid(t, second.url, pending)
	second.end(t)

	third := start(usdc, chain.Token{Currency: "EURC", Address: moved, Decimals: 6})
	id, address, a = createIn(t, third.url, "EURC", 3)
	if a.status != http.StatusCreated {
		t.Fatalf("an invoice at the new address: %d %s", a.status, a.body)
	}
	blocks.Mine(chaintest.NamedTx("wrong", chaintest.Transfer(secondToken, invoice.Address{0xaa}, address, five)))
	blocks.MineEmpty(3)
	if a := ask(t, http.MethodGet, third.url+"/api/invoices/"+id, ""); !strings.Contains(a.body, `"status":"open"`) {
		t.Errorf("a payment in the former token changed the invoice: %s", a.body)
	}
	blocks.Mine(chaintest.NamedTx("right", chaintest.Transfer(moved, invoice.Address{0xaa}, address, five)))
	blocks.MineEmpty(3)
	awaitPaid(t, third.url, id)
}

// TestRetiredTokenReturns mines a payment in a token that was retired, and configures the token again. The payment is
// recorded, and invoices in the token are taken once the blocks are read.
func TestRetiredTokenReturns(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	c, blocks, eurc, start := withTwoTokens(t, database)
	usdc := c.Tokens[0]
	pay := func(name string, to invoice.Address) {
		blocks.Mine(chaintest.NamedTx(name, chaintest.Transfer(secondToken, invoice.Address{0xaa}, to, five)))
		blocks.MineEmpty(3)
	}
	first := start(usdc, eurc)
	id, address, _ := createIn(t, first.url, "EURC", 1)
	pay("payment", address)
	awaitPaid(t, first.url, id)
	first.end(t)
	second := start(usdc)
	await(t, second.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	second.end(t)
	store := dbtest.Open(t, database)
	expect.OK(t, ledger.RetireToken(t.Context(), store, "house", secondToken, time.Now()))
	third := start(usdc)
	if a := ask(t, http.MethodGet, fmt.Sprint(third.url, "/api/reports/summary?from=", time.Now().Add(-24*time.Hour).Unix()), ""); !strings.Contains(a.body, `"currency":"EURC","decimals":6`) {
		t.Errorf("the decimals of a retired token are not known: %s", a.body)
	}
	pay("unseen", address)
	head := blocks.Head().Number
	await(t, third.url, "the payment's block", func(_ int, h health) bool { return h.Chains[0].Indexed == head })
	if a := ask(t, http.MethodGet, third.url+"/api/payments?include=unattributed", ""); strings.Count(a.body, `"txHash"`) != 1 {
		t.Fatalf("payments in a retired token: %s", a.body)
	}
	third.end(t)
	blocks.MineEmpty(3) // what was read becomes final
	fourth := start(usdc, eurc)
	unseen := chaintest.NamedTx("unseen").Hash.String()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for polls := 0; ; polls++ {
		_, _, a := createIn(t, fourth.url, "EURC", 2)
		if a.status == http.StatusCreated {
			break
		}
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "were read without EURC") || polls > 1000 {
			t.Fatalf("an invoice in the token that returned: %d %s", a.status, a.body)
		}
		<-poll.C
	}
	if a := ask(t, http.MethodGet, fourth.url+"/api/payments?include=unattributed", ""); !strings.Contains(a.body, unseen) {
		t.Errorf("invoices are taken, and the payment is not recorded: %s", a.body)
	}
}

// TestContradictionDoesNotStart renames a chain and a currency, and changes a chain id.
func TestContradictionDoesNotStart(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	c, _, _ := scriptedChain(t, "house", 7)
	first := startServer(t, Config{Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
	await(t, first.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	first.end(t)
	for want, change := range map[string]func(*Chain){
		"the database knows as house": func(c *Chain) { c.Key = "home" },
		"is USDC in the database":     func(c *Chain) { c.Tokens = slices.Clone(c.Tokens); c.Tokens[0].Currency = "USDX" },
		"has chain id 7":              func(c *Chain) { c.ID = 8 },
	} {
		changed := c
		change(&changed)
		err := startError(t, database, changed)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "quittance chain") {
			t.Errorf("got %v, want an error with %q and a command", err, want)
		}
	}
}

// TestUnverifiedChainTakesNoInvoices starts with nodes that serve another chain id, and, after the
// chain was verified, with a node that is down.
func TestUnverifiedChainTakesNoInvoices(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	c, _, _ := scriptedChain(t, "house", 7)
	wrong := c
	wrong.ID = 8
	first := startServer(t, Config{Database: database, Chains: []Chain{wrong}, Merchants: Merchants{AcceptAll: true}})
	if _, _, a := createIn(t, first.url, "USDC", 1); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "No node of house has confirmed") {
		t.Errorf("with another chain id: %d %s", a.status, a.body)
	}
	first.end(t)
	second := startServer(t, Config{Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
	await(t, second.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	second.end(t)
	down := c
	down.RPC = []string{"http://127.0.0.1:1"}
	third := startServer(t, Config{Database: database, Chains: []Chain{down}, Merchants: Merchants{AcceptAll: true}})
	if _, _, a := createIn(t, third.url, "USDC", 2); a.status != http.StatusCreated {
		t.Errorf("with a node that is down: %d %s", a.status, a.body)
	}
}

// TestWrongTokenTakesNoInvoices starts with a token that is not a contract, and with one that has
// other decimals: as the only one, and next to a right one on a chain that was verified before.
func TestWrongTokenTakesNoInvoices(t *testing.T) {
	t.Parallel()
	nothing, eighteen := invoice.Address{0xe1}, invoice.Address{0xe2}
	for name, at := range map[string]invoice.Address{"no contract": nothing, "other decimals": eighteen} {
		for was, verified := range map[string]bool{"new": false, "verified": true} {
			t.Run(name+", "+was, func(t *testing.T) {
				t.Parallel()
				database := dbtest.Migrated(t)
				c, blocks, _ := scriptedChain(t, "house", 7)
				blocks.Token(eighteen, 18)
				wrong := []chain.Token{{Currency: "EURC", Address: at, Decimals: 6}}
				if verified {
					wrong = append(wrong, c.Tokens[0])
					first := startServer(t, Config{Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
					await(t, first.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
					first.end(t)
				}
				second := startServer(t, Config{Database: database, Chains: []Chain{withTokens(c, wrong...)}, Merchants: Merchants{AcceptAll: true}})
				if _, _, a := createIn(t, second.url, "EURC", 1); a.status != http.StatusServiceUnavailable {
					t.Errorf("at the start: %d %s", a.status, a.body)
				}
				await(t, second.url, "a node that does not match", func(_ int, h health) bool { return h.Chains[0].Error != "" })
				if _, _, a := createIn(t, second.url, "EURC", 1); a.status != http.StatusServiceUnavailable {
					t.Errorf("once it is known: %d %s", a.status, a.body)
				}
			})
		}
	}
}

// TestChainRenamedWithUpgrade renames a chain that only an earlier version read. The service does not
// read it under its new key.
func TestChainRenamedWithUpgrade(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	c, blocks, _ := scriptedChain(t, "house", 7)
	first := startServer(t, Config{Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
	await(t, first.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	first.end(t)
	conn := dbtest.SQL(t, database)
	for _, table := range []string{"known_tokens", "known_contracts", "known_chains", "revisions"} {
		expect.Success(t)(conn.ExecContext(t.Context(), "DELETE FROM "+table))
	}
	renamed := c
	renamed.Key = "home"
	blocks.MineEmpty(3)
	second := startServer(t, Config{Database: database, Chains: []Chain{renamed}, Merchants: Merchants{AcceptAll: true}})
	await(t, second.url, "refusal to read", func(_ int, h health) bool {
		return strings.Contains(h.Chains[0].Error, "serves the blocks of chain house under the key home")
	})
}

func TestMerchants(t *testing.T) {
	store := dbtest.Open(t, dbtest.SQLite(t))
	keys := keyringtest.New(t)
	seal := func(version int64) ([]byte, string, error) {
		sealed := keys.Seal("owner", version, "whsec_owner")
		return sealed.Data, sealed.KeyID, nil
	}
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
		_, err := webhooks.PutEndpoint(t.Context(), tx, webhooks.EndpointRow{MerchantID: "owner", URL: "https://owner.example/", ChangedAt: invoice.Unix(1)}, seal)
		return err
	}))
	endpoints, err := webhooks.OpenDirectory(t.Context(), webhooks.DirectoryConfig{Store: store, Keyring: keys})
	expect.OK(t, err)
	shop := access.MerchantSettings{WebhookURL: "https://shop.example/", WebhookSecret: "whsec_shop"}
	configured := Merchants{Configured: map[string]access.MerchantSettings{"shop": shop, "later": {}}}
	dev := Merchants{AcceptAll: true, Fallback: webhooks.Endpoint{URL: "http://127.0.0.1:9000/", Secret: "whsec_all"}}
	quiet := Merchants{AcceptAll: true}
	for name, test := range map[string]struct {
		merchants Merchants
		id        string
		wants     bool
	}{
		"configured": {configured, "shop", true},
		// Its events wait until it sets an endpoint.
		"configured without a URL": {configured, "later", true},
		// Another replica may have its endpoint.
		"not configured here": {configured, "other", true},
		"any, in dev":         {dev, "other", true},
		"nowhere to send to":  {quiet, "other", false},
		"through the API":     {quiet, "owner", true},
	} {
		d := directory{test.merchants, endpoints, nil}
		if wants, err := d.WantsEvents(t.Context(), store, test.id); err != nil || wants != test.wants {
			t.Errorf("%s: wants events %v, %v", name, wants, err)
		}
	}
	// An endpoint counts from the transaction on that sets it.
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
		_, err := webhooks.PutEndpoint(t.Context(), tx, webhooks.EndpointRow{MerchantID: "new", URL: "https://new.example/", ChangedAt: invoice.Unix(1)}, seal)
		expect.OK(t, err)
		wants, err := directory{quiet, endpoints, nil}.WantsEvents(t.Context(), tx, "new")
		expect.Equal(t, wants, true, "a merchant that sets its endpoint wants events:")
		return err
	}))
}

// TestMerchantConfiguredTwice starts a service with a configuration that names a merchant of the
// database. The list of allowed addresses there would no longer be in force.
func TestMerchantConfiguredTwice(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	store := dbtest.Open(t, url)
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
		return access.InsertMerchant(t.Context(), tx, invoice.Merchant{ID: "shop", Name: "Shop", Allowed: []invoice.AllowedAddress{{ChainKey: "house", Address: invoice.Address{1}}}})
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := Run(ctx, Config{
		Listeners: listenOn(t, Address{}), Database: url, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"shop": {}}},
		Access: Access{Mode: access.Live}, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		Ready: func(string) { cancel() },
	})
	if err == nil || !strings.Contains(err.Error(), "the merchant shop is in the database and in the configuration") {
		t.Errorf("it ended with %v", err)
	}
}

// TestMerchantLeaves removes a merchant from the configuration. Its key and its payment link stop
// working, a warning lists what it leaves behind, and its id cannot be used by another company. All of
// it works again when the merchant is back.
func TestMerchantLeaves(t *testing.T) {
	t.Parallel()
	url, log := dbtest.Migrated(t), new(logtest.Buffer)
	chain, _ := scripted(t, "house", 5)
	config := func(shop ...invoice.AllowedAddress) Config {
		m := Merchants{Configured: map[string]access.MerchantSettings{"cafe": {}}}
		if shop != nil {
			m.Configured["shop"] = access.MerchantSettings{Merchant: invoice.Merchant{Allowed: shop}}
		}
		return Config{Database: url, Chains: []Chain{chain}, Merchants: m, Logger: slog.New(slog.NewTextHandler(log, nil))}
	}
	home := invoice.AllowedAddress{ChainKey: "house", Address: invoice.Address(bytes.Repeat([]byte{0x11}, 20))}
	r := startServer(t, config(home))
	if a := createFor(t, r.url, "shop", "house"); a.status != http.StatusCreated {
		t.Fatalf("a create: %d %s", a.status, a.body)
	}
	var made struct{ Secret string }
	unmarshal(t, ask(t, http.MethodPost, r.url+"/api/keys", `{"name":"shop","merchantId":"shop","scopes":["invoices:read"]}`).body, &made)
	var created struct{ Link struct{ Slug string } }
	unmarshal(t, ask(t, http.MethodPost, r.url+"/api/payment-links", `{"title":"Coffee","amount":"1000000","currency":"USDC","chainKey":"house",
		"merchantAddress":"0x1111111111111111111111111111111111111111","merchantId":"shop"}`).body, &created)
	check := func(what, base string, key, link int) {
		t.Helper()
		withKey := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+made.Secret) }
		if a := ask(t, http.MethodGet, base+"/api/invoices", "", withKey); a.status != key {
			t.Errorf("%s, the key gets %d %s, want %d", what, a.status, a.body, key)
		}
		if a := ask(t, http.MethodGet, base+"/pay/shop/"+created.Link.Slug, ""); a.status != link {
			t.Errorf("%s, the link gets %d, want %d", what, a.status, link)
		}
	}
	check("in the configuration", r.url, http.StatusOK, http.StatusOK)
	end := func(r *running) {
		t.Helper()
		r.stop()
		expect.OK(t, <-r.ended)
	}
	end(r)

	r = startServer(t, config())
	check("not in it", r.url, http.StatusUnauthorized, http.StatusNotFound)
	for _, want := range []string{"not in the configuration any more", "merchant=shop", "open_invoices=", "waiting_events=", "keys=1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	end(r)

	another := config(invoice.AllowedAddress{ChainKey: "house", Address: invoice.Address{2}})
	another.Access, another.Now, another.Rand, another.Listeners = Access{Mode: access.Test, Open: true}, time.Now, rand.Reader, listenOn(t, Address{})
	if err := Run(t.Context(), another); err == nil || !strings.Contains(err.Error(), "quittance merchant resume shop") {
		t.Errorf("another company: %v", err)
	}
	check("back", startServer(t, config(home)).url, http.StatusOK, http.StatusOK)
}

func unmarshal(t *testing.T, body string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), to); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}
