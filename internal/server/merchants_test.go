package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

func TestMerchants(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	seal := func(int64) ([]byte, string, error) { return []byte("x"), "key", nil }
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.PutEndpoint(t.Context(), store.EndpointRow{MerchantID: "owner", URL: "https://owner.example/", ChangedAt: invoice.Unix(1)}, seal)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	endpoints, err := endpoint.Open(t.Context(), endpoint.Config{Store: unsealedStore{db}})
	if err != nil {
		t.Fatal(err)
	}
	shop := poster.Endpoint{URL: "https://shop.example/", Secret: "whsec_shop"}
	configured := Merchants{Endpoints: map[string]poster.Endpoint{"shop": shop, "later": {}}}
	dev := Merchants{AcceptAll: true, Fallback: poster.Endpoint{URL: "http://127.0.0.1:9000/", Secret: "whsec_all"}}
	quiet := Merchants{AcceptAll: true}
	for name, test := range map[string]struct {
		merchants    Merchants
		id           string
		known, wants bool
	}{
		"configured": {configured, "shop", true, true},
		// Its events wait until it sets an endpoint.
		"configured without a URL": {configured, "later", true, true},
		// Another replica may have its endpoint.
		"not configured here": {configured, "other", false, true},
		"any, in dev":         {dev, "other", true, true},
		"nowhere to send to":  {quiet, "other", true, false},
		"through the API":     {quiet, "owner", true, true},
	} {
		d := directory{test.merchants, endpoints, nil}
		if d.Known(test.id) != test.known || d.WantsEvents(test.id) != test.wants {
			t.Errorf("%s: known %v, wants events %v", name, d.Known(test.id), d.WantsEvents(test.id))
		}
	}
}

// unsealedStore is a store without sealed secrets.
type unsealedStore struct{ endpoint.Store }

func (unsealedStore) MasterKeyIDs(context.Context) ([]string, error) { return nil, nil }

// TestMerchantConfiguredTwice starts a service whose configuration names a merchant of the
// database. The list of allowed addresses there would no longer be in force.
func TestMerchantConfiguredTwice(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	db := storetest.Open(t, url)
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		return tx.InsertMerchant(t.Context(), invoice.Merchant{ID: "shop", Name: "Shop", Allowed: []invoice.AllowedAddress{{ChainKey: "house", Address: invoice.Address{1}}}})
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := Run(ctx, Config{
		Listeners: listenOn(t, Address{}), Database: url, Merchants: Merchants{Endpoints: map[string]poster.Endpoint{"shop": {}}},
		Access: Access{Mode: access.Live}, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		Ready: func(string) { cancel() },
	})
	if err == nil || !strings.Contains(err.Error(), "the merchant shop is in the database and in the configuration") {
		t.Errorf("it ended with %v", err)
	}
}

func TestConfiguredProfiles(t *testing.T) {
	half := invoice.Tolerance{BasisPoints: 50}
	d := Merchants{Endpoints: map[string]poster.Endpoint{"shop": {}, "cafe": {}}, Tolerances: map[string]invoice.Tolerance{"shop": half},
		Allowed: map[string][]invoice.AllowedAddress{"shop": {{ChainKey: "base", Address: invoice.Address{1}}}}}
	got := d.profiles()
	if shop := got["shop"]; shop.Tolerance != half || !shop.Configured || shop.ID != "shop" || !shop.Allows("base", invoice.Address{1}) || shop.Allows("base", invoice.Address{2}) {
		t.Errorf("the shop is %+v", shop)
	}
	if cafe := got["cafe"]; cafe.Tolerance != (invoice.Tolerance{}) || len(got) != 2 {
		t.Errorf("the cafe is %+v, of %d merchants", cafe, len(got))
	}
}
