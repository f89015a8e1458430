package identity_test

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/identitytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Unix(1_700_000_000, 0)

// world is a service and its provider, each with a clock.
type world struct {
	*identity.Provider
	t      *testing.T
	remote *identitytest.Provider
	at     time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, remote: identitytest.New(t, func() time.Time { return start }), at: start}
	w.Provider = w.service(identitytest.ClientID, identitytest.ClientSecret)
	return w
}

func (w *world) service(id, secret string) *identity.Provider {
	return identity.New(identity.Config{
		Issuer: w.remote.URL, ClientID: id, ClientSecret: secret, RedirectURL: "https://office.example/back", Now: func() time.Time { return w.at },
	})
}

const flow identity.Flow = "the secret of a sign-in"

// visit goes to the provider, and returns the answer that it leads back with.
func (w *world) visit(f identity.Flow) url.Values {
	w.t.Helper()
	page, err := w.Begin(w.t.Context(), f, false, false)
	expect.OK(w.t, err)
	r := expect.Must(http.NewRequestWithContext(w.t.Context(), http.MethodGet, page, nil))
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	expect.OK(w.t, err)
	expect.OK(w.t, resp.Body.Close())
	back, err := resp.Location()
	if err != nil || back.Host != "office.example" {
		w.t.Fatalf("%s leads to %v, %v", page, back, err)
	}
	return back.Query()
}

// TestSignIn signs people in, and refuses every answer that is not for the flow, or not to be trusted.
func TestSignIn(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) identitytest.State {
		return identitytest.State{Claims: map[string]any{name: value}}
	}
	ada := identity.Account{Subject: "1", SignedInAt: start}
	for name, c := range map[string]struct {
		remote  identitytest.State
		later   time.Duration
		flow    identity.Flow // if not the one that began
		alter   func(url.Values)
		want    error
		account identity.Account
	}{
		"signed in":                    {account: ada},
		"at an unknown time":           {remote: claim("auth_time", nil), account: identity.Account{Subject: "1", SignedInAt: time.Unix(0, 0)}},
		"in the future":                {remote: claim("auth_time", start.Unix()+9), account: ada},
		"another nonce":                {remote: claim("nonce", "x"), want: identity.ErrRefused},
		"no nonce":                     {remote: claim("nonce", nil), want: identity.ErrRefused},
		"no subject":                   {remote: claim("sub", nil), want: identity.ErrRefused},
		"a long subject":               {remote: claim("sub", strings.Repeat("x", 256)), want: identity.ErrRefused},
		"a subject with a zero byte":   {remote: claim("sub", "1\x00"), want: identity.ErrRefused},
		"for another service":          {remote: claim("aud", "shop"), want: identity.ErrRefused},
		"of another provider":          {remote: claim("iss", "https://evil.example"), want: identity.ErrRefused},
		"a time of no form":            {remote: claim("auth_time", "now"), want: identity.ErrRefused},
		"forged":                       {remote: identitytest.State{Forged: true}, want: identity.ErrRefused},
		"canceled":                     {remote: identitytest.State{Error: "access_denied"}, want: identity.ErrRefused},
		"an address":                   {remote: identitytest.State{Claims: map[string]any{"email": "bob@example.com", "email_verified": true}}, account: ada},
		"keys elsewhere":               {remote: identitytest.State{Moved: "/keys"}, want: identity.ErrRefused},
		"tokens elsewhere":             {remote: identitytest.State{Moved: "/token"}, want: identity.ErrRefused},
		"too long":                     {remote: claim("x", strings.Repeat("x", 2<<20)), want: identity.ErrDown},
		"another state":                {alter: func(v url.Values) { v.Set("state", "x") }, want: identity.ErrRefused},
		"another code":                 {alter: func(v url.Values) { v.Set("code", "x") }, want: identity.ErrRefused},
		"another browser":              {flow: "another secret", want: identity.ErrRefused},
		"a browser that did not begin": {flow: "none", alter: func(v url.Values) { v.Set("state", "") }, want: identity.ErrRefused},
		"just not expired":             {later: 5*time.Minute + identity.Leeway, account: ada},
		"expired":                      {later: 5*time.Minute + identity.Leeway + time.Second, want: identity.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.remote.Set(c.remote)
			answer, f := w.visit(flow), cmp.Or(c.flow, flow)
			w.at = w.at.Add(c.later)
			if c.alter != nil {
				c.alter(answer)
			}
			if f == "none" {
				f = ""
			}
			if c.account != (identity.Account{}) {
				c.account.Issuer = w.remote.URL
			}
			account, err := w.Finish(t.Context(), f, answer)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || account != c.account || err != nil && len(err.Error()) > 400 {
				t.Errorf("%+v, %v; want %+v, %v", account, err, c.account, c.want)
			}
			if _, err := w.Finish(t.Context(), f, answer); err == nil {
				t.Error("the answer is accepted again")
			}
		})
	}
}

// TestProofKey gives an answer to a browser that has the state and another verifier and nonce: it is
// refused by the provider, which has the hash of the verifier.
func TestProofKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := w.visit("of the attacker")
	answer.Set("state", w.visit(flow).Get("state"))
	expect.Error(t, identity.ErrRefused, "the code of another sign-in")(w.Finish(t.Context(), flow, answer))
}

