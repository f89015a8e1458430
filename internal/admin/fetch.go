package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
)

// Limits of requests to a service.
const (
	// FetchTimeout bounds a request.
	FetchTimeout = 5 * time.Second
	// MaxStatusSize bounds the answer, in bytes.
	MaxStatusSize = 4 << 20
)

// ErrNoService is returned by FetchStatus if the address does not answer in time.
var ErrNoService = errors.New("no answer")

// Service is the address of a service.
type Service struct {
	URL string // base URL, such as http://127.0.0.1:8080
	// Dial is the host and port to connect to. Its certificate is verified for the host of URL.
	// If it is empty, the host and port of URL are used.
	Dial  string
	Roots *x509.CertPool // issuers of the certificate; nil: the machine's
}

// Transport returns a transport that connects to the service.
func (s Service) Transport() *http.Transport {
	t := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.Roots}}
	if s.Dial != "" {
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Dial)
		}
	}
	return t
}

// String returns the scheme and host of the URL and, if it differs, the address to connect to. The rest of the URL may
// have secrets.
func (s Service) String() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "the URL"
	}
	at := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	if s.Dial == "" || u.Host == s.Dial {
		return at
	}
	return at + " on " + s.Dial
}

// FetchStatus returns the status of a service. The key may be empty if the service wants no key. It
// returns ErrNoService without an answer.
func FetchStatus(ctx context.Context, s Service, key string) (Status, error) {
	code, text, err := fetch(ctx, s, "status", key)
	if err != nil {
		return Status{}, err
	}
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		return Status{}, fmt.Errorf("%s wants a key of the operator; set the environment variable QUITTANCE_API_KEY to one", s)
	}
	if code != http.StatusOK {
		return Status{}, fmt.Errorf("%s answers %d %s when asked for its status; is that a Quittance service?", s, code, http.StatusText(code))
	}
	var st Status
	if err := json.Unmarshal(text, &st); err != nil || st.Chains == nil {
		return Status{}, fmt.Errorf("%s answers no status of a Quittance service", s)
	}
	return st, nil
}

// CheckReady returns nil if a service is ready. It ignores the excluded checks, such as "chains".
// Otherwise it returns an error with the answer of /readyz, or ErrNoService without one.
func CheckReady(ctx context.Context, s Service, exclude ...string) error {
	code, text, err := fetch(ctx, s, "readyz", "", exclude...)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s is not ready: %d %s", s, code, bytes.TrimSpace(text))
	}
	return err
}

// fetch gets a path of a service, with a parameter for each part to exclude.
func fetch(ctx context.Context, s Service, path, key string, exclude ...string) (code int, body []byte, err error) {
	base, err := url.Parse(s.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return 0, nil, fmt.Errorf("%q is no address of a service; want one such as http://127.0.0.1:8080", access.WithoutQuery(s.URL))
	}
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	at := base.JoinPath(path)
	at.RawQuery = url.Values{"exclude": exclude}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	connections := s.Transport()
	connections.DisableKeepAlives = true
	transport := chain.Transport{Base: connections}
	answer, err := transport.RoundTrip(r)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return 0, nil, fmt.Errorf("%w at %s: %w", ErrNoService, s, dial.Err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return 0, nil, fmt.Errorf("%w at %s within %s", ErrNoService, s, FetchTimeout)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("ask the service at %s: %w", s, err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxStatusSize))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s: %w", s, err)
	}
	return answer.StatusCode, text, nil
}
