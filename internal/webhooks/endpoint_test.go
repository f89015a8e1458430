package webhooks_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

const start = 1_764_000_000

// endpointWorld is a directory on a real store, with a scripted endpoint.
type endpointWorld struct {
	*webhooks.Directory
	db      *db.DB
	keyring *access.Keyring
	now     time.Time
	pings   []ping
	answer  string // error of the next pings
	onPing  func(context.Context)
}

type ping struct {
	to   webhooks.Endpoint
	id   string
	body []byte
}

var (
	configuredShop = access.MerchantSettings{WebhookURL: "https://shop.example/", WebhookSecret: "whsec_shop"}
	configured     = webhooks.Endpoint{URL: configuredShop.WebhookURL, Secret: configuredShop.WebhookSecret, Configured: true}
)

// open opens a directory on the database, with the keyring.
func (w *endpointWorld) open(t *testing.T, change ...func(*webhooks.DirectoryConfig)) error {
	t.Helper()
	c := webhooks.DirectoryConfig{
		Store: w.db, Configured: map[string]access.MerchantSettings{"shop": configuredShop, "cafe": {}},
		Known: func(id string) bool { return id != "unknown" },
		Guard: webhooks.NewGuard([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}),
		Ping: func(ctx context.Context, to webhooks.Endpoint, id string, body []byte) webhooks.Attempt {
			w.pings = append(w.pings, ping{to, id, body})
			if w.onPing != nil {
				w.onPing(ctx)
			}
			return webhooks.Attempt{Number: 1, Error: w.answer}
		},
		Keyring: w.keyring, Now: func() time.Time { return w.now }, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	d, err := webhooks.OpenDirectory(t.Context(), c)
	w.Directory = d
	return err
}

// openWith opens a directory on the database, with another keyring.
func (w *endpointWorld) openWith(t *testing.T, k *access.Keyring) error {
	t.Helper()
	w.keyring = k
	return w.open(t)
}

// each runs a test on a directory with a keyring, on both databases.
func each(t *testing.T, test func(t *testing.T, w *endpointWorld)) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := &endpointWorld{db: store, keyring: keyringtest.New(t), now: time.Unix(start, 0)}
		expect.OK(t, w.open(t))
		test(t, w)
	})
}

// signing returns a merchant's endpoint, with the secrets that sign its events.
func (w *endpointWorld) signing(t *testing.T, id string) webhooks.Endpoint {
	t.Helper()
	found, err := w.Endpoints(t.Context(), []string{"unknown", id})
	expect.OK(t, err)
	return found[id]
}

func states(v webhooks.View) (all []webhooks.SecretState) {
	for _, s := range v.Secrets {
		all = append(all, s.State)
	}
	return all
}

