package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

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
		d := directory{test.merchants, endpoints, nil, false}
		if d.WantsEvents(test.id) != test.wants {
			t.Errorf("%s: wants events %v", name, d.WantsEvents(test.id))
		}
	}
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
