package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/dev/devchain"
)

// Limits of requests to the control routes.
const (
	maxHold   = 600 // seconds
	maxOutage = 60  // seconds
	maxMine   = 10  // blocks; each has a timestamp one second after the last
	maxBody   = 4 << 10
)

// syncTimeout bounds awaitSync, and syncPoll is its interval.
const (
	syncTimeout = 3 * time.Second
	syncPoll    = 10 * time.Millisecond
)

// control serves the routes that change a world's time and its chain.
type control struct {
	clock *worldClock
	node  *devchain.Chain
	info  Info
}

// routes returns the routes. A web page cannot use them, because both the service and the routes refuse foreign
// origins.
func (c *control) routes() map[string]http.Handler {
	protect := http.NewCrossOriginProtection().Handler
	return map[string]http.Handler{
		"GET " + clockPath:    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { sendJSON(w, http.StatusOK, c.clock.info()) }),
		"POST " + advancePath: protect(handle(c.advanceWorld)),
		"POST " + holdPath:    protect(handle(c.hold)),
		"POST " + minePath:    protect(handle(c.mine)),
		"POST " + reorgPath:   protect(handle(c.reorg)),
		"POST " + outagePath:  protect(handle(c.outage)),
	}
}

// Paths of the routes.
const (
	clockPath   = "/dev/clock"
	advancePath = "/dev/clock/advance"
	holdPath    = "/dev/chain/hold"
	minePath    = "/dev/chain/mine"
	reorgPath   = "/dev/chain/reorg"
	outagePath  = "/dev/chain/outage"
)

// The bodies of requests.
type (
	holdRequest struct {
		Seconds int64 `json:"seconds"`
	}
	outageRequest struct {
		Seconds int64 `json:"seconds"`
	}
	mineRequest struct {
		Blocks int64 `json:"blocks"`
	}
	reorgRequest struct {
		Depth int64 `json:"depth"`
		Drop  bool  `json:"drop"` // drop the transactions of the replaced blocks and of the pool
	}
)

// ChainState is the answer to a change of the chain.
type ChainState struct {
	Head uint64 `json:"head"`
}

// hold stops the periodic sealing of blocks for some seconds; 0 resumes it.
func (c *control) hold(ctx context.Context, r holdRequest) (ChainState, error) {
	if r.Seconds < 0 || r.Seconds > maxHold {
		return ChainState{}, invalidField("seconds", fmt.Sprintf("it is %d; want 0 to %d", r.Seconds, maxHold))
	}
	c.node.Hold(time.Duration(r.Seconds) * time.Second)
	return c.state(ctx)
}

// mine seals blocks immediately, even while they are held.
func (c *control) mine(ctx context.Context, r mineRequest) (ChainState, error) {
	if r.Blocks < 1 || r.Blocks > maxMine {
		return ChainState{}, invalidField("blocks", fmt.Sprintf("it is %d; want 1 to %d", r.Blocks, maxMine))
	}
	for range r.Blocks {
		if err := c.node.Seal(ctx); err != nil {
			return ChainState{}, err
		}
	}
	return c.state(ctx)
}

// reorg replaces blocks that are not final.
func (c *control) reorg(ctx context.Context, r reorgRequest) (ChainState, error) {
	if r.Depth < 1 || r.Depth > int64(devchain.FinalityDepth) {
		return ChainState{}, invalidField("depth", fmt.Sprintf("it is %d; want 1 to %d, since older blocks are final", r.Depth, devchain.FinalityDepth))
	}
	if err := c.node.Reorg(ctx, uint64(r.Depth), r.Drop); err != nil {
		return ChainState{}, err
	}
	return c.state(ctx)
}

// outage closes the chain's JSON-RPC port for some seconds.
func (c *control) outage(ctx context.Context, r outageRequest) (ChainState, error) {
	if r.Seconds < 1 || r.Seconds > maxOutage {
		return ChainState{}, invalidField("seconds", fmt.Sprintf("it is %d; want 1 to %d", r.Seconds, maxOutage))
	}
	err := c.node.Refuse(time.Duration(r.Seconds) * time.Second)
	if errors.Is(err, devchain.ErrRefusing) {
		return ChainState{}, invalidField("seconds", "the chain refuses requests already")
	}
	if err != nil {
		return ChainState{}, err
	}
	return c.state(ctx)
}

func (c *control) state(ctx context.Context) (ChainState, error) {
	head, err := c.node.Client().BlockNumber(ctx)
	return ChainState{head}, err
}

// awaitSync waits until the service has read the chain up to its head, or for syncTimeout.
func (c *control) awaitSync(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	at, err := c.state(ctx)
	for err == nil {
		var health struct {
			Ready  bool
			Chains []struct{ Indexed uint64 }
		}
		got := call(ctx, http.MethodGet, c.info.BaseURL, "/readyz", nil, &health)
		if got == nil && health.Ready && len(health.Chains) > 0 && health.Chains[0].Indexed >= at.Head || !clock.Sleep(ctx, syncPoll, nil) {
			return
		}
	}
}

// fieldError is an error in a member of a request's body.
type fieldError struct{ field, detail string }

func (e fieldError) Error() string { return e.field + ": " + e.detail }

func invalidField(field, detail string) error { return fieldError{field, detail} }

// handle returns a handler of requests with a JSON body.
func handle[Request, Answer any](do func(context.Context, Request) (Answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body Request
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&body); err != nil {
			refuse(w, http.StatusBadRequest, apitypes.CodeInvalidJSON, "", "The body is not as documented: "+err.Error()+".")
			return
		}
		answer, err := do(r.Context(), body)
		var field fieldError
		switch {
		case errors.As(err, &field):
			refuse(w, http.StatusBadRequest, apitypes.CodeInvalidField, field.field, err.Error()+".")
		case err != nil:
			refuse(w, http.StatusInternalServerError, apitypes.CodeInternal, "", err.Error()+".")
		default:
			sendJSON(w, http.StatusOK, answer)
		}
	})
}

func refuse(w http.ResponseWriter, status int, code apitypes.ErrorCode, field, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	sendJSON(w, status, apitypes.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Field: field, Detail: detail})
}

// sendJSON sends v. The media type is application/json unless one is set.
func sendJSON(w http.ResponseWriter, status int, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // it fails only if the client has disconnected
}
