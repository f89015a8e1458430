package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
)

// infoPath is the path of a development world's Info. Only programs on this machine can
// read it, because the world listens on loopback and rejects foreign host names; web
// pages cannot, because no CORS header allows it.
const infoPath = "/dev/world"

// Limits of requests to a world.
const (
	askTimeout = 10 * time.Second
	maxInfo    = 64 << 10 // bytes
)

// ErrNoWorld is the error of Ask if the address does not belong to a development world.
var ErrNoWorld = errors.New("is not a development world of quittance dev")

// ServeHTTP answers with the Info as JSON.
func (i Info) ServeHTTP(w http.ResponseWriter, _ *http.Request) { sendJSON(w, http.StatusOK, i) }

// Ask returns the Info of the development world at a base URL.
func Ask(ctx context.Context, baseURL string) (Info, error) {
	var info Info
	if err := call(ctx, http.MethodGet, baseURL, infoPath, nil, &info); err != nil {
		return Info{}, err
	}
	if info.Chain.RPCURL == "" {
		return Info{}, fmt.Errorf("%s %w: it does not say what the world is", baseURL, ErrNoWorld)
	}
	return info, nil
}

// Clock returns the clock of the world at a base URL.
func Clock(ctx context.Context, baseURL string) (c ClockInfo, err error) {
	return c, call(ctx, http.MethodGet, baseURL, clockPath, nil, &c)
}

// Advance advances the clock of the world at a base URL, in whole seconds.
func Advance(ctx context.Context, baseURL string, by time.Duration) (c ClockInfo, err error) {
	return c, call(ctx, http.MethodPost, baseURL, advancePath, advanceRequest{int64(by / time.Second)}, &c)
}

// Hold stops the sealing of blocks for some seconds, except by Mine; 0 resumes it.
func (i Info) Hold(ctx context.Context, seconds int64) error {
	return call(ctx, http.MethodPost, i.BaseURL, holdPath, holdRequest{seconds}, new(ChainState))
}

// Mine seals a block.
func (i Info) Mine(ctx context.Context) error {
	return call(ctx, http.MethodPost, i.BaseURL, minePath, mineRequest{1}, new(ChainState))
}

// Reorg replaces the last depth blocks, and drops their transactions.
func (i Info) Reorg(ctx context.Context, depth int64) error {
	return call(ctx, http.MethodPost, i.BaseURL, reorgPath, reorgRequest{depth, true}, new(ChainState))
}

// Outage makes the chain's JSON-RPC refuse requests for some seconds.
func (i Info) Outage(ctx context.Context, seconds int64) error {
	return call(ctx, http.MethodPost, i.BaseURL, outagePath, outageRequest{seconds}, new(ChainState))
}

// call makes a request to a world, with body as JSON unless it is nil, and parses the
// answer into answer.
func call(ctx context.Context, method, baseURL, path string, body, answer any) (err error) {
	at, err := url.JoinPath(baseURL, path)
	if err != nil {
		return fmt.Errorf("%q is not the address of a service: %w", baseURL, err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	transport := chain.Transport{Base: &http.Transport{DisableKeepAlives: true}} // without a proxy
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("ask %s for its world: %w", baseURL, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(resp.Body, maxInfo)); err != nil {
		return fmt.Errorf("ask %s for its world: %w", baseURL, err)
	}
	var problem apitypes.Problem
	switch {
	case resp.StatusCode == http.StatusOK && json.Unmarshal(text, answer) == nil:
		return nil
	case resp.StatusCode == http.StatusBadRequest && json.Unmarshal(text, &problem) == nil:
		return errors.New(cmp.Or(problem.Detail, resp.Status))
	}
	return fmt.Errorf("%s %w: it answers %s", baseURL, ErrNoWorld, resp.Status)
}
