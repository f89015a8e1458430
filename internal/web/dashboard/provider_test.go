package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/identitytest"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// withProvider returns a change of a world that has it sign in by a provider, which is set.
func withProvider(t *testing.T, remote **identitytest.Provider) func(*server.Config) {
	return func(c *server.Config) {
		*remote = identitytest.New(t, c.Now)
		c.OIDC = &identity.Config{Issuer: (*remote).URL, ClientID: identitytest.ClientID, ClientSecret: identitytest.ClientSecret, Name: "Example"}
		c.DashboardURL = "http://" + c.Listeners[0].Addr().String()
	}
}

// member invites a person, who then confirms by mail.
func (p *person) member(mails *postOffice, email string) *person {
	p.t.Helper()
	member := p.guest()
	member.enter(p.invites(mails, email, "owner")).want(p.t, http.StatusOK, "Ada")
	member.confirms(mails, email)
	return member
}

// confirms confirms the person by mail, without a passkey.
func (p *person) confirms(mails *postOffice, email string) {
	p.t.Helper()
	p.submit(p.get("/dashboard/keys/new?for=program").want(p.t, http.StatusOK, "Is it still you?"), "/dashboard/sign-in/mail", nil).want(p.t, http.StatusOK, "on its way")
	p.enter(mails.page(p.t, email)).want(p.t, http.StatusOK, "Create a key")
}

// begins begins to connect an account, and returns the provider's page.
func (p *person) begins() string {
	p.t.Helper()
	begun := p.submit(p.get("/dashboard/sessions").want(p.t, http.StatusOK, "Connect an account"), "/dashboard/account", nil).want(p.t, http.StatusOK, "Continue")
	page := begun.linkTo(p.t, "Continue")
	if begun.header.Get("Refresh") != "0; url="+page || !strings.Contains(page, "max_age=0") || !strings.Contains(page, "prompt=select_account") {
		p.t.Errorf("the page leads to %s, and refreshes to %s", page, begun.header.Get("Refresh"))
	}
	return page
}

const named, program = "Sign in with Example", "/dashboard/keys/new?for=program"