// TestRotation sets an endpoint, and stages, drops and promotes secrets.
func TestRotation(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		const id = "cafe"
		var headers []access.WebhookHeader
		want := func(step string, url, active string, others ...string) {
			t.Helper()
			if diff := cmp.Diff(webhooks.Endpoint{URL: url, Secret: active, Others: others, Headers: headers}, w.signing(t, id)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", step, diff)
			}
		}
		if _, err := w.View(t.Context(), id); !errors.Is(err, webhooks.ErrNone) {
			t.Fatalf("before the first put: %v", err)
		}
		v, first, err := w.Put(t.Context(), id, webhooks.Settings{URL: "https://cafe.example/a"})
		if err != nil || !strings.HasPrefix(first, "whsec_") || v.URL != "https://cafe.example/a" || v.ChangedAt.Unix() != start || v.Configured {
			t.Fatalf("put: %+v, %q, %v", v, first, err)
		}
		want("put", "https://cafe.example/a", first)
		rowtest.Insert(t, w.db, rowtest.Sample("inv_1", id))
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), w.db, id, webhooks.Breaker{State: webhooks.BreakerGone, Allowed: 1, Pauses: 1}))
		v, again, err := w.Put(t.Context(), id, webhooks.Settings{URL: "https://cafe.example/b"})
		if err != nil || again != "" || v.Breaker.State != webhooks.BreakerClosed || !slices.Equal(states(v), []webhooks.SecretState{webhooks.SecretActive}) {
			t.Fatalf("put again: %+v, %q, %v", v, again, err)
		}
		want("put again", "https://cafe.example/b", first)

		expect.Error(t, webhooks.ErrNotStaged, "promote nothing")(w.Promote(t.Context(), id))
		expect.Error(t, webhooks.ErrNotStaged, "unstage nothing")(w.Unstage(t.Context(), id))
		_, dropped, err := w.Stage(t.Context(), id)
		expect.OK(t, err)
		want("staged", "https://cafe.example/b", first, dropped)
		expect.Error(t, webhooks.ErrStaged, "stage twice")(w.Stage(t.Context(), id))
		expect.OK(t, w.Unstage(t.Context(), id))
		want("dropped", "https://cafe.example/b", first)
		_, second, err := w.Stage(t.Context(), id)
		if err != nil || second == first || second == dropped {
			t.Fatalf("stage: %q, %v", second, err)
		}

		gateway := "Bearer of-the-gateway"
		_, _, err = w.Put(t.Context(), id, webhooks.Settings{URL: "https://cafe.example/b", Headers: []webhooks.HeaderChange{{Name: "Authorization", Value: &gateway}}})
		expect.OK(t, err)
		headers = []access.WebhookHeader{{Name: "Authorization", Value: gateway}}
		w.answer = "answered 401, expected 2xx"
		var refused *webhooks.PingError
		if _, err := w.Promote(t.Context(), id); !errors.As(err, &refused) || refused.Answer != w.answer {
			t.Errorf("promote what the endpoint refuses: %v", err)
		}
		want("not promoted", "https://cafe.example/b", first, second)
		w.answer = ""
		v, err = w.Promote(t.Context(), id)
		if err != nil || !slices.Equal(states(v), []webhooks.SecretState{webhooks.SecretActive, webhooks.SecretRetiring}) || v.Secrets[1].ValidUntil.Unix() != start+86400 {
			t.Fatalf("promote: %+v, %v", v, err)
		}
		want("promoted", "https://cafe.example/b", second, first)
		for _, p := range w.pings {
			expect.NoDiff(t, cmp.Diff(webhooks.Endpoint{URL: "https://cafe.example/b", Secret: second, Headers: headers}, p.to), "pinged")
		}

		_, third, err := w.Stage(t.Context(), id)
		expect.OK(t, err)
		expect.Success(t)(w.Promote(t.Context(), id))
		want("promoted again", "https://cafe.example/b", third, second, first)
		_, fourth, err := w.Stage(t.Context(), id)
		expect.OK(t, err)
		w.answer = "answered 401, expected 2xx"
		if _, err := w.Promote(t.Context(), id); !errors.As(err, &refused) {
			t.Errorf("promote what the endpoint refuses while two secrets retire: %v", err)
		}
		want("not promoted again", "https://cafe.example/b", third, fourth, second, first)
		w.answer = ""
		expect.Success(t)(w.Promote(t.Context(), id))
		want("the oldest ends", "https://cafe.example/b", fourth, third, second)
		w.now = w.now.Add(webhooks.RetirementPeriod)
		want("two have retired", "https://cafe.example/b", fourth)
		_, fifth, err := w.Stage(t.Context(), id)
		expect.OK(t, err)
		expect.Success(t)(w.Promote(t.Context(), id))
		want("after two have retired", "https://cafe.example/b", fifth, fourth)
		expect.Success(t)(webhooks.NewTables(w.db).DropRetiredSecrets(t.Context(), w.now.Add(time.Second)))
		second, first = fifth, fourth

		w.now = w.now.Add(webhooks.RetirementPeriod - time.Second)
		want("a day later", "https://cafe.example/b", second, first)
		w.now = w.now.Add(time.Second)
		want("a second later still", "https://cafe.example/b", second)
		if v, err := w.View(t.Context(), id); err != nil || len(v.Secrets) != 1 {
			t.Errorf("shown are %+v, %v", v.Secrets, err)
		}
		for i, want := range []int64{0, 1} {
			if n, err := webhooks.NewTables(w.db).DropRetiredSecrets(t.Context(), w.now.Add(time.Duration(i)*time.Second)); n != want || err != nil {
				t.Errorf("dropped %d, %v, want %d", n, err, want)
			}
		}
	})
}

