package admin

import (
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

// Limits of FetchStatus.
const (
	// FetchTimeout bounds the request for the status.
	FetchTimeout = 5 * time.Second
	// MaxStatusSize bounds the answer, in bytes.
	MaxStatusSize = 4 << 20
)

// ErrNoService is returned by FetchStatus when nothing listens at the address.
var ErrNoService = errors.New("no service answers")

// FetchStatus returns the status of the service at a base URL such as
// http://127.0.0.1:8080. It returns ErrNoService when no service runs there.
func FetchStatus(ctx context.Context, baseURL string) (_ Status, err error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return Status{}, fmt.Errorf("%q is no address of a service; want one such as http://127.0.0.1:8080", baseURL)
	}
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("status").String(), nil)
	if err != nil {
		return Status{}, err
	}
	transport := outbound.Transport{Base: &http.Transport{DisableKeepAlives: true}}
	answer, err := transport.RoundTrip(r)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return Status{}, fmt.Errorf("%w at %s: %w", ErrNoService, baseURL, dial.Err)
	}
	if err != nil {
		return Status{}, fmt.Errorf("ask the service at %s: %w", baseURL, err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return Status{}, fmt.Errorf("%s answers %s when asked for its status; is that a Quittance service?", baseURL, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxStatusSize))
	if err != nil {
		return Status{}, fmt.Errorf("read the status from %s: %w", baseURL, err)
	}
	var st Status
	if err := json.Unmarshal(text, &st); err != nil || st.Chains == nil {
		return Status{}, fmt.Errorf("%s answers no status of a Quittance service", baseURL)
	}
	return st, nil
}
