package server

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/access/keyringtest"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

// keyWorld is a database with merchants and endpoints that verify signatures.
type keyWorld struct {
	t        *testing.T
	cfg      Config
	receiver string
	arrived  chan string // bodies of events that a receiver has verified

	mu      sync.Mutex
	secrets map[string][]string // what the receivers accept, by merchant
}

func newKeyWorld(t *testing.T, database string) *keyWorld {
	w := &keyWorld{t: t, arrived: make(chan string, 100), secrets: make(map[string][]string)}
	receiver := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		merchant := strings.TrimPrefix(r.URL.Path, "/")
		w.mu.Lock()
		verifies := func(secret string) bool {
			return webhook.Verify(secret, r.Header.Get("X-Service-Signature"), body, time.Now()) == nil
		}
		verified := err == nil && slices.ContainsFunc(w.secrets[merchant], verifies)
		w.mu.Unlock()
		if !verified {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !bytes.Contains(body, []byte(webhooks.PingEvent)) {
			w.arrived <- string(body)
		}
	}))
	t.Cleanup(receiver.Close)
	c, _ := scripted(t, "house", 7)
	w.receiver = receiver.URL
	merchants := map[string]access.MerchantSettings{"cafe": {}, "bean": {}}
	w.cfg = Config{Database: database, Chains: []Chain{c}, Merchants: Merchants{Configured: merchants}, WebhookAllow: webhooks.Loopback()}
	return w
}

// start starts the service with a master key.
func (w *keyWorld) start(key access.MasterKey) *running {
	w.t.Helper()
	cfg := w.cfg
	cfg.Keyring = access.NewKeyring(key)
	return startServer(w.t, cfg)
}

// ask asks a replica, and expects success.
func (w *keyWorld) ask(method, url, body string) (got struct {
	Secret  string
	Webhook struct{ Secrets []struct{ ReplacedAt int64 } }
}) {
	w.t.Helper()
	a := ask(w.t, method, url, body)
	if a.status >= http.StatusMultipleChoices {
		w.t.Fatalf("%s %s: %d %s", method, url, a.status, a.body)
	}
	expect.OK(w.t, json.Unmarshal([]byte(a.body), &got))
	return got
}

// know makes a merchant's receiver accept a secret, in addition to earlier ones.
func (w *keyWorld) know(merchant, secret string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets[merchant] = append(w.secrets[merchant], secret)
}

// put sets the endpoint of a new merchant.
func (w *keyWorld) put(base, merchant string) {
	w.t.Helper()
	w.know(merchant, w.ask(http.MethodPut, base+"/api/merchants/"+merchant+"/webhook", fmt.Sprintf(`{"url":"%s/%s"}`, w.receiver, merchant)).Secret)
}

// deliver makes an event of a merchant, and waits until its receiver has verified it.
func (w *keyWorld) deliver(base, merchant string) {
	w.t.Helper()
	a := createFor(w.t, base, merchant, "house")
	var made struct{ Invoice struct{ ID string } }
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusCreated {
		w.t.Fatalf("create: %d %s, %v", a.status, a.body, err)
	}
	timeout := time.After(time.Minute)
	for {
		select {
		case body := <-w.arrived: // an event may arrive twice
			if strings.Contains(body, made.Invoice.ID) {
				return
			}
		case <-timeout:
			w.t.Fatalf("no event of %s arrived; the events are %s", merchant, ask(w.t, http.MethodGet, base+"/api/events?merchantId="+merchant, "").body)
		}
	}
}

// TestLostMasterKey follows the runbook "The master key was lost", for a merchant that gets its secret
// again and for one that replaces it once more.
func TestLostMasterKey(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newKeyWorld(t, fresh(t))
			r := w.start(keyringtest.Key(t))
			w.put(r.url, "cafe")
			w.put(r.url, "bean")
			w.deliver(r.url, "cafe")
			newer := keyringtest.Key(t)
			if all, _, err := admin.ReplaceSecrets(t.Context(), w.cfg.Database, access.NewKeyring(newer), nil); err == nil || len(all) > 0 {
				t.Fatalf("while the service runs: replaced %+v, %v", all, err)
			}
			r.stop()
			expect.OK(t, <-r.ended)
			began := time.Now()
			cfg := w.cfg
			cfg.Keyring, cfg.Listeners, cfg.Now, cfg.Logger, cfg.Rand = access.NewKeyring(newer), listenOn(t, Address{}), time.Now, slog.New(slog.DiscardHandler), rand.Reader
			if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "quittance secrets replace --config FILE") {
				t.Fatalf("with another key it ended with %v", err)
			}
			all, _, err := admin.ReplaceSecrets(t.Context(), w.cfg.Database, access.NewKeyring(newer), func([]webhooks.Replaced) error { return nil })
			if err != nil || len(all) != 2 {
				t.Fatalf("replaced %+v, %v", all, err)
			}
			r = w.start(newer)
			w.know("cafe", all[1].Secret)
			w.ask(http.MethodPost, r.url+"/api/merchants/cafe/webhook/ping", "")
			w.deliver(r.url, "cafe")
			bean := r.url + "/api/merchants/bean/webhook"
			if got := w.ask(http.MethodGet, bean, ""); len(got.Webhook.Secrets) != 1 || got.Webhook.Secrets[0].ReplacedAt == 0 {
				t.Errorf("the merchant does not see that its secret was replaced: %+v", got)
			}
			w.know("bean", w.ask(http.MethodPost, bean+"/secret", "").Secret)
			w.ask(http.MethodPost, bean+"/secret/promote", "")
			w.deliver(r.url, "bean")
			for _, merchant := range []string{"cafe", "bean"} {
				for _, s := range w.ask(http.MethodGet, r.url+"/api/merchants/"+merchant+"/webhook", "").Webhook.Secrets {
					if s.ReplacedAt != 0 {
						t.Errorf("%s: still shown as replaced", merchant)
					}
				}
			}
			t.Logf("from the failing start to delivered webhooks: %s", time.Since(began).Round(time.Millisecond))
		})
	}
}