// TestProviderDown begins while the provider is down or describes itself wrongly. It is asked again only after a while.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, state := range []identitytest.State{
		{Down: true},
		{Described: map[string]any{"issuer": "https://evil.example"}},
		{Described: map[string]any{"authorization_endpoint": nil}},
		{Described: map[string]any{"authorization_endpoint": "javascript:alert(1)"}},
		{Described: map[string]any{"x": strings.Repeat("x", 2<<20)}},
		{Header: strings.Repeat("x", 100<<10)},
		{Moved: "/.well-known/openid-configuration"},
	} {
		w.remote.Set(state)
		for range 2 {
			if page, err := w.Begin(t.Context(), flow, false, false); !errors.Is(err, identity.ErrDown) || page != "" {
				t.Fatalf("%.300v: %q, %v", state, page, err)
			}
			w.remote.Set(identitytest.State{})
		}
		w.at = w.at.Add(10 * time.Second)
	}
	w.remote.Set(identitytest.State{Described: map[string]any{"token_endpoint": "https://" + strings.TrimPrefix(w.remote.URL, "http://") + "/token"}})
	other := w.service(identitytest.ClientID, identitytest.ClientSecret)
	answer := w.visit(flow)
	if _, err := other.Finish(t.Context(), flow, answer); !errors.Is(err, identity.ErrDown) || !strings.Contains(err.Error(), "another scheme") {
		t.Errorf("asked by another scheme: %v", err)
	}
	w.remote.Set(identitytest.State{Down: true})
	expect.Error(t, identity.ErrDown, "down afterwards")(w.Finish(t.Context(), flow, answer))
	w.remote.Set(identitytest.State{Described: map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}})
	if _, err := w.service(identitytest.ClientID, identitytest.ClientSecret).Finish(t.Context(), flow, w.visit(flow)); err != nil {
		t.Errorf("with the secret in the form: %v", err)
	}
	w.remote.Set(identitytest.State{})
	if _, err := w.service(identitytest.ClientID, "wrong").Finish(t.Context(), flow, answer); !errors.Is(err, identity.ErrRefused) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong secret: %v", err)
	}
	page, err := w.Begin(t.Context(), flow, true, true)
	if u, _ := url.Parse(page); err != nil || u.Query().Get("max_age") != "0" || u.Query().Get("prompt") != "select_account" || strings.Contains(page, string(flow)) {
		t.Errorf("a fresh sign-in is at %s, %v", page, err)
	}
}

// TestMaxInFlight finishes as many sign-ins as may be in flight, and one more.
func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := w.visit(flow)
	begun, end := make(chan struct{}), make(chan struct{})
	w.remote.Set(identitytest.State{Asked: func(path string) {
		if path == "/token" {
			begun <- struct{}{}
			<-end
		}
	}})
	var finished sync.WaitGroup
	for range identity.MaxInFlight {
		finished.Go(func() {
			if _, err := w.Finish(t.Context(), flow, url.Values{"state": answer["state"], "code": {"x"}}); !errors.Is(err, identity.ErrRefused) {
				t.Error(err)
			}
		})
	}
	for range identity.MaxInFlight {
		<-begun
	}
	expect.Error(t, limits.ErrBusy, "one more")(w.Finish(t.Context(), flow, answer))
	close(end)
	finished.Wait()
	w.remote.Set(identitytest.State{})
	if _, err := w.Finish(t.Context(), flow, answer); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestDescriptionAgain reads the description again after a while, and soon after a key that it does not lead to.
// Other requests do not wait for that.
func TestDescriptionAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signIn := func(want error) {
		t.Helper()
		if _, err := w.Finish(t.Context(), flow, w.visit(flow)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("signed in: %v; want %v", err, want)
		}
	}
	signIn(nil)
	w.remote.Set(identitytest.State{Rotated: true})
	signIn(nil)
	moved := identitytest.State{Described: map[string]any{"jwks_uri": w.remote.URL + "/other/keys"}, Asked: func(path string) {
		if path == "/keys" {
			panic(http.ErrAbortHandler)
		}
	}}
	w.remote.Set(moved)
	signIn(identity.ErrRefused)
	w.at = w.at.Add(5 * time.Second)
	signIn(nil)

	begun, end := make(chan struct{}), make(chan struct{})
	w.remote.Set(identitytest.State{Described: map[string]any{"authorization_endpoint": w.remote.URL + "/new"}, Asked: func(string) { begun <- struct{}{}; <-end }})
	page := func() string {
		page, err := w.Begin(t.Context(), flow, false, false)
		expect.NoError(t, err)
		return page
	}
	w.at = w.at.Add(identity.DescriptionLifetime - time.Second)
	if before := page(); !strings.HasPrefix(before, w.remote.URL+"/authorize") {
		t.Errorf("just before, it is at %s", before)
	}
	w.at = w.at.Add(time.Second)
	again := make(chan string)
	go func() { again <- page() }()
	select {
	case <-begun:
	case <-again:
		t.Fatal("an hour later, the description is not read again")
	}
	if other := page(); !strings.HasPrefix(other, w.remote.URL+"/authorize") {
		t.Errorf("while a silent provider is asked, it is at %s", other)
	}
	close(end)
	if after := <-again; !strings.HasPrefix(after, w.remote.URL+"/new") {
		t.Errorf("an hour later, it is at %s", after)
	}
	w.remote.Set(identitytest.State{Down: true})
	w.at = w.at.Add(identity.DescriptionLifetime)
	for range 2 {
		if down := page(); !strings.HasPrefix(down, w.remote.URL+"/new") {
			t.Errorf("while the provider is down, it is at %s", down)
		}
	}
}
