package server_test

import (
	"testing"

	"github.com/quittance/quittance/internal/deliver"
	"github.com/quittance/quittance/internal/server"
)

func TestMerchants(t *testing.T) {
	shop := deliver.Endpoint{URL: "https://shop.example/", Secret: "whsec_shop"}
	all := deliver.Endpoint{URL: "http://127.0.0.1:9000/", Secret: "whsec_all"}
	configured := server.Merchants{Endpoints: map[string]deliver.Endpoint{"shop": shop}}
	dev := server.Merchants{AcceptAll: true, Fallback: all}
	quiet := server.Merchants{AcceptAll: true}
	for name, test := range map[string]struct {
		directory    server.Merchants
		id           string
		known, wants bool
		endpoint     deliver.Endpoint
	}{
		"configured": {configured, "shop", true, true, shop},
		// Its events are kept for a replica, or a restart, that knows it.
		"not configured here": {configured, "other", false, true, deliver.Endpoint{}},
		"any, in dev":         {dev, "other", true, true, all},
		"nowhere to send to":  {quiet, "other", true, false, deliver.Endpoint{}},
	} {
		d := test.directory
		endpoint, ok := d.Endpoint(test.id)
		if d.Known(test.id) != test.known || d.WantsEvents(test.id) != test.wants || endpoint != test.endpoint || ok != (endpoint.URL != "") {
			t.Errorf("%s: known %v, wants events %v, endpoint %+v, %v", name, d.Known(test.id), d.WantsEvents(test.id), endpoint, ok)
		}
	}
}