// TestSecretIsNotLost expects that a new secret is returned, or not made, if the breaker cannot be read.
func TestSecretIsNotLost(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		down := errors.New("disk full")
		breakers := func(c *webhooks.DirectoryConfig) {
			c.Breakers = func(context.Context, []string) (map[string]webhooks.Breaker, error) {
				return map[string]webhooks.Breaker{"cafe": webhooks.NewBreaker}, down
			}
		}
		expect.OK(t, w.open(t, breakers))
		v, secret, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://cafe.example/"})
		if err != nil || secret == "" || v.URL != "https://cafe.example/" || v.Breaker != webhooks.NewBreaker || len(v.Secrets) != 1 {
			t.Errorf("put: %+v, %q, %v", v, secret, err)
		}
		if _, _, err := w.Stage(t.Context(), "cafe"); !errors.Is(err, down) {
			t.Errorf("stage: %v", err)
		}
		down = nil
		v, secret, err = w.Stage(t.Context(), "cafe")
		if err != nil || secret == "" || !slices.Equal(states(v), []webhooks.SecretState{webhooks.SecretStaged, webhooks.SecretActive}) {
			t.Errorf("stage: %+v, %q, %v", v, secret, err)
		}
	})
}

// TestPromoteOfADroppedSecret drops the staged secret during the ping, and then stages another with the same version.
func TestPromoteOfADroppedSecret(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		_, first, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://cafe.example/"})
		expect.OK(t, err)
		expect.Success(t)(w.Stage(t.Context(), "cafe"))
		w.onPing = func(ctx context.Context) { expect.NoError(t, w.Unstage(ctx, "cafe")) }
		expect.Error(t, webhooks.ErrNotStaged, "promote")(w.Promote(t.Context(), "cafe"))
		if got := w.signing(t, "cafe"); got.Secret != first || got.Others != nil {
			t.Errorf("events are signed with %+v", got)
		}
		expect.Success(t)(w.Stage(t.Context(), "cafe"))
		w.onPing = func(ctx context.Context) {
			err := w.Unstage(ctx, "cafe")
			if _, _, staged := w.Stage(ctx, "cafe"); err != nil || staged != nil {
				t.Error(err, staged)
			}
		}
		expect.Error(t, webhooks.ErrNotStaged, "promote")(w.Promote(t.Context(), "cafe"))
		if got := w.signing(t, "cafe"); got.Secret != first {
			t.Errorf("events are signed with %+v", got)
		}
	})
}

// TestPromoteAfterPut sets another URL during the ping.
func TestPromoteAfterPut(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		_, first, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://cafe.example/old"})
		expect.OK(t, err)
		_, second, err := w.Stage(t.Context(), "cafe")
		expect.OK(t, err)
		w.onPing = func(ctx context.Context) {
			if _, _, err := w.Put(ctx, "cafe", webhooks.Settings{URL: "https://cafe.example/new"}); err != nil {
				t.Error(err)
			}
		}
		var refused *webhooks.PingError
		if _, err := w.Promote(t.Context(), "cafe"); !errors.As(err, &refused) || !strings.Contains(refused.Answer, "another URL") {
			t.Errorf("promote what the old URL knows: %v", err)
		}
		if got := w.signing(t, "cafe"); got.Secret != first || !slices.Equal(got.Others, []string{second}) {
			t.Errorf("events are signed with %+v", got)
		}
		if v, err := w.Promote(t.Context(), "cafe"); err != nil || v.URL != "https://cafe.example/new" {
			t.Errorf("promote what the new one knows: %+v, %v", v, err)
		}
		if got := w.signing(t, "cafe"); got.Secret != second || w.pings[1].to.URL != got.URL {
			t.Errorf("events are signed with %+v, after pings of %+v", got, w.pings)
		}
	})
}

