package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/internal/outbound"
)

// infoPath is the path of a development world's Info. Only programs on this machine can
// read it, because the world listens on loopback and rejects foreign host names; web
// pages cannot, because no CORS header allows it.
const infoPath = "/dev/world"

// Limits of Ask.
const (
	askTimeout = 5 * time.Second
	maxInfo    = 64 << 10 // bytes
)

// ErrNoWorld is the error of Ask if the address is not a development world.
var ErrNoWorld = errors.New("is not a development world of quittance dev")

// ServeHTTP answers with the Info as JSON.
func (i Info) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(i) // it fails only if the client has disconnected
}

// Ask returns the Info of the development world at a base URL.
func Ask(ctx context.Context, baseURL string) (_ Info, err error) {
	at, err := url.JoinPath(baseURL, infoPath)
	if err != nil {
		return Info{}, fmt.Errorf("%q is not the address of a service: %w", baseURL, err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return Info{}, err
	}
	transport := outbound.Transport{Base: &http.Transport{DisableKeepAlives: true}} // without a proxy
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return Info{}, fmt.Errorf("ask %s for its world: %w", baseURL, err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	var info Info
	if answer.StatusCode != http.StatusOK {
		return Info{}, fmt.Errorf("%s %w: it answers %s", baseURL, ErrNoWorld, answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxInfo)).Decode(&info); err != nil || info.Chain.RPCURL == "" {
		return Info{}, fmt.Errorf("%s %w: it does not say what the world is", baseURL, ErrNoWorld)
	}
	return info, nil
}
