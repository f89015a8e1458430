package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/internal/x402"
)

// outside is an endpoint and a chain that do not answer until the test releases them.
type outside struct {
	fakeEndpoints
	facilitatorOf
	entered chan struct{}
	leave   chan struct{}
}

func (o *outside) await() {
	o.entered <- struct{}{}
	<-o.leave
}

func (o *outside) PingMerchant(context.Context, string) (webhooks.Attempt, error) {
	o.await()
	return webhooks.Attempt{Number: 1, StatusCode: http.StatusOK}, nil
}

func (o *outside) Promote(_ context.Context, id string) (webhooks.View, error) {
	o.await()
	return webhooks.View{MerchantID: id, Breaker: webhooks.NewBreaker}, nil
}

func (o *outside) Settle(context.Context, string, x402.Request) (apitypes.X402SettleResponse, error) {
	o.await()
	return apitypes.X402SettleResponse{Success: true}, nil
}

// x402Request is a request to a facilitator.
const x402Request = `{"x402Version":2,
	"paymentPayload":{"x402Version":2,"accepted":{"scheme":"exact","network":"eip155:8453","amount":"5","asset":"0x00000000000000000000000000000000000000a1","payTo":"0x00000000000000000000000000000000000000b2","maxTimeoutSeconds":60},
	"payload":{"signature":"0x01","authorization":{"from":"0x00000000000000000000000000000000000000c3","to":"0x00000000000000000000000000000000000000b2","value":"5",
		"validAfter":"0","validBefore":"1700000600","nonce":"0x9b2e4fc5bd1a5b1c8d3a6b7e0f4c2d1e9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d"}}},
	"paymentRequirements":{"scheme":"exact","network":"eip155:8453","amount":"5","asset":"0x00000000000000000000000000000000000000a1","payTo":"0x00000000000000000000000000000000000000b2","maxTimeoutSeconds":60,
		"extra":{"name":"USD Coin","version":"2"}}}`

// TestRequestsThatWaitOutside sends as many requests of a merchant that wait for an external party as
// permitted. One more is refused without any work, and another merchant's is not.
func TestRequestsThatWaitOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, also string // paths that share slots
		body       string
		most       int
	}{
		"pings":    {"/api/merchants/acme/webhook/ping", "/api/merchants/acme/webhook/secret/promote", "", api.MaxOwnPings},
		"settling": {"/x402/settle", "/x402/settle", x402Request, api.MaxOwnSettling},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &outside{fakeEndpoints: fakeEndpoints{new(backend)}, entered: make(chan struct{}), leave: make(chan struct{})}
			var refused []string
			h := api.New(api.Config{
				Endpoints: o, Facilitator: o, Now: testClock, Logger: slog.New(slog.DiscardHandler), Refused: func(limit string) { refused = append(refused, limit) },
			}).Handler()
			ask := func(path, owner string) *httptest.ResponseRecorder {
				r := newRequest("POST", strings.ReplaceAll(path, "acme", owner), c.body)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), access.Principal{KeyID: "key_" + owner, MerchantID: owner, Scopes: access.Admin})))
				return w
			}
			var group sync.WaitGroup
			hold := func(path, owner string) {
				group.Go(func() {
					if w := ask(path, owner); w.Code != http.StatusOK {
						t.Errorf("%s of %s is answered %d %s", path, owner, w.Code, w.Body)
					}
				})
				<-o.entered
			}
			for i := range c.most {
				hold([]string{c.path, c.also}[i%2], "acme")
			}
			for _, path := range []string{c.path, c.also} {
				w := ask(path, "acme")
				wantProblem(t, w, http.StatusTooManyRequests, "rate_limited", "")
				if w.Header().Get("Retry-After") != "5" {
					t.Errorf("headers %v", w.Header())
				}
			}
			hold(c.path, "acme2")
			close(o.leave)
			group.Wait()
			if len(refused) != 2 || refused[0] != name || refused[1] != name {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

// TestRefusedQuotas refuses merchants that have used up their quotas. Each refusal counts under the
// name of its quota. Refusals by other limits do not count here.
func TestRefusedQuotas(t *testing.T) {
	t.Parallel()
	b := newListBackend(1)
	refused := make(map[string]int)
	h := api.New(api.Config{
		Ledger: b, Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler),
		Refused: func(limit string) { refused[limit]++ },
	}).Handler()
	for _, limit := range append(access.Quotas, "another") {
		b.err = fmt.Errorf("wrapped: %w", &limits.ExceededError{Limit: limit, RetryAfter: "3600"})
		w := do(h, "GET", "/api/invoices/"+invoiceID(0), "")
		wantProblem(t, w, http.StatusTooManyRequests, "rate_limited", "")
		if got := w.Header().Get("Retry-After"); got != "3600" {
			t.Errorf("%s: Retry-After %q", limit, got)
		}
	}
	expect.NoDiff(t, cmp.Diff(map[string]int{"audit_storage": 1, "invoice_storage": 1}, refused), "refused")
}