func TestPing(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		expect.Error(t, webhooks.ErrNone, "ping nothing")(w.PingMerchant(t.Context(), "cafe"))
		w.answer = "answered 500, expected 2xx"
		a, err := w.PingMerchant(t.Context(), "shop")
		if err != nil || a.Error != w.answer || len(w.pings) != 1 {
			t.Fatalf("ping: %+v, %v", a, err)
		}
		p := w.pings[0]
		var body map[string]any
		expect.OK(t, json.Unmarshal(p.body, &body))
		if diff := cmp.Diff(configured, p.to); diff != "" || !strings.HasPrefix(p.id, "dlv_") {
			t.Errorf("pinged as %s: %s", p.id, diff)
		}
		if id, _ := body["id"].(string); !strings.HasPrefix(id, "evt_") || body["type"] != "webhook.ping" || body["createdAt"] != float64(start) || !cmp.Equal(body["data"], map[string]any{}) || len(body) != 4 {
			t.Errorf("the ping is %s", p.body)
		}
	})
}

// TestChangesAreRefused expects errors for unknown merchants, configured endpoints and a missing keyring.
func TestChangesAreRefused(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		all := func(id string) map[string]error {
			_, _, put := w.Put(t.Context(), id, webhooks.Settings{URL: "https://cafe.example/"})
			_, _, stage := w.Stage(t.Context(), id)
			_, promote := w.Promote(t.Context(), id)
			return map[string]error{"put": put, "stage": stage, "promote": promote, "unstage": w.Unstage(t.Context(), id)}
		}
		for what, err := range all("unknown") {
			expect.Error(t, webhooks.ErrNone, "%s of an unknown merchant", what)(err)
		}
		for what, err := range all("shop") {
			expect.Error(t, webhooks.ErrConfigured, "%s where it is configured", what)(err)
		}
		if v, err := w.View(t.Context(), "shop"); err != nil || !v.Configured || v.URL != configured.URL || v.Secrets != nil || v.Breaker.State != webhooks.BreakerClosed {
			t.Errorf("the configured one is shown as %+v, %v", v, err)
		}
		if got := w.signing(t, "shop"); !cmp.Equal(got, configured) {
			t.Errorf("the configured one is %+v", got)
		}
		expect.OK(t, w.openWith(t, nil))
		for what, err := range all("cafe") {
			expect.Error(t, webhooks.ErrNoMasterKey, "%s without a master key", what)(err)
		}
		if w.pings != nil {
			t.Errorf("pinged %+v", w.pings)
		}
	})
}

// TestFallback expects an endpoint set through the API to take precedence.
func TestFallback(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		all := webhooks.Endpoint{URL: "http://127.0.0.1:9/", Secret: "whsec_all"}
		expect.OK(t, w.open(t, func(c *webhooks.DirectoryConfig) { c.Fallback = all }))
		if got := w.signing(t, "cafe"); !cmp.Equal(got, all) {
			t.Errorf("the fallback is %+v", got)
		}
		if v, err := w.View(t.Context(), "cafe"); err != nil || !v.Configured || v.URL != all.URL {
			t.Errorf("the fallback is shown as %+v, %v", v, err)
		}
		expect.Error(t, webhooks.ErrConfigured, "stage for the fallback")(w.Stage(t.Context(), "cafe"))
		expect.Success(t)(w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://cafe.example/"}))
		if got := w.signing(t, "cafe"); got.URL != "https://cafe.example/" {
			t.Errorf("the merchant's own is %+v", got)
		}
	})
}

