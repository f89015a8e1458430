package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

// keyed is the API with keys on a database.
type keyed struct {
	t      *testing.T
	server *httptest.Server
}

func newKeyed(t *testing.T, s *db.DB) keyed {
	t.Helper()
	base, _ := chain.Lookup("base")
	chains := []chain.Chain{base}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	authenticator := access.NewAuthenticator(access.AuthenticatorConfig{Store: access.NewTables(s), Mode: access.Test, Open: true, Now: time.Now, Logger: logger})
	a := api.New(api.Config{
		Ledger: ledger.New(ledger.Config{Store: s, Chains: chains, Merchants: merchants{}, Now: testClock, Rand: rand.Reader}),
		Reader: api.NewReader(s), Chains: chains, Now: testClock, Logger: logger,
		Keys: access.NewKeyManager(access.KeyManagerConfig{
			Store: s, Mode: access.Test, Known: func(id string) bool { return id != "nobody" }, Now: testClock, Rand: rand.Reader,
		}),
		SignInLinks:   access.NewSessions(access.SessionConfig{Store: s, Authenticator: authenticator, Now: testClock, Rand: rand.Reader}),
		Authenticator: authenticator,
	})
	mux := http.NewServeMux()
	for _, r := range a.Routes() {
		if r.Scope != "" {
			mux.Handle(r.Pattern, a.WithPrincipal(a.WithScope(r, r.Handler)))
		}
	}
	k := keyed{t, httptest.NewServer(apitest.Check(t, mux))}
	t.Cleanup(k.server.Close)
	return k
}

// client returns a client with a key, or without one.
func (k keyed) client(key string) *client.Client {
	k.t.Helper()
	options := []client.Option{client.WithHTTPClient(k.server.Client()), client.WithRetries(0)}
	if key != "" {
		options = append(options, client.WithKey(key))
	}
	c := expect.Must(client.New(k.server.URL, options...))
	return c
}

// create creates a key, and returns it with a client that has it.
func (k keyed) create(by *client.Client, merchantID string, scopes ...string) (apitypes.Key, *client.Client) {
	k.t.Helper()
	made, secret, err := by.CreateKey(k.t.Context(), apitypes.CreateKeyRequest{Name: "shop", MerchantID: merchantID, Scopes: scopes})
	expect.OK(k.t, err)
	return made, k.client(secret)
}

func wantCode(t *testing.T, what string, err error, status int, code apitypes.ErrorCode) {
	t.Helper()
	if problem := (*client.Error)(nil); !errors.As(err, &problem) || problem.Status != status || problem.Code != code {
		t.Errorf("%s: %v; want %d %s", what, err, status, code)
	}
}

// TestKeysOfTheAPI creates, lists, rotates and revokes keys with a client.
func TestKeysOfTheAPI(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		k, ctx := newKeyed(t, s), t.Context()
		operator := k.client("")
		admin, acme := k.create(operator, "acme", "admin")
		reader, limited := k.create(acme, "", "read", "keys:write")
		if admin.MerchantID != "acme" || reader.MerchantID != "acme" || strings.Join(reader.Scopes, " ") != "invoices:read payments:read events:read keys:write" || reader.State != "active" {
			t.Errorf("made %+v and %+v", admin, reader)
		}
		k.create(operator, "globex", "read")
		var ids []string
		for key, err := range acme.Keys(ctx, "") {
			expect.OK(t, err)
			ids = append(ids, key.ID)
		}
		if want := reader.ID + " " + admin.ID; strings.Join(ids, " ") != want {
			t.Errorf("acme lists %q, want %q", ids, want)
		}
		_, _, err := limited.CreateKey(ctx, apitypes.CreateKeyRequest{Name: "more", Scopes: []string{"standard"}})
		wantCode(t, "a key with more scopes", err, http.StatusForbidden, apitypes.CodeForbidden)
		_, _, err = limited.RotateKey(ctx, admin.ID, 0)
		wantCode(t, "the rotation of a key with more scopes", err, http.StatusForbidden, apitypes.CodeForbidden)
		wantCode(t, "the revocation of a key with more scopes", limited.RevokeKey(ctx, admin.ID), http.StatusForbidden, apitypes.CodeForbidden)
		own, weak := k.create(acme, "", "read")
		wantCode(t, "the revocation of another key", weak.RevokeKey(ctx, reader.ID), http.StatusForbidden, apitypes.CodeForbidden)
		if err := weak.RevokeKey(ctx, own.ID); err != nil {
			t.Errorf("a key does not revoke itself: %v", err)
		}
		_, _, err = acme.CreateKey(ctx, apitypes.CreateKeyRequest{Name: "other", MerchantID: "globex", Scopes: []string{"read"}})
		wantCode(t, "another merchant's key", err, http.StatusForbidden, apitypes.CodeForbidden)
		for field, r := range map[string]apitypes.CreateKeyRequest{
			"name": {Scopes: []string{"read"}}, "scopes": {Name: "x", Scopes: []string{"write"}},
			"merchantId": {Name: "x", MerchantID: "nobody", Scopes: []string{"read"}}, "expiresAt": {Name: "x", Scopes: []string{"read"}, ExpiresAt: 1},
		} {
			_, _, err := operator.CreateKey(ctx, r)
			wantCode(t, "a wrong "+field, err, http.StatusBadRequest, apitypes.CodeInvalidField)
		}
		_, _, err = acme.RotateKey(ctx, reader.ID, 31*24*time.Hour)
		wantCode(t, "a long overlap", err, http.StatusBadRequest, apitypes.CodeInvalidField)
		next, secret, err := acme.RotateKey(ctx, reader.ID, time.Hour)
		if err != nil || next.ID == reader.ID || !strings.HasPrefix(secret, next.Hint) {
			t.Fatalf("rotated to %+v, %v", next, err)
		}
		_, _, err = acme.RotateKey(ctx, reader.ID, time.Hour)
		wantCode(t, "a second rotation", err, http.StatusConflict, apitypes.CodeKeyNotActive)
		for range 2 {
			expect.NoError(t, acme.RevokeKey(ctx, next.ID))
		}
		wantCode(t, "an unknown key", acme.RevokeKey(ctx, "key_unknown"), http.StatusNotFound, apitypes.CodeNotFound)
	})
}