// TestProvider connects an account of a provider, signs in and confirms by it, shows each failure, and removes it.
func TestProvider(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	var remote *identitytest.Provider
	w := newWorld(t, withMails, withProvider(t, &remote))
	remote.Set(identitytest.State{Down: true})
	const begin = dashboard.BeginPath + "?next=/dashboard/invoices"
	w.guest().get(begin).want(t, http.StatusBadGateway, "does not answer", named)
	owner := w.person("acme", access.Admin)
	ada := w.guest()
	ada.enter(owner.invites(mails, "ada@example.com", "owner")).want(t, http.StatusOK, "Ada")
	remote.Set(identitytest.State{Claims: map[string]any{"email": "ada@example.com", "email_verified": true}})
	w.forward(time.Minute)
	w.guest().get(begin).want(t, http.StatusForbidden, "account of Example is not connected to anybody here", "“Sessions”", named)

	ask := ada.submit(ada.get("/dashboard/sessions"), "/dashboard/account", nil).want(t, http.StatusOK, "Is it still you?") // the invitation may have been passed on
	if strings.Contains(ask.Words(), named) {
		t.Error("a person without an account confirms by the provider")
	}
	ada.confirms(mails, "ada@example.com")
	remote.Set(identitytest.State{Claims: map[string]any{"auth_time": w.now().Add(-time.Hour).Unix()}})
	ada.open(ada.begins()).want(t, http.StatusForbidden, "did not ask you to sign in again") // somebody else did, perhaps
	remote.Set(identitytest.State{})
	ada.open(ada.begins()).want(t, http.StatusOK, "Example Connected", "with a link")
	if len(mails.sent) == 0 {
		t.Error("the answer came before the mail was sent")
	}
	mails.page(t, "ada@example.com", "A new way to sign in", "“Example” now signs you in")

	again := w.guest()
	if got := again.get(begin).want(t, http.StatusOK, "Ada"); got.path != "/dashboard/invoices" {
		t.Errorf("the sign-in leads to %s", got.path)
	}
	again.get("/dashboard/sessions").want(t, http.StatusOK, "Last used", "with an account")
	again.get(program).want(t, http.StatusOK, "Create a key")
	remote.Set(identitytest.State{Claims: map[string]any{"auth_time": w.now().Add(-time.Hour).Unix()}})
	again.get(begin).want(t, http.StatusOK, "Ada")
	asked := again.get(program).want(t, http.StatusOK, "Is it still you?", named)
	page, isOffice := strings.CutPrefix(asked.linkTo(t, named), w.url)
	if !isOffice {
		t.Errorf("a sign-in begins at %s, and ends at another host", page)
	}
	remote.Set(identitytest.State{Claims: map[string]any{"auth_time": nil}})
	again.get(page).want(t, http.StatusForbidden, "did not ask you to sign in again", named)
	remote.Set(identitytest.State{Error: "access_denied"})
	w.guest().get(begin).want(t, http.StatusUnauthorized, "was not completed", named)
	remote.Set(identitytest.State{})
	again.get(page).want(t, http.StatusOK, "Create a key")
	for _, next := range []string{"https://evil.example/", "//evil.example/", "/dashboard/invoices?q=" + strings.Repeat("x", 2000)} {
		if got := w.guest().get(dashboard.BeginPath+"?next="+url.QueryEscape(next)).want(t, http.StatusOK, "Ada"); got.path != "/dashboard" {
			t.Errorf("the sign-in leads to %s", got.path)
		}
	}

	invitation := w.person("globex", access.Admin).invites(mails, "ada@example.com", "finance")
	w.guest().enter(invitation).want(t, http.StatusConflict, "Sign in with it, then open the link of the mail again")

	bob := owner.member(mails, "bob@example.com")
	bob.open(bob.begins()).want(t, http.StatusConflict, "connected to somebody here already")
	late := bob.begins()
	w.forgetConfirmations()
	remote.Set(identitytest.State{Claims: map[string]any{"sub": "2"}})
	bob.open(late).want(t, http.StatusOK, "Is it still you?")
	ada.submit(ada.get("/dashboard/sessions"), "/dashboard/account/remove", nil).want(t, http.StatusOK, "Is it still you?")
	w.guest().get(begin).want(t, http.StatusForbidden, "is not connected")
	remote.Set(identitytest.State{})
	w.forward(dashboard.MailWindow)
	ada.confirms(mails, "ada@example.com")
	ada.submit(ada.get("/dashboard/sessions"), "/dashboard/account/remove", nil).want(t, http.StatusOK, "Connect an account")
	mails.page(t, "ada@example.com", "was removed", "“Example” no longer signs you in")
	again.get("/dashboard").want(t, http.StatusOK, "Sign in")
	w.guest().get(begin).want(t, http.StatusForbidden, "is not connected")
	w.person("acme", access.Admin).post("/dashboard/account", nil).want(t, http.StatusNotFound) // a key is no person
}

