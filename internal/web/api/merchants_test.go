package api_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/api/apitest"
)

// newMerchantAPI returns the API with merchants in a database, and a function that sends
// requests on behalf of a principal.
func newMerchantAPI(t *testing.T) func(by access.Principal, method, path, body string, header ...string) (int, string) {
	t.Helper()
	store := dbtest.Open(t, dbtest.SQLite(t))
	manager := access.NewMerchants(access.MerchantConfig{
		Store: store, Configured: map[string]access.MerchantSettings{"shop": {Merchant: invoice.Merchant{Tolerance: invoice.Tolerance{BasisPoints: 50}}}},
		Chains: []string{"base"}, Delay: 24 * time.Hour, Now: testClock,
	})
	rest := api.New(api.Config{Reader: api.NewReader(store), Merchants: manager, Now: testClock, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}).Handler()
	return func(by access.Principal, method, path, body string, header ...string) (int, string) {
		t.Helper()
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rest.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), by)))
		})
		answer := do(apitest.Check(t, h), method, path, body, header...)
		return answer.Code, answer.Body.String()
	}
}

func TestMerchants(t *testing.T) {
	send := newMerchantAPI(t)
	operator := access.Open()
	acme := access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Admin}
	const (
		home = "0x0100000000000000000000000000000000000000"
		bank = "0x0200000000000000000000000000000000000000"
	)
	list := func(addresses ...string) string {
		var all []apitypes.AllowedAddress
		for _, a := range addresses {
			all = append(all, apitypes.AllowedAddress{ChainKey: "base", Address: a})
		}
		text, err := json.Marshal(apitypes.UpdateMerchantRequest{AllowedAddresses: all})
		expect.OK(t, err)
		return string(text)
	}
	for _, c := range []struct {
		what         string
		by           access.Principal
		method, path string
		body         string
		status       int
		want         string // in the response
	}{
		{"create", operator, "POST", "/api/merchants", `{"id":"acme","name":"Acme","tolerance":"0.5%","defaultAddresses":{"base":"` + home + `"}}`, 201,
			`"id":"acme","source":"database","name":"Acme","tolerance":"0.5%","defaultAddresses":{"base":"` + home + `"},"allowedAddresses":[]`},
		{"fetch what it has stored", acme, "GET", "/api/merchants/acme", "", 200, `"storage":{"auditBytes":0,"auditQuota":1073741824,"invoices":0,"invoiceQuota":10000000}`},
		{"create twice", operator, "POST", "/api/merchants", `{"id":"acme","name":"Acme"}`, 409, "merchant_exists"},
		{"create a configured one", operator, "POST", "/api/merchants", `{"id":"shop","name":"Shop"}`, 409, "configured_merchant"},
		{"create by a merchant", acme, "POST", "/api/merchants", `{"id":"beta","name":"Beta"}`, 403, "forbidden"},
		{"create without a name", operator, "POST", "/api/merchants", `{"id":"beta"}`, 400, `"field":"name"`},
		{"create without an id", operator, "POST", "/api/merchants", `{"name":"Beta"}`, 400, `"field":"id"`},
		{"a bad id", operator, "POST", "/api/merchants", `{"id":"a b","name":"Beta"}`, 400, `"field":"id"`},
		{"list", operator, "GET", "/api/merchants", "", 200, `{"id":"shop","source":"config","tolerance":"0.5%"`},
		{"list its own", acme, "GET", "/api/merchants", "", 200, `{"merchants":[{"id":"acme"`},
		{"read its own", acme, "GET", "/api/merchants/acme", "", 200, `"name":"Acme"`},
		{"read another's", acme, "GET", "/api/merchants/shop", "", 404, "not_found"},
		{"read none", operator, "GET", "/api/merchants/zeta", "", 404, "not_found"},
		{"first list", acme, "PATCH", "/api/merchants/acme", list(home), 200, `"allowedAddresses":[{"chainKey":"base","address":"` + home + `"}]`},
		{"next list", acme, "PATCH", "/api/merchants/acme", list(home, bank), 200, `"effectiveAt":1764086400`},
		{"without the default", acme, "PATCH", "/api/merchants/acme", list(bank), 400, `"field":"allowedAddresses"`},
		{"empty", acme, "PATCH", "/api/merchants/acme", `{"allowedAddresses":[]}`, 400, `"field":"allowedAddresses"`},
		{"null", acme, "PATCH", "/api/merchants/acme", `{"allowedAddresses":null}`, 400, `"field":"allowedAddresses"`},
		{"at once", acme, "PATCH", "/api/merchants/acme", `{"allowedAddresses":[{"chainKey":"base","address":"` + home + `"}],"immediately":true}`, 403, "forbidden"},
		{"its rules", acme, "PATCH", "/api/merchants/acme", `{"tolerance":"1%"}`, 403, "forbidden"},
		{"its name", acme, "PATCH", "/api/merchants/acme", `{"name":"Bank"}`, 200, `"name":"Bank"`},
		{"the name", operator, "PATCH", "/api/merchants/acme", `{"name":"Acme Ltd","color":"#AABBCC"}`, 200, `"name":"Acme Ltd","color":"#aabbcc"`},
		{"a bad address", operator, "PATCH", "/api/merchants/acme", `{"defaultAddresses":{"base":"0x1"}}`, 400, `"field":"defaultAddresses.base"`},
		{"no default addresses, by a merchant", acme, "PATCH", "/api/merchants/acme", `{"defaultAddresses":{}}`, 200, `"pendingDefaultAddresses":{"addresses":{},"effectiveAt":1764086400}`},
		{"no default addresses", operator, "PATCH", "/api/merchants/acme", `{"defaultAddresses":{}}`, 200, `"defaultAddresses":{},"allowedAddresses"`},
		{"another chain", operator, "PATCH", "/api/merchants/acme", `{"allowedAddresses":[{"chainKey":"moon","address":"` + home + `"}]}`, 400, `"field":"allowedAddresses[0].chainKey"`},
		{"a configured one", operator, "PATCH", "/api/merchants/shop", `{"name":"Shop"}`, 409, "configured_merchant"},
		{"another's", acme, "PATCH", "/api/merchants/shop", list(home), 404, "not_found"},
	} {
		status, body := send(c.by, c.method, c.path, c.body, "Content-Type", "application/json")
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.what, status, body, c.status, c.want)
		}
	}
}