// TestMerchantIsFilledIn creates invoices without merchantId, and uses one idempotency key for two merchants.
func TestMerchantIsFilledIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		k, ctx := newKeyed(t, s), t.Context()
		operator := k.client("")
		_, acme := k.create(operator, "acme", "standard")
		_, globex := k.create(operator, "globex", "standard")
		unnamed := asked
		unnamed.MerchantID = ""
		_, err := operator.CreateInvoice(ctx, unnamed)
		wantCode(t, "the operator names no merchant", err, http.StatusBadRequest, apitypes.CodeInvalidField)
		ids := make(map[string]string)
		for merchant, c := range map[string]*client.Client{"acme": acme, "globex": globex} {
			unnamed.MerchantAddress = fmt.Sprintf("0x%040x", len(merchant))
			for range 2 {
				made, err := c.CreateInvoice(ctx, unnamed, client.IdempotencyKey("order-1"))
				if err != nil || made.Invoice.MerchantID != merchant || ids[merchant] != "" && ids[merchant] != made.ID {
					t.Fatalf("%s: %+v, %v", merchant, made, err)
				}
				ids[merchant] = made.ID
			}
		}
		other := asked
		other.MerchantID = "globex"
		_, err = acme.CreateInvoice(ctx, other)
		wantCode(t, "another merchant's invoice", err, http.StatusForbidden, apitypes.CodeForbidden)
		for inv, err := range acme.Invoices(ctx, client.InvoiceFilter{}) {
			if err != nil || inv.MerchantID != "acme" {
				t.Errorf("acme lists %+v, %v", inv, err)
			}
		}
		_, err = acme.Invoice(ctx, ids["globex"])
		wantCode(t, "another merchant's invoice", err, http.StatusNotFound, apitypes.CodeNotFound)
	})
}

// TestAddressOfAnotherMerchant checks that a merchant's key cannot name another merchant's address,
// until the operator shares it.
func TestAddressOfAnotherMerchant(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		k, ctx := newKeyed(t, s), t.Context()
		operator := k.client("")
		_, acme := k.create(operator, "acme", "standard")
		_, globex := k.create(operator, "globex", "admin")
		mine, theirs := asked, asked
		theirs.MerchantID = "globex"
		expect.Success(t)(acme.CreateInvoice(ctx, mine))
		for range 2 {
			_, err := globex.CreateInvoice(ctx, theirs, client.IdempotencyKey("1"))
			wantProblemCode(t, err, apitypes.CodeInvalidField, "merchantAddress")
			if err == nil || strings.Contains(err.Error(), "acme") {
				t.Errorf("the problem names the merchant: %v", err)
			}
		}
		for _, c := range []struct {
			by *client.Client
			of apitypes.CreateInvoiceRequest
		}{{operator, mine}, {operator, theirs}, {globex, theirs}, {acme, mine}} {
			if _, err := c.by.CreateInvoice(ctx, c.of); err != nil {
				t.Errorf("shared: %s: %v", c.of.MerchantID, err)
			}
		}
	})
}

