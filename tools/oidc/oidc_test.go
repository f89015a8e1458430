// Package oidc_test signs people in by an OpenID Connect provider that others wrote.
package oidc_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"github.com/quittance/quittance/internal/identity"
)

const office = "http://office.example/back"

const flow identity.Flow = "the secret of a sign-in"

var formID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// TestExtraProvider signs in at Zitadel's provider: a person whose e-mail address is verified, and one
// whose is not.
func TestExtraProvider(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	issuer := "http://localhost:" + port
	storage.RegisterClients(storage.WebClient("shop", "secret", office))
	people := filepath.Join(t.TempDir(), "people.json")
	if err := os.WriteFile(people, []byte(`{
		"1": {"ID": "1", "Username": "ada", "Password": "verysecure", "Email": "ada@example.com", "EmailVerified": true},
		"2": {"ID": "2", "Username": "eve", "Password": "verysecure", "Email": "ada@example.com"}
	}`), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := storage.StoreFromFile(people)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = exampleop.SetupServer(issuer, storage.NewStorage(store), slog.New(slog.DiscardHandler), false)
	server.Start()
	defer server.Close()
	p := identity.New(identity.Config{Issuer: issuer, ClientID: "shop", ClientSecret: "secret", RedirectURL: office, Now: time.Now})
	for user, want := range map[string]error{"ada": nil, "eve": identity.ErrUnverified} {
		for _, fresh := range []bool{false, true} {
			page, err := p.Begin(t.Context(), flow, fresh)
			if err != nil {
				t.Fatal(err)
			}
			back := signIn(t, page, user)
			account, err := p.Finish(t.Context(), flow, back)
			if !errors.Is(err, want) || err == nil && (account.Issuer != issuer || account.Subject != "1" || account.Email != "ada@example.com" || time.Since(account.SignedInAt).Abs() > time.Minute) {
				t.Errorf("%s: %+v, %v", user, account, err)
			}
			if _, err := p.Finish(t.Context(), flow, back); !errors.Is(err, identity.ErrRefused) {
				t.Errorf("%s again: %v", user, err)
			}
		}
	}
}

// signIn signs a person in at the provider's page, and returns the answer that the provider leads back
// with.
func signIn(t *testing.T, page, user string) url.Values {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var back url.Values
	browser := &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), office) {
			back = r.URL.Query()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	shown, err := browser.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(shown.Body)
	if err := errors.Join(err, shown.Body.Close()); err != nil {
		t.Fatal(err)
	}
	id := formID.FindSubmatch(body)
	if id == nil {
		t.Fatalf("%s shows\n%s", page, body)
	}
	sent, err := browser.PostForm(shown.Request.URL.Scheme+"://"+shown.Request.URL.Host+"/login/username", url.Values{"id": {string(id[1])}, "username": {user}, "password": {"verysecure"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sent.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return back
}
