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
	key ed25519.PrivateKey

	mu    sync.Mutex
	state State
	codes map[string]url.Values // requests of people that were led back, by code
}

// State is what the provider does.
type State struct {
	Down bool
	// Exchanging, if set, is called while a code is exchanged.
	Exchanging func()
	// Described replace members of the description.
	Described map[string]any
	// Claims replace members of the token; nil removes one.
	Claims map[string]any
	// Info has the members of the answer about the person.
	Info map[string]any
	// Forged has the token signed by another key.
	Forged bool
	// Error is led back instead of a code.
	Error string
}

// New returns a provider with a clock.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{now: now, key: key, codes: make(map[string]url.Values)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", p.info)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.get().Down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
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
		"userinfo_endpoint": p.URL + "/userinfo", "id_token_signing_alg_values_supported": []string{"EdDSA"},
	}
	maps.Copy(all, p.get().Described)
	answer(w, all)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	public, _ := p.key.Public().(ed25519.PublicKey)
	answer(w, map[string]any{"keys": []any{map[string]string{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "1", "x": text(public)}}})
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
	if exchanging := p.get().Exchanging; exchanging != nil {
		exchanging()
	}
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
		"iss": p.URL, "aud": ClientID, "sub": "1", "nonce": q.Get("nonce"), "iat": now, "exp": now + 300, "auth_time": now, "email": "ada@example.com", "email_verified": true,
	}
	maps.Copy(claims, state.Claims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	key := p.key
	if state.Forged {
		key = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	}
	answer(w, map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 300, "id_token": sign(key, claims)})
}

func (p *Provider) info(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer access" {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	answer(w, p.get().Info)
}

// sign returns a JSON Web Token.
func sign(key ed25519.PrivateKey, claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed := text([]byte(`{"alg":"EdDSA","kid":"1","typ":"JWT"}`)) + "." + text(body)
	return signed + "." + text(ed25519.Sign(key, []byte(signed)))
}

func text(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