// TestKeysAreNotLogged sends a key in places where it does not belong.
func TestKeysAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	h := newLoggedAPI(t, &backend{err: errors.New("no row for qk_live_0123456789")}, &log)
	do(h, "GET", "/api/invoices/inv_qk_live_abcdefgh", "")
	if text := log.String(); strings.Contains(text, "qk_live_") || !strings.Contains(text, "inv_qk_REDACTED") || !strings.Contains(text, "no row for qk_REDACTED") {
		t.Errorf("logged %s", text)
	}
}

// TestSignInLinks makes links for the caller and for others.
func TestSignInLinks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		k := newKeyed(t, s)
		operator := k.client("")
		ownerKey, owner := k.create(operator, "acme", "owner")
		supportKey, support := k.create(operator, "acme", "support")
		strangerKey, _ := k.create(operator, "globex", "owner")
		gone, _ := k.create(operator, "acme", "read")
		expect.OK(t, operator.RevokeKey(t.Context(), gone.ID))
		for _, of := range []string{"", supportKey.ID} {
			link, expiresAt, err := support.CreateSignInLink(t.Context(), of)
			if err != nil || !strings.HasPrefix(link, k.server.URL+"/dashboard/sign-in?link=ql_") || expiresAt.Sub(testClock()).Abs() > 11*time.Minute {
				t.Errorf("of %q: %q until %v, %v", of, link, expiresAt, err)
			}
		}
		if _, _, err := owner.CreateSignInLink(t.Context(), supportKey.ID); err != nil {
			t.Errorf("by the owner: %v", err)
		}
		_, _, err := support.CreateSignInLink(t.Context(), ownerKey.ID)
		wantCode(t, "by support for the owner", err, http.StatusForbidden, apitypes.CodeForbidden)
		for what, of := range map[string]string{"of another merchant": strangerKey.ID, "unknown": "key_06gzm3qz9dvav7zw89t2fgt6g8", "no id": "\x00"} {
			_, _, err := owner.CreateSignInLink(t.Context(), of)
			wantCode(t, what, err, http.StatusNotFound, apitypes.CodeNotFound)
		}
		_, _, err = owner.CreateSignInLink(t.Context(), gone.ID)
		wantCode(t, "revoked", err, http.StatusConflict, apitypes.CodeKeyNotActive)
	})
}

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
		text := expect.Must(json.Marshal(apitypes.UpdateMerchantRequest{AllowedAddresses: all}))
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

func (b *backend) MerchantStorage(ctx context.Context, merchantID string) (access.Storage, error) {
	return access.Storage{MerchantID: merchantID, AuditBytes: 7, AuditQuota: 1 << 30, Invoices: 3, InvoiceQuota: 5}, b.fail(ctx)
}

func (b *backend) Requests(ctx context.Context, f access.RequestFilter) ([]access.LoggedRequest, error) {
	return newest(b.logged, f.Limit, func(e access.LoggedRequest) bool {
		return (f.MerchantID == "" || f.MerchantID == e.MerchantID) && (f.KeyID == "" || f.KeyID == e.KeyID) &&
			(f.Status != access.Failed || e.Status >= 400) && (f.Before == "" || e.ID < f.Before)
	}), b.fail(ctx)
}

