package e2e

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/webhook"
)

// rotating is a merchant's endpoint during rotations of its secret. It verifies each
// delivery with all valid secrets, as the interface specifies, and with a single one, as
// libraries of Standard Webhooks do. The merchant replaces the single secret after a new
// one was staged and before the old one ends.
type rotating struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	trusted  []string        // secrets of the first way
	single   string          // secret of the second way
	dead     []string        // secrets that must not sign: dropped or never valid
	came     map[string]bool // events, by delivery
	pings    int
	active   map[string]int // deliveries by the secret of their X-Service-Signature
	refused  []error
	forged   int
	failures int // number of events to refuse, so that retries are in flight
}

func newRotating(t *testing.T) *rotating {
	r := &rotating{t: t, came: make(map[string]bool), active: make(map[string]int)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.accept))
	t.Cleanup(r.Close)
	return r
}

func (r *rotating) accept(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	header, now := req.Header.Get(webhook.HeaderSignature), time.Now()
	byInterface := errors.New("no secret is trusted")
	for _, secret := range r.trusted {
		if byInterface = webhook.Verify(secret, header, body, now); byInterface == nil {
			r.active[secret]++
			break
		}
	}
	ping := req.Header.Get(webhook.HeaderEvent) == "webhook.ping"
	byStandard := standard(r.single, req.Header, body)
	if ping { // signed only with the staged secret
		byStandard = standard(r.trusted[len(r.trusted)-1], req.Header, body)
		r.pings++
	}
	for _, err := range []error{byInterface, byStandard} {
		if err != nil {
			r.refused = append(r.refused, err)
		}
	}
	altered := append([]byte{' '}, body...)
	for _, secret := range r.dead {
		if webhook.Verify(secret, header, body, now) == nil || standard(secret, req.Header, body) == nil {
			r.forged++
		}
	}
	for _, secret := range r.trusted {
		if webhook.Verify(secret, header, altered, now) == nil || standard(secret, req.Header, altered) == nil {
			r.forged++
		}
	}
	if byInterface != nil || byStandard != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.failures > 0 && !ping {
		r.failures--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if !ping {
		r.came[req.Header.Get(webhook.HeaderDelivery)] = true
	}
	w.WriteHeader(http.StatusNoContent)
}

func standard(secret string, h http.Header, body []byte) error {
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return verifier.Verify(body, h)
}

// change changes the secrets that the merchant trusts.
func (r *rotating) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// signed returns the number of deliveries that were signed only with the given secret.
func (r *rotating) signed(secret string) (n int) {
	r.change(func() { n = r.active[secret] })
	return n
}

// TestExtraRotationUnderLoad rotates a merchant's secret repeatedly while events are delivered,
// some of them several times.
func TestExtraRotationUnderLoad(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quick)
	ctx := within(t, 2*patience)
	api, merchant := w.api(), w.info.Load().Merchant.ID
	r := newRotating(t)
	var refused *client.Error
	if _, err := api.Webhook(ctx, merchant); !errors.As(err, &refused) || refused.Code != apitypes.CodeNotFound {
		t.Errorf("before it is set, the endpoint is %v", err)
	}
	_, secret, err := api.PutWebhook(ctx, merchant, r.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.change(func() {
		r.trusted, r.single, r.failures = []string{secret}, secret, 3
		r.dead = []string{"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	})

	stop := make(chan struct{})
	created := make([]int, 3)
	var load sync.WaitGroup
	for i := range created {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := api.CreateInvoice(ctx, w.draft("1000000")); err != nil {
					t.Errorf("create: %v", err)
					return
				}
				created[i]++
			}
		})
	}
	// enough waits until a secret has signed some deliveries.
	enough := func(secret string) {
		t.Helper()
		from := r.signed(secret)
		if err := await(ctx, func() bool { return r.signed(secret) >= from+20 }); err != nil {
			t.Fatalf("nothing is signed with the secret in use: %v", err)
		}
	}
	enough(secret)
	for round := range 3 {
		_, dropped, err := api.StageWebhookSecret(ctx, merchant)
		if err != nil {
			t.Fatal(err)
		}
		if err := api.DropWebhookSecret(ctx, merchant); err != nil {
			t.Fatal(err)
		}
		_, next, err := api.StageWebhookSecret(ctx, merchant)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := api.PromoteWebhookSecret(ctx, merchant); !errors.As(err, &refused) || refused.Code != apitypes.CodePingFailed {
			t.Errorf("a secret that the endpoint does not know is promoted: %v", err)
		}
		r.change(func() {
			if len(r.refused) != 2 { // the ping, which both ways refuse
				t.Errorf("round %d: refused were %v", round, r.refused)
			}
			r.trusted, r.refused = append(r.trusted, next), nil
		})
		enough(secret)
		if round%2 == 0 {
			r.change(func() { r.single = next })
			enough(secret)
		}
		if _, err := api.PromoteWebhookSecret(ctx, merchant); err != nil {
			t.Fatal(err)
		}
		enough(next)
		r.change(func() {
			r.single, r.failures = next, r.failures+2
			// Deliveries that were leased before the secret was dropped have been sent.
			r.dead = append(r.dead, dropped)
		})
		secret = next
		enough(secret)
	}
	close(stop)
	load.Wait()

	total := 0
	for _, n := range created {
		total += n
	}
	count := func() (n int) {
		r.change(func() { n = len(r.came) })
		return n
	}
	if err := await(ctx, func() bool { return count() == total }); err != nil {
		t.Errorf("%d of %d events came: %v", count(), total, err)
	}
	r.change(func() {
		if len(r.refused) > 0 || r.forged > 0 || r.pings != 2*3 {
			t.Errorf("%d valid deliveries were refused (%v), %d forged ones accepted; %d pings came", len(r.refused), r.refused, r.forged, r.pings)
		}
		t.Logf("%d events in 3 rotations", total)
	})
	if a, err := api.PingWebhook(ctx, merchant); err != nil || a.Error != "" || a.StatusCode != http.StatusNoContent {
		t.Errorf("ping: %+v, %v", a, err)
	}
	// The single secret is the current one. The ping is signed with all.
	if hook, err := api.Webhook(ctx, merchant); err != nil || len(hook.Secrets) != 4 || hook.Secrets[0].State != "active" || hook.Secrets[3].State != "retiring" || hook.Health != apitypes.HealthOK {
		t.Errorf("in the end the endpoint is %+v, %v", hook, err)
	}
}