// TestFlow gives answers of a provider to browsers, sessions and people that did not ask for them.
func TestFlow(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	var remote *identitytest.Provider
	var cfg identity.Config
	w := newWorld(t, withMails, withProvider(t, &remote), func(c *server.Config) {
		cfg = *c.OIDC
		cfg.RedirectURL, cfg.Now = c.DashboardURL+dashboard.CallbackPath, c.Now
	})
	owner := w.person("acme", access.Admin)
	victim, attacker := owner.member(mails, "ada@example.com"), owner.member(mails, "eve@example.com")
	office := expect.Must(url.Parse(w.url))
	cookie := func(p *person, name string) *http.Cookie {
		for _, c := range p.Jar.Cookies(office) {
			if c.Name == name {
				return &http.Cookie{Name: name, Value: c.Value, Path: "/"}
			}
		}
		return &http.Cookie{Name: name, Path: "/"}
	}
	plant := func(p *person, c *http.Cookie) { p.Jar.SetCookies(office, []*http.Cookie{c}) }
	// answerTo returns the page with which the provider leads back.
	answerTo := func(p *person, page string) string {
		p.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Path == dashboard.CallbackPath {
				return http.ErrUseLastResponse
			}
			return nil
		}
		defer func() { p.CheckRedirect = nil }()
		back := expect.Must(url.Parse(p.open(page).want(t, http.StatusFound).header.Get("Location")))
		return back.RequestURI()
	}
	refused := func(why string, p *person, answer string) {
		t.Helper()
		got := p.get(answer)
		if got.status != http.StatusUnauthorized || !strings.Contains(got.Words(), "was not completed") || got.header.Get("Referrer-Policy") != "strict-origin" ||
			strings.Contains(strings.Join(got.header.Values("Set-Cookie"), " "), "quittance=") {
			t.Errorf("%s: %d %v\n%s", why, got.status, got.header, got.Words())
		}
	}
	const flow, session = "quittance-flow", "quittance"

	theirs := answerTo(attacker, attacker.begins())
	refused("an answer that was not asked for", victim, theirs)
	answerTo(victim, victim.begins())
	refused("for another session", victim, theirs)
	plant(victim, cookie(attacker, flow))
	refused("for another session, with its cookie", victim, theirs)
	own := answerTo(victim, victim.begins())
	before := cookie(victim, session)
	plant(victim, cookie(attacker, session))
	refused("of another person in the same browser", victim, own)
	plant(victim, before)
	refused("again", victim, own)
	signIn := answerTo(attacker, w.url+dashboard.BeginPath)
	changed := cookie(attacker, flow)
	changed.Value = strings.Replace(changed.Value, "to=sign-in", "to=add", 1)
	plant(attacker, changed)
	refused("to sign in, as an account", attacker, signIn)
	for _, secret := range []identity.Flow{"", ":", "sign-in:"} { // that everybody knows
		page, err := identity.New(cfg).Begin(t.Context(), secret, false, false)
		expect.OK(t, err)
		refused("of no flow", w.guest(), answerTo(w.guest(), page))
	}
	for _, p := range []*person{victim, attacker} {
		p.get("/dashboard/sessions").want(t, http.StatusOK, "Connect an account")
	}
	attacker.open(attacker.begins()).want(t, http.StatusOK, "Example Connected")

	own = answerTo(victim, victim.begins())
	plant(victim, &http.Cookie{Name: session, Value: "ended", Path: "/"})
	victim.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if to := victim.get(own).want(t, http.StatusSeeOther).header.Get("Location"); to != "/dashboard/sign-in?next=%2Fdashboard%2Fsessions" {
		t.Errorf("the answer to an ended session leads to %s", to)
	}
}

// TestFlowCookie looks at the cookies of a sign-in by HTTPS and by HTTP.
func TestFlowCookie(t *testing.T) {
	t.Parallel()
	for office, prefix := range map[string]string{"https://office.example": "__Host-", "http://office.example": ""} {
		var remote *identitytest.Provider
		w := newWorld(t, withProvider(t, &remote), func(c *server.Config) { c.DashboardURL = office })
		p := w.guest()
		p.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		for name, got := range map[string]answer{"quittance-flow": p.get(dashboard.BeginPath), "quittance": p.post("/dashboard/sign-in", url.Values{"key": {w.operator.key}})} {
			all := (&http.Response{Header: got.header}).Cookies()
			if len(all) != 1 || all[0].Name != prefix+name || all[0].Value == "" || !all[0].HttpOnly || all[0].SameSite != http.SameSiteLaxMode || all[0].Secure != (prefix != "") || all[0].Path != "/" || all[0].Domain != "" || all[0].MaxAge <= 0 {
				t.Errorf("%s: the cookie %s is %v", office, name, all)
			}
		}
	}
}
