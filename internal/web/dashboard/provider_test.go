package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/identity/identitytest"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// TestSignInByProvider signs an invited person in by a provider, confirms by it, and shows each failure.
func TestSignInByProvider(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	var remote *identitytest.Provider
	w := newWorld(t, withMails, func(c *server.Config) {
		remote = identitytest.New(t, c.Now)
		remote.Set(identitytest.State{Down: true})
		c.OIDC = &identity.Config{Issuer: remote.URL, ClientID: identitytest.ClientID, ClientSecret: identitytest.ClientSecret, Name: "Example"}
		c.DashboardURL = "http://" + c.Listeners[0].Addr().String()
	})
	const begin, named, program = dashboard.BeginPath + "?next=/dashboard/invoices", "Sign in with Example", "/dashboard/keys/new?for=program"
	w.guest().get(begin).want(t, http.StatusBadGateway, "does not answer", named)
	remote.Set(identitytest.State{})
	w.forward(time.Minute)
	w.guest().get(begin).want(t, http.StatusForbidden, "signs in nobody", named)
	w.guest().enter(w.person("acme", access.Admin).invites(mails, "ada@example.com", "owner")).want(t, http.StatusOK, "Ada")

	ada := w.guest()
	if got := ada.get(begin).want(t, http.StatusOK, "Ada"); got.path != "/dashboard/invoices" {
		t.Errorf("the sign-in leads to %s", got.path)
	}
	ada.get(program).want(t, http.StatusOK, "Make a key")
	remote.Set(identitytest.State{Claims: map[string]any{"email": "new@example.com", "auth_time": w.now().Add(-time.Hour).Unix()}})
	ada.get(begin).want(t, http.StatusOK, "Ada")
	asked := ada.get(program).want(t, http.StatusOK, "Is it still you?", named)
	page, isOffice := strings.CutPrefix(asked.linkTo(t, named), w.url)
	if !isOffice {
		t.Errorf("a sign-in begins at %s, and ends at another host", page)
	}
	remote.Set(identitytest.State{Claims: map[string]any{"auth_time": nil}})
	ada.get(page).want(t, http.StatusForbidden, "did not ask you to sign in again", named)
	remote.Set(identitytest.State{})
	ada.get(page).want(t, http.StatusOK, "Make a key")

	for text, c := range map[string]struct {
		state  identitytest.State
		status int
	}{
		"signs in nobody":                      {identitytest.State{Claims: map[string]any{"sub": "2"}}, http.StatusForbidden},
		"signs in nobody here":                 {identitytest.State{Claims: map[string]any{"sub": "3", "email": "ad\u212a@example.com"}}, http.StatusForbidden}, // in lower case it has a k
		"has not verified your e-mail address": {identitytest.State{Claims: map[string]any{"sub": "4", "email_verified": false}}, http.StatusForbidden},
		"was not completed":                    {identitytest.State{Error: "access_denied"}, http.StatusUnauthorized},
	} {
		remote.Set(c.state)
		w.guest().get(begin).want(t, c.status, text, named)
	}
	for _, changed := range []map[string]any{{"email_verified": false}, {"email": "ada@\u212aelvin.example"}} { // the account is hers
		remote.Set(identitytest.State{Claims: changed})
		w.guest().get(begin).want(t, http.StatusOK, "Ada")
	}
	remote.Set(identitytest.State{})
	for _, next := range []string{"https://evil.example/", "//evil.example/", "/dashboard/invoices?q=" + strings.Repeat("x", 2000)} {
		if got := w.guest().get(dashboard.BeginPath+"?next="+url.QueryEscape(next)).want(t, http.StatusOK, "Ada"); got.path != "/dashboard" {
			t.Errorf("the sign-in leads to %s", got.path)
		}
	}
}

// TestSignInOfAnotherBrowser gives answers of a provider to browsers that did not begin the sign-in.
func TestSignInOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	w := newWorld(t, withMails, func(c *server.Config) {
		c.OIDC = &identity.Config{Issuer: identitytest.New(t, c.Now).URL, ClientID: identitytest.ClientID, ClientSecret: identitytest.ClientSecret, Name: "Example"}
		c.DashboardURL = "http://" + c.Listeners[0].Addr().String()
	})
	w.guest().enter(w.person("acme", access.Admin).invites(mails, "ada@example.com", "owner")).want(t, http.StatusOK, "Ada")
	stopped := func() (*person, string) {
		p := w.guest()
		p.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Path == dashboard.CallbackPath {
				return http.ErrUseLastResponse
			}
			return nil
		}
		back, err := url.Parse(p.get(dashboard.BeginPath).want(t, http.StatusFound).header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		return p, back.RequestURI()
	}
	attacker, theirs := stopped()
	victim, own := stopped()
	for _, answer := range []string{theirs, own, dashboard.CallbackPath, dashboard.CallbackPath + "?state=&code=x"} { // an answer ends the sign-in
		got := victim.get(answer).want(t, http.StatusUnauthorized, "was not completed")
		if got.header.Get("Referrer-Policy") != "strict-origin" || strings.Contains(strings.Join(got.header.Values("Set-Cookie"), " "), "quittance=") {
			t.Errorf("refused with %v", got.header)
		}
	}
	for range dashboard.SignInsOfClient { // a page of another host makes browsers ask for it
		w.guest().get(dashboard.CallbackPath).want(t, http.StatusUnauthorized, "was not completed")
	}
	attacker.get(theirs).want(t, http.StatusOK, "Ada")
	attacker.get(theirs).want(t, http.StatusUnauthorized, "was not completed")
}
