package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/api/apitest"
)

// silentMerchants are merchants without endpoints.
type silentMerchants struct{ *access.MerchantManager }

func (silentMerchants) WantsEvents(string) bool { return false }

// newLinkAPI returns the API with payment links in a database, and a function that sends
// requests on behalf of a principal. The merchant acme is known.
func newLinkAPI(t *testing.T) func(by access.Principal, method, path, body string, header ...string) (int, string) {
	t.Helper()
	store := dbtest.Open(t, dbtest.SQLite(t))
	base, _ := chain.Lookup("base")
	manager := access.NewMerchants(access.MerchantConfig{Store: store, Chains: []string{"base"}, Now: testClock})
	name := "Acme"
	expect.Success(t)(manager.Create(t.Context(), access.Open(), "acme", invoice.MerchantChange{Name: &name}))
	service := ledger.New(ledger.Config{Store: store, Chains: []chain.Chain{base}, Merchants: silentMerchants{manager}, Now: testClock})
	links := ledger.NewPaymentLinks(ledger.PaymentLinkConfig{Store: store, Ledger: service, Holders: manager, Now: testClock})
	rest := api.New(api.Config{
		Reader: api.NewReader(store), Links: links, PublicURL: "https://pay.example", Now: testClock, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}).Handler()
	return func(by access.Principal, method, path, body string, header ...string) (int, string) {
		t.Helper()
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rest.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), by)))
		})
		answer := do(apitest.Check(t, h), method, path, body, header...)
		return answer.Code, answer.Body.String()
	}
}

func TestPaymentLinks(t *testing.T) {
	send := newLinkAPI(t)
	operator := access.Open()
	acme := access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Standard}
	globex := access.Principal{KeyID: "key_2", MerchantID: "globex", Scopes: access.Standard}
	const espresso = `{"slug":"espresso","title":"An espresso","amount":"4900000","currency":"USDC","chainKey":"base","merchantAddress":"0x0100000000000000000000000000000000000000"}`
	status, body := send(acme, "POST", "/api/payment-links", espresso, "Idempotency-Key", "k")
	if want := `"merchantId":"acme","slug":"espresso","url":"https://pay.example/pay/acme/espresso","title":"An espresso","amount":"4900000","currency":"USDC",` +
		`"chainKey":"base","merchantAddress":"0x0100000000000000000000000000000000000000","expiresIn":3600,"archived":false,`; status != http.StatusCreated || !strings.Contains(body, want) {
		t.Fatalf("%d %s, want %s", status, body, want)
	}
	var made apitypes.PaymentLinkResponse
	expect.OK(t, json.Unmarshal([]byte(body), &made))
	path := "/api/payment-links/" + made.Link.ID
	change := func(from, to string) string { return strings.Replace(espresso, from, to, 1) }
	for _, c := range []struct {
		what         string
		by           access.Principal
		method, path string
		body         string
		key          string
		status       int
		want         string // in the response
	}{
		{"again with the key", acme, "POST", "/api/payment-links", espresso, "k", 201, made.Link.ID},
		{"another with the key", acme, "POST", "/api/payment-links", change("An", "Another"), "k", 422, "idempotency_mismatch"},
		{"the slug again", acme, "POST", "/api/payment-links", espresso, "", 409, "slug_taken"},
		{"by the operator without a merchant", operator, "POST", "/api/payment-links", espresso, "", 400, `"field":"merchantId"`},
		{"for another merchant", globex, "POST", "/api/payment-links", change("{", `{"merchantId":"acme",`), "", 403, "forbidden"},
		{"without a title", acme, "POST", "/api/payment-links", change(`"title":"An espresso",`, ""), "", 400, `"field":"title"`},
		{"without a chain", acme, "POST", "/api/payment-links", change(`"chainKey":"base",`, ""), "", 400, `"field":"chainKey"`},
		{"without a currency", acme, "POST", "/api/payment-links", change(`"currency":"USDC",`, ""), "", 400, `"field":"currency"`},
		{"a bad slug", acme, "POST", "/api/payment-links", change(`"espresso"`, `"An espresso"`), "", 400, `"field":"slug"`},
		{"amount 0", acme, "POST", "/api/payment-links", change("4900000", "0"), "", 400, `"field":"amount"`},
		{"amount null", acme, "POST", "/api/payment-links", change(`"4900000"`, "null"), "", 400, `"field":"amount"`},
		{"a decimal amount", acme, "POST", "/api/payment-links", change("4900000", "4.90"), "", 400, `"field":"amount"`},
		{"a zero address", acme, "POST", "/api/payment-links", change("0x01", "0x00"), "", 400, `"field":"merchantAddress"`},
		{"a lifetime as text", acme, "POST", "/api/payment-links", change("{", `{"expiresIn":"60",`), "", 400, `"field":"expiresIn"`},
		{"a short lifetime", acme, "POST", "/api/payment-links", change("{", `{"expiresIn":59,`), "", 400, `"field":"expiresIn"`},
		{"a fraction", acme, "POST", "/api/payment-links", change("{", `{"expiresIn":60.5,`), "", 400, `"field":"expiresIn"`},
		{"a list", acme, "GET", "/api/payment-links?slug=espresso&archived=false&limit=1", "", "", 200, made.Link.ID},
		{"a list of archived ones", acme, "GET", "/api/payment-links?archived=true", "", "", 200, `{"links":[]}`},
		{"a list of another", globex, "GET", "/api/payment-links", "", "", 200, `{"links":[]}`},
		{"archived is no text", acme, "GET", "/api/payment-links?archived=1", "", "", 400, `"field":"archived"`},
		{"a bad slug in the list", acme, "GET", "/api/payment-links?slug=%00", "", "", 400, `"field":"slug"`},
		{"read", acme, "GET", path, "", "", 200, made.Link.ID},
		{"read by another", globex, "GET", path, "", "", 404, "not_found"},
		{"change", acme, "PATCH", path, `{"title":"A cup","amount":null,"minAmount":"1000000","description":"Hot"}`, "", 200, `"title":"A cup","description":"Hot","minAmount":"1000000"`},
		{"remove", acme, "PATCH", path, `{"description":null}`, "", 200, `"title":"A cup","minAmount"`},
		{"an empty description", acme, "PATCH", path, `{"description":""}`, "", 400, `"field":"description"`},
		{"the title removed", acme, "PATCH", path, `{"title":null}`, "", 400, `"field":"title"`},
		{"the same slug", acme, "PATCH", path, `{"slug":"espresso","archived":false}`, "", 200, `"archived":false`},
		{"another slug", acme, "PATCH", path, `{"slug":"tea"}`, "", 400, `"field":"slug"`},
		{"change by another", globex, "PATCH", path, `{"title":"Mine"}`, "", 404, "not_found"},
		{"archive", acme, "PATCH", path, `{"archived":true}`, "", 200, `"archived":true`},
		{"archive again", acme, "PATCH", path, `{"archived":true}`, "", 200, `"archived":true`},
		{"take it back", acme, "PATCH", path, `{"archived":false}`, "", 400, `"field":"archived"`},
		{"change an archived one", acme, "PATCH", path, `{"title":"Tea"}`, "", 409, "link_archived"},
	} {
		header := []string{"Content-Type", "application/json"}
		if c.key != "" {
			header = append(header, "Idempotency-Key", c.key)
		}
		status, body := send(c.by, c.method, c.path, c.body, header...)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.what, status, body, c.status, c.want)
		}
	}
}