func TestOptionalEvents(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		asks := []invoice.EventType{invoice.EventUnattributed}
		put := func(what, id string, set, want []invoice.EventType) {
			t.Helper()
			v, _, err := w.Put(t.Context(), id, webhooks.Settings{URL: "https://" + id + ".example/", Optional: set})
			if err != nil || !slices.Equal(v.Optional, want) {
				t.Errorf("%s: %v, %v; want %v", what, v.Optional, err, want)
			}
			if v, err = w.View(t.Context(), id); err != nil || !slices.Equal(v.Optional, want) {
				t.Errorf("%s, then read: %v, %v; want %v", what, v.Optional, err, want)
			}
		}
		put("left out", "cafe", nil, nil)
		put("set", "cafe", append(asks, asks...), asks)
		put("left out later", "cafe", nil, asks)
		put("none", "cafe", []invoice.EventType{}, nil)
		put("set again", "cafe", asks, asks)

		var wrong *invoice.FieldError
		if _, _, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://other.example/", Optional: []invoice.EventType{invoice.EventUnattributed, invoice.EventPaid}}); !errors.As(err, &wrong) || wrong.Field != "optionalEvents[1]" {
			t.Errorf("one that is not optional: %v", err)
		}
		if v, err := w.View(t.Context(), "cafe"); err != nil || v.URL != "https://cafe.example/" || !slices.Equal(v.Optional, asks) {
			t.Errorf("the refused change was made: %+v, %v", v, err)
		}

		// A merchant cannot remove a configured type.
		expect.OK(t, w.open(t, func(c *webhooks.DirectoryConfig) {
			shop := configuredShop
			shop.OptionalEvents = asks
			c.Configured = map[string]access.MerchantSettings{"bar": {OptionalEvents: asks}, "shop": shop}
		}))
		put("configured", "bar", []invoice.EventType{}, asks)
		if v, err := w.View(t.Context(), "shop"); err != nil || !slices.Equal(v.Optional, asks) {
			t.Errorf("the configured endpoint is sent %v, %v", v.Optional, err)
		}
		// A configured endpoint has only the configured types.
		expect.OK(t, w.open(t, func(c *webhooks.DirectoryConfig) { c.Configured["cafe"] = configuredShop }))
		if v, err := w.View(t.Context(), "cafe"); err != nil || len(v.Optional) != 0 || len(w.OptionalEvents("cafe", asks)) != 0 {
			t.Errorf("an endpoint that the configuration has now is sent %v, %v", v.Optional, err)
		}
	})
}

func TestURLs(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		longest := "https://cafe.example/" + strings.Repeat("x", webhooks.MaxURL-len("https://cafe.example/"))
		for url, want := range map[string]string{
			"https://cafe.example/ ": "has a blank", " https://cafe.example/": "has a blank", "https://cafe.example:99999/": "has the port 99999; want 1 to 65535",
			"https://cafe.example/a?b=c": "", "https://8.8.8.8:8443/": "", "http://10.1.2.3/": "", "https://10.1.2.3/": "",
			"http://name.internal/": "", longest: "", // addresses of names are checked when dialed
			longest + "x": "at most 2048 bytes", "": "begins with https", "cafe.example": "begins with https", "ftp://cafe.example/": "begins with https",
			"https:///x": "begins with https", "https://:443/": "begins with https", "https://cafe.example/#x": "without fragment", "https://me@cafe.example/": "user information",
			"https://me:pw@cafe.example/": "user information", "https://cafe.example:port/": "begins with https", "http://8.8.8.8/": "without TLS",
			"https://127.0.0.1/": "not on the public internet", "https://[::1]/": "not on the public internet", "http://169.254.169.254/": "not on the public internet",
			"https://[::ffff:127.0.0.1]/": "not on the public internet", "https://[fe80::1%25eth0]/": "not on the public internet",
		} {
			_, _, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: url})
			var wrong *invoice.FieldError
			switch {
			case want == "" && err != nil:
				t.Errorf("%.60q is refused: %v", url, err)
			case want != "" && (!errors.As(err, &wrong) || wrong.Field != "url" || !strings.Contains(wrong.Detail, want)):
				t.Errorf("%.60q: %v; want it to say %q", url, err, want)
			}
		}
	})
}

