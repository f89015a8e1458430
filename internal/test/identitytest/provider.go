// Package identitytest runs an OpenID Connect provider that signs a person in at once, and that can be made
// to fail.
package identitytest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The service at the provider.
const (
	ClientID     = "quittance"
	ClientSecret = "a secret: of the client"
)

// Provider is a provider. Change it only with Set.
type Provider struct {
	URL string
	now func() time.Time
	key [2]ed25519.PrivateKey // the second one after a rotation

	mu    sync.Mutex
	state State
	codes map[string]url.Values // requests of people that were led back, by code
}

// State is what the provider does.
type State struct {
	Down bool
	// Asked, if set, is called with the path of each request before it is answered.
	Asked func(path string)
	// Moved is the path that redirects to where it is answered.
	Moved string
	// Header is in each answer.
	Header string
	// Rotated has tokens signed by another key, which replaces the first one.
	Rotated bool
	// Described replace members of the description.
	Described map[string]any
	// Claims replace members of the token; nil removes one.
	Claims map[string]any
	// Forged has the token signed by a key of somebody else.
	Forged bool
	// Error is led back instead of a code.
	Error string
}

// New returns a provider with a clock.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{now: now, codes: make(map[string]url.Values)}
	for i := range p.key {
		var err error
		if _, p.key[i], err = ed25519.GenerateKey(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /other/keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := p.get()
		if state.Asked != nil {
			state.Asked(r.URL.Path)
		}
		w.Header().Set("X-Header", state.Header)
		switch {
		case state.Down:
			http.Error(w, "down", http.StatusServiceUnavailable)
		case state.Moved == r.URL.Path && r.URL.RawQuery == "":
			http.Redirect(w, r, r.URL.Path+"?moved", http.StatusTemporaryRedirect) //nolint:gosec // a provider for tests leads anywhere
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Set has the provider do as a state says.
func (p *Provider) Set(s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
}

func (p *Provider) get() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (p *Provider) describe(w http.ResponseWriter, _ *http.Request) {
	all := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"EdDSA"},
	}
	maps.Copy(all, p.get().Described)
	answer(w, all)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	key, kid := p.signer()
	public, _ := key.Public().(ed25519.PublicKey)
	answer(w, map[string]any{"keys": []any{map[string]string{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": kid, "x": text(public)}}})
}

// signer returns the key that signs, and its id.
func (p *Provider) signer() (key ed25519.PrivateKey, kid string) {
	if p.get().Rotated {
		return p.key[1], "2"
	}
	return p.key[0], "1"
}

// authorize signs the person in, and leads back.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != ClientID || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("state") == "" ||
		!slices.Contains(strings.Fields(q.Get("scope")), "openid") {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if refused := p.get().Error; refused != "" {
		back.Set("error", refused)
	} else {
		code := rand.Text()
		back.Set("code", code)
		p.mu.Lock()
		p.codes[code] = q
		p.mu.Unlock()
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound) //nolint:gosec // a provider for tests leads anywhere
}

// token answers with a token for a code, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	p.mu.Lock()
	q, ok := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	client, secret, basic := r.BasicAuth()
	clientID, _ := url.QueryUnescape(client)
	secretText, _ := url.QueryUnescape(secret)
	if !basic {
		clientID, secretText = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || clientID != ClientID || secretText != ClientSecret || q.Get("code_challenge") != text(challenge[:]) || q.Get("redirect_uri") != r.PostFormValue("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]string{"error": "invalid_grant"})
		return
	}
	state := p.get()
	now := p.now().Unix()
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "1", "nonce": q.Get("nonce"), "iat": now, "exp": now + 300, "auth_time": now,
	}
	maps.Copy(claims, state.Claims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	key, kid := p.signer()
	if state.Forged {
		key = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	}
	answer(w, map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 300, "id_token": sign(key, kid, claims)})
}

// sign returns a JSON Web Token.
func sign(key ed25519.PrivateKey, kid string, claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed := text([]byte(`{"alg":"EdDSA","kid":"`+kid+`","typ":"JWT"}`)) + "." + text(body)
	return signed + "." + text(ed25519.Sign(key, []byte(signed)))
}

func text(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
