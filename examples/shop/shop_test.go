package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraShop buys a cake.
func TestExtraShop(t *testing.T) {
	t.Parallel()
	world := devtest.Start(t)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	merchant := world.Merchant(t, "shop", server.URL+"/webhooks")
	quittance := expect.Must(client.New(world.Info.BaseURL, client.WithKey(merchant.Key)))
	mux.Handle("/", newShop(quittance, merchant.Secret, world.Info.Chain.ChainKey))

	devtest.Buy(t, world, server.URL)
}
