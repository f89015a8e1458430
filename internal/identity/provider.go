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
	"sync/atomic"
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
	// DescriptionLifetime is how long the provider's description and its keys are used until they are read again.
	DescriptionLifetime = time.Hour
	// retryAfter is how long the provider is not asked again for its description after it did not answer, or after
	// a token that its keys did not sign.
	retryAfter = 5 * time.Second
	// maxAnswer and maxHeaders bound an answer, in bytes.
	maxAnswer  = 1 << 20
	maxHeaders = 64 << 10
)

// Errors of a sign-in. Their text ends with the reason, which is for the log.
var (
	// ErrDown: the provider did not answer as it should.
	ErrDown = errors.New("the provider does not answer")
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
	reading  chan struct{} // has an element while the description is read, and so for up to Deadline
	// last is nil until the first person signs in, so that the service starts without the provider.
	last atomic.Pointer[description]
}

// description is how a provider describes itself, at a time and for a while.
type description struct {
	*oidc.Provider
	client oauth2.Config
	err    error // ErrDown, if it could not be read
	at     time.Time
	lasts  time.Duration
}

// New returns a Provider.
func New(cfg Config) *Provider {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders} // people seldom sign in
	return &Provider{cfg: cfg, inFlight: make(chan struct{}, MaxInFlight), reading: make(chan struct{}, 1), http: &http.Client{
		Transport:     bounded{transport, cfg},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       Deadline,
	}}
}

// Name returns the name that people know.
func (p *Provider) Name() string { return p.cfg.Name }

// Issuer returns the address that names the provider in accounts.
func (p *Provider) Issuer() string { return p.cfg.Issuer }

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
	SignedInAt      time.Time
}

// Begin returns the provider's page for a flow. The person must sign in there again if fresh is set, and chooses the
// account if choose is. The error is ErrDown.
func (p *Provider) Begin(ctx context.Context, flow Flow, fresh, choose bool) (string, error) {
	found, err := p.find(ctx)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(flow.hash("nonce")), oauth2.S256ChallengeOption(flow.hash("verifier"))}
	if fresh {
		options = append(options, oauth2.SetAuthURLParam("max_age", "0")) // prompt=login means the same, but not every provider knows it
	}
	if choose {
		options = append(options, oauth2.SetAuthURLParam("prompt", "select_account"))
	}
	return found.client.AuthCodeURL(flow.hash("state"), options...), nil
}

// Finish returns the account about which the provider led back to a flow with an answer. Without a time of the
// sign-in there, it is the Unix epoch. Errors are ErrDown, ErrRefused and limits.ErrBusy.
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
	if raw == "" { // the scope was changed on the way
		return a, because(ErrRefused, "it has no token")
	}
	late := func() time.Time { return p.cfg.Now().Add(-Leeway) }
	token, err := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: late}).Verify(ctx, raw)
	if err != nil {
		p.last.CompareAndSwap(found, &description{Provider: found.Provider, client: found.client, at: found.at, lasts: retryAfter}) // its keys may be elsewhere by now
		return a, because(ErrRefused, err)
	}
	var own struct {
		SignedIn int64 `json:"auth_time"`
	}
	switch err := token.Claims(&own); {
	case err != nil:
		return a, because(ErrRefused, err)
	case token.Nonce != flow.hash("nonce"):
		return a, because(ErrRefused, "it has another nonce")
	case !validSubject(token.Subject):
		return a, because(ErrRefused, "its subject is not one")
	}
	return Account{p.cfg.Issuer, token.Subject, time.Unix(min(own.SignedIn, p.cfg.Now().Unix()), 0)}, nil
}

// validSubject reports whether a text can be a provider's id of an account, by the standard.
func validSubject(text string) bool {
	return text != "" && len(text) <= 255 && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

// find returns the provider's description. It reads it again if the last one is too old. Others use that one until the
// reading ends, and also if it fails. The error is ErrDown.
func (p *Provider) find(ctx context.Context) (last *description, err error) {
	last = p.last.Load()
	if last != nil && p.counts(last) {
		return last, last.err
	}
	if last == nil {
		select {
		case p.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, because(ErrDown, ctx.Err())
		}
	} else {
		select {
		case p.reading <- struct{}{}:
		default:
			return last, last.err
		}
	}
	defer func() { <-p.reading }()
	former := p.last.Load()
	if former != nil && p.counts(former) { // another request has just read it
		return former, former.err
	}
	last, err = p.cfg.describe(oidc.ClientContext(context.WithoutCancel(ctx), p.http)) // if this request ends, it must not fail for others
	switch {
	case err == nil:
	case former != nil && former.err == nil:
		last = &description{Provider: former.Provider, client: former.client, lasts: retryAfter}
	default:
		last = &description{err: because(ErrDown, err), lasts: retryAfter}
	}
	last.at = p.cfg.Now()
	p.last.Store(last)
	return last, last.err
}

// counts reports whether a description, or the failure to read one, is recent enough to be used.
func (p *Provider) counts(d *description) bool { return p.cfg.Now().Sub(d.at).Abs() < d.lasts }

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
	client := oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Endpoint: endpoint, RedirectURL: c.RedirectURL, Scopes: []string{oidc.ScopeOpenID}}
	return &description{Provider: remote, client: client, lasts: DescriptionLifetime}, nil
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