// TestMasterKeys opens directories with other master keys.
func TestMasterKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := &endpointWorld{db: store, now: time.Unix(start, 0)}
		old, newer := keyringtest.Key(t), keyringtest.Key(t)
		expect.OK(t, w.openWith(t, access.NewKeyring(old)))
		_, secret, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://cafe.example/"})
		expect.OK(t, err)
		for name, v := range map[string]*access.Keyring{"no": nil, "another": access.NewKeyring(newer)} {
			if err := w.openWith(t, v); err == nil || !strings.Contains(err.Error(), old.ID) {
				t.Errorf("with %s key it opens: %v", name, err)
			}
		}
		expect.OK(t, w.openWith(t, access.NewKeyring(newer, old)))
		if got := w.signing(t, "cafe"); got.Secret != secret {
			t.Errorf("with both keys it signs with %+v", got)
		}
		n, err := webhooks.Reseal(t.Context(), store, access.NewKeyring(newer, old), time.Now)
		if err != nil || n != 1 {
			t.Fatalf("resealed %d, %v", n, err)
		}
		if n, err := webhooks.Reseal(t.Context(), store, access.NewKeyring(newer, old), time.Now); err != nil || n != 0 {
			t.Errorf("resealed %d again, %v", n, err)
		}
		expect.OK(t, w.openWith(t, access.NewKeyring(newer)))
		if got := w.signing(t, "cafe"); got.Secret != secret {
			t.Errorf("with the new key it signs with %+v", got)
		}
		if n, err := webhooks.Reseal(t.Context(), store, access.NewKeyring(old), time.Now); !errors.Is(err, access.ErrNoKey) || n != 0 {
			t.Errorf("without the key, %d are resealed, %v", n, err)
		}
	})
}

// TestReplaceLost loses a master key: endpoints with secrets that were sealed under it get new secrets, which sign, and
// are shown as replaced until a ping is answered.
func TestReplaceLost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := &endpointWorld{db: store, now: time.Unix(start, 0)}
		lost, kept, newer := keyringtest.Key(t), keyringtest.Key(t), keyringtest.Key(t)
		value := "v"
		secrets := make(map[string]string)
		put := func(k *access.Keyring, id string, headers ...webhooks.HeaderChange) {
			t.Helper()
			expect.OK(t, w.openWith(t, k))
			_, secret, err := w.Put(t.Context(), id, webhooks.Settings{URL: "https://" + id + ".example/", Headers: headers})
			expect.OK(t, err)
			secrets[id] = secret
		}
		put(access.NewKeyring(lost), "cafe", webhooks.HeaderChange{Name: "X-Key", Value: &value})
		put(access.NewKeyring(lost), "bean")
		put(access.NewKeyring(kept, lost), "kept", webhooks.HeaderChange{Name: "X-Key", Value: &value})
		put(access.NewKeyring(kept, lost), "staged")
		expect.OK(t, w.openWith(t, access.NewKeyring(lost, kept)))
		expect.Success(t)(w.Stage(t.Context(), "staged"))
		left := access.NewKeyring(newer, kept)
		if err := w.openWith(t, left); err == nil || !strings.Contains(err.Error(), "quittance secrets replace --config FILE") {
			t.Errorf("without the key it opens: %v", err)
		}
		wantLost := []webhooks.Lost{
			{MerchantID: "bean", URL: "https://bean.example/", KeyIDs: []string{lost.ID}, ActiveSecret: true},
			{MerchantID: "cafe", URL: "https://cafe.example/", KeyIDs: []string{lost.ID}, ActiveSecret: true, Headers: true},
			{MerchantID: "staged", URL: "https://staged.example/", KeyIDs: []string{lost.ID}, OtherSecrets: 1},
		}
		full := errors.New("the disk is full")
		now := func() time.Time { return w.now }
		for range 2 { // no secret changes while the replaced ones cannot be kept
			if got, err := webhooks.FindLost(t.Context(), store, left); err != nil || cmp.Diff(wantLost, got) != "" {
				t.Errorf("lost are %+v, %v; want %+v", got, err, wantLost)
			}
			if all, err := webhooks.ReplaceLost(t.Context(), store, left, now, rand.Reader, func([]webhooks.Replaced) error { return full }); !errors.Is(err, full) || len(all) != 0 {
				t.Errorf("replaced %+v, %v", all, err)
			}
		}
		var written []webhooks.Replaced
		all, err := webhooks.ReplaceLost(t.Context(), store, left, now, rand.Reader, func(batch []webhooks.Replaced) error {
			written = append(written, batch...)
			return nil
		})
		if err != nil || len(all) != 3 || !slices.Equal(written, all) {
			t.Fatalf("replaced %+v, kept %+v, %v", all, written, err)
		}
		for i, want := range []webhooks.Replaced{
			{"bean", "https://bean.example/", all[0].Secret, false}, {"cafe", "https://cafe.example/", all[1].Secret, true}, {"staged", "https://staged.example/", "", false},
		} {
			if all[i] != want || want.Secret == secrets[want.MerchantID] {
				t.Errorf("replaced %+v, want %+v", all[i], want)
			}
		}
		expect.OK(t, w.openWith(t, left))
		secrets["bean"], secrets["cafe"] = all[0].Secret, all[1].Secret
		for id, secret := range secrets {
			if got := w.signing(t, id); got.Secret != secret || len(got.Others) != 0 || len(got.Headers) != len(map[string][]int{"kept": {1}}[id]) {
				t.Errorf("%s: %+v, want the secret %s", id, got, secret)
			}
		}
		for _, answer := range []string{"refused", ""} {
			if v, err := w.View(t.Context(), "cafe"); err != nil || len(v.Secrets) != 1 || !v.Secrets[0].ReplacedAt.Equal(w.now) {
				t.Errorf("before a ping was answered: %+v, %v", v.Secrets, err)
			}
			w.answer = answer
			expect.Success(t)(w.PingMerchant(t.Context(), "cafe"))
		}
		if v, err := w.View(t.Context(), "cafe"); err != nil || !v.Secrets[0].ReplacedAt.IsZero() {
			t.Errorf("after a ping was answered: %+v, %v", v.Secrets, err)
		}
		expect.Success(t)(w.Stage(t.Context(), "bean"))
		if v, err := w.Promote(t.Context(), "bean"); err != nil || !v.Secrets[0].ReplacedAt.IsZero() || !v.Secrets[1].ReplacedAt.IsZero() {
			t.Errorf("after another rotation: %+v, %v", v.Secrets, err)
		}
		for action, want := range map[access.Action]int{access.ActionSecretsReplace: 3, access.ActionSecretConfirm: 1} {
			if entries, err := access.NewReader(store).AuditEntries(t.Context(), access.AuditFilter{Action: action, Limit: 9}); err != nil || len(entries) != want {
				t.Errorf("%s: the log has %+v, %v; want %d", action, entries, err, want)
			}
		}
		if all, err := webhooks.ReplaceLost(t.Context(), store, left, time.Now, rand.Reader, nil); err != nil || len(all) != 0 {
			t.Errorf("replaced again: %+v, %v", all, err)
		}
	})
}

