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

// infoPath is where a development world tells what Info says. It is read from
// this machine alone, since the world listens nowhere else and answers to no
// other host's name; a web page may not read it, since nothing allows it to.
const infoPath = "/dev/world"

// Limits of asking a world.
const (
	askTimeout = 5 * time.Second
	maxInfo    = 64 << 10 // bytes
)

// ErrNoWorld is matched by the error of Ask when what answers is no development
// world.
var ErrNoWorld = errors.New("is no development world, as quittance dev runs it")

// ServeHTTP answers with the information.
func (i Info) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(i) // who went away need not be told
}

// Ask returns what the development world at a base URL says of itself.
func Ask(ctx context.Context, baseURL string) (_ Info, err error) {
	at, err := url.JoinPath(baseURL, infoPath)
	if err != nil {
		return Info{}, fmt.Errorf("%q is no address of a service: %w", baseURL, err)
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