// TestListRequests lists requests by their filters and page by page.
func TestListRequests(t *testing.T) {
	b := new(backend)
	for i := range 6 {
		b.logged = append(b.logged, access.LoggedRequest{
			ID: "log_" + number(i), At: time.Unix(now+int64(i), 5e8), MerchantID: []string{"acme", "bean", ""}[i%3], KeyID: []string{"key_a", "key_b"}[i%2], Method: "POST",
			Route: "/api/invoices", Path: "/api/invoices", Status: []int{201, 400}[i%2], Duration: 1500 * time.Microsecond, Client: "192.0.2.1", RequestID: "req_1",
		})
	}
	given := false
	b.logged[5].Code, b.logged[5].Detail, b.logged[5].Idempotent = "invalid_field", "amount <b>.", &given
	h := newAPI(t, b)
	list := func(query string) (page apitypes.RequestList) {
		t.Helper()
		answer := do(h, "GET", "/api/requests"+query, "")
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != 200 {
			t.Fatalf("%s: %d %s", query, answer.Code, answer.Body)
		}
		return page
	}
	for query, want := range map[string][]int{
		"": {5, 4, 3, 2, 1, 0}, "?merchantId=acme": {3, 0}, "?keyId=key_b": {5, 3, 1}, "?status=failed&merchantId=bean": {1}, "?merchantId=a%20b": {}, "?keyId=nobody": {},
	} {
		got := []int{}
		for _, r := range list(query).Requests {
			got = append(got, int(r.At-now))
		}
		expect.NoDiff(t, cmp.Diff(want, got), "%s", query)
	}
	first := list("?limit=2")
	want := apitypes.LoggedRequest{
		ID: b.logged[5].ID, At: now + 5, KeyID: "key_b", Method: "POST", Route: "/api/invoices", Path: "/api/invoices", Status: 400, Code: "invalid_field",
		Detail: "amount <b>.", DurationMs: 1, Client: "192.0.2.1", RequestID: "req_1", IdempotencyKey: &given,
	}
	if diff := cmp.Diff(want, first.Requests[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if next := list("?limit=2&cursor=" + first.NextCursor); len(next.Requests) != 2 || next.Requests[0].ID != b.logged[3].ID {
		t.Errorf("the second page is %+v", next)
	}
	for query, field := range map[string]string{"keyId=": "keyId", "keyId=%00": "keyId", "limit=0": "limit", "cursor=x": "cursor"} {
		wantProblem(t, do(h, "GET", "/api/requests?"+query, ""), 400, "invalid_field", field)
	}
	wantProblem(t, do(h, "GET", fmt.Sprintf("/api/requests?status=%d", 400), ""), 400, "invalid_status", "")
}

func (b *backend) AuditEntries(ctx context.Context, f access.AuditFilter) ([]access.Entry, error) {
	return newest(b.audit, f.Limit, func(e access.Entry) bool {
		return (f.MerchantID == "" || f.MerchantID == e.MerchantID) && (f.Action == "" || f.Action == e.Action) &&
			!e.At.Before(f.Since) && (f.Before == 0 || e.Seq < f.Before)
	}), b.fail(ctx)
}

// newAuditBackend returns a backend with n entries of two merchants and the operator.
func newAuditBackend(n int) *backend {
	b := new(backend)
	var head access.Head
	for i := range n {
		e := access.Entry{
			At: time.Unix(now+int64(i), 0), Origin: access.Origin{Actor: "key_1", Client: "192.0.2.1", RequestID: "req_1"},
			MerchantID: []string{"acme", "bean", ""}[i%3], Action: []access.Action{access.ActionEndpointUpdate, access.ActionKeyCreate}[i%2],
			Object: fmt.Sprint("object", i), After: `{"text":"\u003cb\u003e"}`,
		}.Following(head)
		head = access.Head{Seq: e.Seq, Hash: e.Hash}
		b.audit = append(b.audit, e)
	}
	return b
}

func TestListAudit(t *testing.T) {
	b := newAuditBackend(7)
	h := newAPI(t, b)
	for query, want := range map[string][]int64{
		"":                           {7, 6, 5, 4, 3, 2, 1},
		"?merchantId=acme":           {7, 4, 1},
		"?merchantId=nobody":         {},
		"?merchantId=a%20b":          {},
		"?action=key.create":         {6, 4, 2},
		"?action=%C3%A9":             {},
		fmt.Sprint("?since=", now+4): {7, 6, 5},
		fmt.Sprint("?since=", now+1, "&merchantId=bean&action=key.create"): {2},
	} {
		var got []int64
		for cursor := ""; ; {
			separator := "?"
			if query != "" {
				separator = "&"
			}
			answer := do(h, "GET", "/api/audit"+query+separator+"limit=2&cursor="+url.QueryEscape(cursor), "")
			if cursor == "" {
				answer = do(h, "GET", "/api/audit"+query+separator+"limit=2", "")
			}
			var page apitypes.AuditList
			if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != 200 {
				t.Fatalf("%s: %d %s", query, answer.Code, answer.Body)
			}
			for _, e := range page.Entries {
				got = append(got, e.Seq)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		expect.NoDiff(t, cmp.Diff(want, append([]int64{}, got...)), "%s", query)
	}
	var page apitypes.AuditList
	expect.OK(t, json.Unmarshal(do(h, "GET", "/api/audit?limit=1", "").Body.Bytes(), &page))
	e := b.audit[6]
	want := apitypes.AuditEntry{
		Seq: 7, At: now + 6, Actor: "key_1", Client: "192.0.2.1", RequestID: "req_1", MerchantID: "acme", Action: "endpoint.update",
		Object: "object6", After: e.After, PrevHash: b.audit[5].Hash.String(), Hash: e.Hash.String(),
	}
	if diff := cmp.Diff(want, page.Entries[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for query, field := range map[string]string{
		"since=-1": "since", "since=01": "since", "since=x": "since", "since=1&since=2": "since", "since=9223372036854775808": "since",
		"action=a&action=b": "action", "limit=0": "limit", "cursor=x": "cursor",
	} {
		wantProblem(t, do(h, "GET", "/api/audit?"+query, ""), 400, "invalid_field", field)
	}
}
