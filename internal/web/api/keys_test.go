package api_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/api/apitest"
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
	c, err := client.New(k.server.URL, options...)
	expect.OK(k.t, err)
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
