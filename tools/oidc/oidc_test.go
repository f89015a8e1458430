// Package oidc_test signs a person in by an OpenID Connect provider that others wrote.
package oidc_test

import (
	"context"
	"crypto/rand"
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

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// patience bounds a wait for a page or a mail.
const patience = time.Minute

// mailbox takes the texts of mails.
type mailbox chan string

func (m mailbox) Send(_ context.Context, _, _ string, letter mailer.Message) error {
	m <- letter.Text
	return nil
}

var (
	formID     = regexp.MustCompile(`name="id" value="([^"]+)"`)
	mailedLink = regexp.MustCompile(`http://\S+`)
)

// link waits for a mail, and returns a parameter of its link.
func (m mailbox) link(t *testing.T, parameter string) string {
	t.Helper()
	select {
	case text := <-m:
		link, err := url.Parse(mailedLink.FindString(text))
		if err != nil {
			t.Fatal(err)
		}
		return link.Query().Get(parameter)
	case <-time.After(patience):
		t.Fatal("no mail")
		return ""
	}
}

// TestExtraProvider has a person sign in by a link, connect an account of Zitadel's provider, sign in by it, and
// remove it. Its address is verified, and counts for nothing.
func TestExtraProvider(t *testing.T) {
	listener, err := server.Listen(t.Context(), server.Address{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	base, mails := "http://"+listener.Addr().String(), make(mailbox, 10)
	key := serve(t, listener, mails, identity.Config{Issuer: provider(t, base+dashboard.CallbackPath), ClientID: "shop", ClientSecret: "secret", Name: "Zitadel"})

	owner := newBrowser(t, base)
	owner.post("/dashboard/sign-in", url.Values{"key": {key.Reveal()}})
	owner.post("/dashboard/keys", url.Values{"for": {"person"}, "name": {"Ada"}, "email": {"ada@example.com"}, "role": {"owner"}}).wants("ada@example.com")
	ada := newBrowser(t, base)
	ada.post("/dashboard/invitation", url.Values{"token": {mails.link(t, "token")}}).wants("Ada")
	ada.post("/dashboard/sign-out", nil).wants("Sign in with Zitadel")
	ada.signIn(base + dashboard.BeginPath).wants("account of Zitadel is not connected to anybody here")

	ada.post("/dashboard/sign-in/mail", url.Values{"email": {"ada@example.com"}}).wants("on its way")
	ada.post("/dashboard/sign-in", url.Values{"link": {mails.link(t, "link")}}).wants("Ada")
	begun := ada.post("/dashboard/account", nil).wants("Continue")
	ada.signIn(strings.TrimPrefix(begun.header.Get("Refresh"), "0; url=")).wants("Connected", "with a link")
	mails.link(t, "")
	ada.post("/dashboard/sign-out", nil).wants("Sign in with Zitadel")
	ada.signIn(base+dashboard.BeginPath+"?next=/dashboard/sessions").wants("Ada", "with an account")
	ada.post("/dashboard/account/remove", nil).wants("Connect an account")
	mails.link(t, "")
	ada.post("/dashboard/sign-out", nil)
	ada.signIn(base + dashboard.BeginPath).wants("is not connected to anybody here")
}

// provider runs a provider with an account, and returns its URL.
func provider(t *testing.T, back string) (issuer string) {
	t.Helper()
	ts := httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	issuer = "http://localhost:" + port
	storage.RegisterClients(storage.WebClient("shop", "secret", back))
	people := filepath.Join(t.TempDir(), "people.json")
	if err := os.WriteFile(people, []byte(`{"1": {"ID": "1", "Username": "ada", "Password": "verysecure", "Email": "ada@example.com", "EmailVerified": true}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := storage.StoreFromFile(people)
	if err != nil {
		t.Fatal(err)
	}
	ts.Config.Handler = exampleop.SetupServer(issuer, storage.NewStorage(store), slog.New(slog.DiscardHandler), false)
	ts.Start()
	t.Cleanup(ts.Close)
	return issuer
}

// serve runs the service until the test ends, and returns a key of the operator.
func serve(t *testing.T, l *server.Listener, mails mailbox, oidc identity.Config) access.Key {
	t.Helper()
	key, err := access.NewKey(access.Test, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		ended <- server.Run(ctx, server.Config{
			Listeners: []*server.Listener{l}, Database: dbtest.Migrated(t), DashboardURL: "http://" + l.Addr().String(), OIDC: &oidc, SMTP: mails,
			Access: server.Access{Mode: access.Test, OperatorKey: key}, AllowListDelay: time.Hour, Now: time.Now, Rand: rand.Reader,
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Ready: func(base string) { ready <- base },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return key
}

// browser is a person's browser.
type browser struct {
	*http.Client
	t    *testing.T
	base string
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{&http.Client{Jar: jar, Timeout: patience}, t, base}
}

// page is a page that a request led to.
type page struct {
	t      *testing.T
	url    *url.URL
	header http.Header
	body   string
}

// wants expects texts.
func (p page) wants(texts ...string) page {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			p.t.Fatalf("%s lacks %q:\n%s", p.url, text, p.body)
		}
	}
	return p
}

func (b *browser) read(resp *http.Response, err error) page {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		b.t.Fatal(err)
	}
	return page{b.t, resp.Request.URL, resp.Header, string(body)}
}

// post sends a form to the service.
func (b *browser) post(path string, form url.Values) page {
	b.t.Helper()
	return b.read(b.PostForm(b.base+path, form))
}

// signIn goes to a page that leads to the provider, signs in there, and returns the page to which that leads.
func (b *browser) signIn(address string) page {
	b.t.Helper()
	shown := b.read(b.Get(address))
	id := formID.FindStringSubmatch(shown.body)
	if id == nil {
		b.t.Fatalf("%s leads to %s, which shows\n%s", address, shown.url, shown.body)
	}
	return b.read(b.PostForm(shown.url.Scheme+"://"+shown.url.Host+"/login/username", url.Values{"id": {id[1]}, "username": {"ada"}, "password": {"verysecure"}}))
}