// TestReseal needs more than one batch.
func TestReseal(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := &endpointWorld{db: store, now: time.Unix(start, 0)}
		old, newer := keyringtest.Key(t), keyringtest.Key(t)
		expect.OK(t, w.openWith(t, access.NewKeyring(old)))
		const merchants = webhooks.ResealBatch + 3
		for i := range merchants {
			expect.Success(t)(w.Put(t.Context(), "m"+strings.Repeat("x", i%60)+string(rune('a'+i/60)), webhooks.Settings{URL: "https://m.example/"}))
		}
		if n, err := webhooks.Reseal(t.Context(), store, access.NewKeyring(newer, old), time.Now); err != nil || n != merchants {
			t.Errorf("resealed %d, %v; want %d", n, err, merchants)
		}
		entries, err := access.NewReader(store).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionSecretsReseal, Limit: 9})
		if err != nil || len(entries) != 2 || entries[0].Object != access.NewKeyring(newer).KeyID() || entries[0].MerchantID != "" {
			t.Fatalf("the log has %+v, %v", entries, err)
		}
		before := `{"secrets":3,"keyIds":["` + access.NewKeyring(old).KeyID() + `"]}`
		if after := `{"secrets":3,"keyIds":["` + access.NewKeyring(newer).KeyID() + `"]}`; entries[0].Before != before || entries[0].After != after {
			t.Errorf("before %s, after %s", entries[0].Before, entries[0].After)
		}
	})
}