func TestMerchantLogo(t *testing.T) {
	send := newMerchantAPI(t)
	operator := access.Open()
	send(operator, "POST", "/api/merchants", `{"id":"acme","name":"Acme"}`)
	var logo bytes.Buffer
	expect.OK(t, png.Encode(&logo, image.NewGray(image.Rect(0, 0, 30, 20))))
	for _, c := range []struct {
		what         string
		method, path string
		body         string
		status       int
		want         string
	}{
		{"set", "PUT", "/api/merchants/acme/logo", logo.String(), 200, `"width":30,"height":20`},
		{"read", "GET", "/api/merchants/acme/logo", "", 200, "\x89PNG"},
		{"svg", "PUT", "/api/merchants/acme/logo", "<svg/>", 400, `"field":"logo"`},
		{"too large", "PUT", "/api/merchants/acme/logo", strings.Repeat("x", access.MaxLogoBytes+1), 413, "body_too_large"},
		{"of none", "PUT", "/api/merchants/zeta/logo", logo.String(), 404, "not_found"},
		{"of a configured one", "PUT", "/api/merchants/shop/logo", logo.String(), 409, "configured_merchant"},
		{"drop", "DELETE", "/api/merchants/acme/logo", "", 204, ""},
		{"drop again", "DELETE", "/api/merchants/acme/logo", "", 204, ""},
		{"read none", "GET", "/api/merchants/acme/logo", "", 404, "not_found"},
	} {
		status, body := send(operator, c.method, c.path, c.body, "Content-Type", "image/png")
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.what, status, body, c.status, c.want)
		}
	}
}
