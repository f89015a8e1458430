package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/internal/outbound"
)

// Limits of requests to a service.
const (
	// FetchTimeout bounds a request.
	FetchTimeout = 5 * time.Second
	// MaxStatusSize bounds the answer, in bytes.
	MaxStatusSize = 4 << 20
)

// ErrNoService is returned by FetchStatus when nothing listens at the address.
var ErrNoService = errors.New("no service answers")

// FetchStatus returns the status of the service at a base URL such as
// http://127.0.0.1:8080. The key may be empty where the service wants none. It returns
// ErrNoService when no service runs there.
func FetchStatus(ctx context.Context, baseURL, key string) (Status, error) {
	code, text, err := fetch(ctx, baseURL, "status", key)
	if err != nil {
		return Status{}, err
	}
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		return Status{}, fmt.Errorf("%s wants a key of the operator; set the environment variable QUITTANCE_API_KEY to one", baseURL)
	}
	if code != http.StatusOK {
		return Status{}, fmt.Errorf("%s answers %d %s when asked for its status; is that a Quittance service?", baseURL, code, http.StatusText(code))
	}
	var st Status
	if err := json.Unmarshal(text, &st); err != nil || st.Chains == nil {
		return Status{}, fmt.Errorf("%s answers no status of a Quittance service", baseURL)
	}
	return st, nil
}

// CheckReady returns nil if the service at a base URL is ready, apart from what is
// excluded, such as "chains"; and otherwise an error with what its /readyz answers. It
// returns ErrNoService when no service runs there.
func CheckReady(ctx context.Context, baseURL string, exclude ...string) error {
	code, text, err := fetch(ctx, baseURL, "readyz", "", exclude...)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s is not ready: %d %s", baseURL, code, bytes.TrimSpace(text))
	}
	return err
}

// fetch gets a path of the service at a base URL, with a parameter for each part to
// exclude.
func fetch(ctx context.Context, baseURL, path, key string, exclude ...string) (code int, body []byte, err error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return 0, nil, fmt.Errorf("%q is no address of a service; want one such as http://127.0.0.1:8080", baseURL)
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
	transport := outbound.Transport{Base: &http.Transport{DisableKeepAlives: true}}
	answer, err := transport.RoundTrip(r)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return 0, nil, fmt.Errorf("%w at %s: %w", ErrNoService, baseURL, dial.Err)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("ask the service at %s: %w", baseURL, err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxStatusSize))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer of %s: %w", baseURL, err)
	}
	return answer.StatusCode, text, nil
}
