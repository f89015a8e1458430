// Package identity asks an OpenID Connect provider who a person is. Who that is here, and what the person
// may do, is decided elsewhere.
package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/quittance/quittance/internal/limits"
)

// Limits of requests to the provider.
const (
	// Deadline bounds the requests for one page.
	Deadline = 8 * time.Second
	// Leeway is for how long a token is accepted after it expired, because the provider's clock may differ.
	Leeway = time.Minute
	// MaxInFlight bounds the sign-ins about which the provider is being asked.
	MaxInFlight = 20
	// retryAfter is how long the provider is not asked again for its description after it did not answer.
	retryAfter = 5 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 1 << 20
)

// Errors of a sign-in. Their text ends with the reason, which is for the log.
var (
	// ErrDown: the provider did not answer as it should.
	ErrDown = errors.New("the provider does not answer")
	// ErrUnverified: the provider has not verified the e-mail address, or has none. The account is returned, too.
	ErrUnverified = errors.New("the provider has not verified an e-mail address")
	// ErrRefused: the answer is not for this sign-in, or it is forged, repeated or too old.
	ErrRefused = errors.New("the provider's answer was not accepted")
)

// because returns an error of a sign-in with its reason, which may quote an answer of any length.
func because(err error, reason any) error { return fmt.Errorf("%w: %.300v", err, reason) }

// Config is the configuration of a Provider. ClientSecret is optional.
type Config struct {
	Issuer                 string // URL, exactly as the provider writes it
	ClientID, ClientSecret string
	Name                   string // that people know
	RedirectURL            string // page to which the provider leads back
	Now                    func() time.Time
}

// Provider is an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	cfg      Config
	http     *http.Client
	inFlight chan struct{} // has an element for each sign-in about which the provider is being asked

	mu       sync.Mutex   // held while the fields below are read or written, and so for up to Deadline
	found    *description // nil until the first person signs in, so that the service starts without the provider
	failure  error        // of the last attempt to find it
	failedAt time.Time
}

// description is how a provider describes itself.
type description struct {
	*oidc.Provider
	client oauth2.Config
}

// New returns a Provider.
func New(cfg Config) *Provider {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true} // people seldom sign in
	return &Provider{cfg: cfg, inFlight: make(chan struct{}, MaxInFlight), http: &http.Client{
		Transport:     bounded{transport, cfg},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       Deadline,
	}}
}

// Name returns the name that people know.
func (p *Provider) Name() string { return p.cfg.Name }

// Flow is the secret of a sign-in that has begun, which only the browser that began it may have. State, nonce
// and PKCE verifier are hashes of it.
type Flow string

// NewFlow returns the secret of a new sign-in.
func NewFlow() Flow { return Flow(rand.Text()) }