// sealed returns a sealed secret and the id of its key.
func sealed(int64) ([]byte, string, error) { return []byte{0, 255, 1}, "key1", nil }

// TestReplaceSealed expects a conflict if the secret was sealed again since it was read.
func TestReplaceSealed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		_, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: "m", URL: "https://shop.example/", ChangedAt: invoice.Unix(9)}, sealed)
		rowtest.Must(t, err)
		old := webhooks.SecretRow{MerchantID: "m", Version: 1, Sealed: []byte{0, 255, 1}, KeyID: "key1", State: webhooks.SecretActive, CreatedAt: invoice.Unix(9)}
		other, again := old, old
		other.Sealed = []byte("other")
		again.Sealed, again.KeyID = []byte("again"), "key9"
		if err := webhooks.ReplaceSealedOnce(t.Context(), s, again, other); !errors.Is(err, db.ErrConflict) {
			t.Errorf("replaced another than the stored one: %v, want ErrConflict", err)
		}
		rowtest.Must(t, webhooks.ReplaceSealedOnce(t.Context(), s, again, old))
		got, err := webhooks.Secrets(t.Context(), s, []string{"m"})
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff([]webhooks.SecretRow{again}, got["m"]), "")
	})
}

// TestAudit expects each change of an endpoint to be recorded, without secrets, and refused changes not to be recorded.
func TestAudit(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		const id = "cafe"
		ctx := access.WithPrincipal(t.Context(), access.Principal{KeyID: "key_1", MerchantID: id, Scopes: access.Admin})
		var secrets []string
		ok := func(secret string, err error) {
			t.Helper()
			expect.OK(t, err)
			if secret != "" {
				secrets = append(secrets, secret)
			}
		}
		_, secret, err := w.Put(ctx, id, webhooks.Settings{URL: "https://cafe.example/a?token=hidden"})
		ok(secret, err)
		_, secret, err = w.Put(ctx, id, webhooks.Settings{URL: "https://cafe.example/b"})
		ok(secret, err)
		_, secret, err = w.Stage(ctx, id)
		ok(secret, err)
		expect.Error(t, webhooks.ErrStaged, "stage twice")(w.Stage(ctx, id))
		ok("", w.Unstage(ctx, id))
		_, secret, err = w.Stage(ctx, id)
		ok(secret, err)
		_, err = w.Promote(ctx, id)
		ok("", err)

		entries, err := access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{MerchantID: id, Limit: 99})
		ok("", err)
		const (
			a         = `{"url":"https://cafe.example/a?…","secrets":[{"version":1,"state":"active"}]}`
			b         = `{"url":"https://cafe.example/b","secrets":[{"version":1,"state":"active"}]}`
			bStaged   = `{"url":"https://cafe.example/b","secrets":[{"version":2,"state":"staged"},{"version":1,"state":"active"}]}`
			bPromoted = `{"url":"https://cafe.example/b","secrets":[{"version":2,"state":"active"},{"version":1,"state":"retiring"}]}`
		)
		want := [][3]string{
			{"endpoint.secret.promote", bStaged, bPromoted}, {"endpoint.secret.stage", b, bStaged}, {"endpoint.secret.drop", bStaged, b},
			{"endpoint.secret.stage", b, bStaged}, {"endpoint.update", a, b}, {"endpoint.update", "", a},
		}
		var got [][3]string
		for _, e := range entries {
			got = append(got, [3]string{string(e.Action), e.Before, e.After})
			if e.Actor != "key_1" || e.Object != id || e.At.Unix() != start {
				t.Errorf("entry %+v", e)
			}
			for _, secret := range append(secrets, "hidden") {
				if strings.Contains(e.Before+e.After, secret) {
					t.Errorf("entry %d shows a secret: %+v", e.Seq, e)
				}
			}
		}
		expect.NoDiff(t, cmp.Diff(want, got), "the log")
		if _, err := access.VerifyAudit(t.Context(), w.db, access.AuditSources{}); err != nil {
			t.Error(err)
		}
	})
}