func (f Flow) hash(purpose string) string {
	sum := sha256.Sum256([]byte(purpose + ":" + string(f)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Account is an account at the provider.
type Account struct {
	Issuer, Subject string // name it for good
	Email           string // verified
	SignedInAt      time.Time
}

// Begin returns the provider's page for a flow. The person must sign in there again if fresh is set. The
// error is ErrDown.
func (p *Provider) Begin(ctx context.Context, flow Flow, fresh bool) (string, error) {
	found, err := p.find(ctx)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(flow.hash("nonce")), oauth2.S256ChallengeOption(flow.hash("verifier"))}
	if fresh {
		options = append(options, oauth2.SetAuthURLParam("max_age", "0")) // prompt=login means the same, but not every provider knows it
	}
	return found.client.AuthCodeURL(flow.hash("state"), options...), nil
}

// Finish returns the account about which the provider led back to a flow with an answer. Without a time of the
// sign-in there, it is the Unix epoch. Errors are ErrDown, ErrUnverified, ErrRefused and limits.ErrBusy.
func (p *Provider) Finish(ctx context.Context, flow Flow, answer url.Values) (a Account, err error) {
	code := answer.Get("code")
	switch {
	case flow == "" || answer.Get("state") != flow.hash("state"):
		return a, because(ErrRefused, "it has another state")
	case code == "":
		return a, because(ErrRefused, "it has no code, and the error "+answer.Get("error"))
	}
	select {
	case p.inFlight <- struct{}{}:
		defer func() { <-p.inFlight }()
	default:
		return a, limits.ErrBusy
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.http), Deadline)
	defer cancel()
	found, err := p.find(ctx)
	if err != nil {
		return a, err
	}
	tokens, err := found.client.Exchange(ctx, code, oauth2.VerifierOption(flow.hash("verifier")))
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError {
		return a, because(ErrRefused, err)
	}
	if err != nil {
		return a, because(ErrDown, err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	late := func() time.Time { return p.cfg.Now().Add(-Leeway) }
	token, err := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: late}).Verify(ctx, raw)
	switch {
	case err != nil:
		return a, because(ErrRefused, err)
	case token.Nonce != flow.hash("nonce"):
		return a, because(ErrRefused, "it has another nonce")
	case !validSubject(token.Subject):
		return a, because(ErrRefused, "its subject is not one")
	}
	return p.account(ctx, found, token, tokens)
}

// validSubject reports whether a text can be a provider's id of an account, by the standard.
func validSubject(text string) bool {
	return text != "" && len(text) <= 255 && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

// account returns the account of a token. The e-mail address is in the token or, as the standard has it for
// this flow, in the provider's answer about the person.
func (p *Provider) account(ctx context.Context, found *description, token *oidc.IDToken, tokens *oauth2.Token) (a Account, err error) {
	var c struct {
		Email    string `json:"email"`
		Verified any    `json:"email_verified"` // some providers write "true"
		SignedIn int64  `json:"auth_time"`
	}
	if err := token.Claims(&c); err != nil {
		return a, because(ErrRefused, err)
	}
	verified := c.Verified == true || c.Verified == "true"
	if c.Email == "" && found.UserInfoEndpoint() != "" {
		info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil {
			return a, because(ErrDown, err)
		}
		if info.Subject != token.Subject {
			return a, because(ErrRefused, "it is about two people")
		}
		c.Email, verified = info.Email, info.EmailVerified
	}
	if !verified {
		c.Email = ""
	}
	a = Account{p.cfg.Issuer, token.Subject, c.Email, time.Unix(min(c.SignedIn, p.cfg.Now().Unix()), 0)}
	if a.Email == "" {
		return a, ErrUnverified
	}
	return a, nil
}

// find returns the provider's description, which it reads the first time. The error is ErrDown.
func (p *Provider) find(ctx context.Context) (*description, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil && (p.failure == nil || p.cfg.Now().Sub(p.failedAt).Abs() >= retryAfter) {
		p.found, p.failure = p.cfg.describe(oidc.ClientContext(ctx, p.http))
		p.failedAt = p.cfg.Now()
	}
	if p.failure != nil {
		return nil, because(ErrDown, p.failure)
	}
	return p.found, nil
}

// describe reads the description of the provider.
func (c Config) describe(ctx context.Context) (*description, error) {
	remote, err := oidc.NewProvider(ctx, c.Issuer)
	if err != nil {
		return nil, err
	}
	endpoint := remote.Endpoint()
	if !c.reaches(endpoint.AuthURL) {
		return nil, errors.New("its description has no page to sign in")
	}
	var own struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := remote.Claims(&own); err != nil {
		return nil, err
	}
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // a guess would send a code twice
	if c.ClientSecret == "" || len(own.Methods) > 0 && !slices.Contains(own.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &description{remote, oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Endpoint: endpoint, RedirectURL: c.RedirectURL, Scopes: []string{oidc.ScopeOpenID, "email"}}}, nil
}

// reaches reports whether an address has the scheme of the issuer, so that a description sends no secrets in
// the clear.
func (c Config) reaches(address string) bool {
	scheme, _, _ := strings.Cut(c.Issuer, "://")
	return strings.HasPrefix(address, scheme+"://")
}

// bounded is a transport that reads at most maxAnswer bytes of an answer, and asks only what cfg reaches.
type bounded struct {
	http.RoundTripper
	cfg Config
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !b.cfg.reaches(r.URL.String()) {
		return nil, errors.New("the address has another scheme than the issuer")
	}
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}
