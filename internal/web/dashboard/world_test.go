package dashboard_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/test/webtest"
	"github.com/quittance/quittance/internal/webhooks"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(browsers{m})
}

// browsers runs tests, and closes the browser that they share.
type browsers struct{ m *testing.M }

// Run implements goleak.TestingM.
func (b browsers) Run() int { return browsertest.Main(b.m) }

// patience bounds a wait for the service.
const patience = 2 * time.Minute

// The chain of a world, its token, which has 6 decimals, a payer, and the settlement address of the merchant acme.
const house = "house"

var (
	houseToken = invoice.Address{0xc0}
	payer      = invoice.Address{0xaa, 19: 1}
	acmePays   = invoice.Address{0x11, 19: 2}
)

// world is a service on a scripted chain with the merchants acme and globex. Its clock runs
// from an hour after the chain's first block.
type world struct {
	t        *testing.T
	url      string
	chain    *chaintest.Chain
	node     *chaintest.Node
	store    *db.DB
	keys     *access.KeyManager
	operator *person
	receiver *receiver  // of the events of acme
	root     access.Key // the operator's of the configuration
	letters  letterbox
	log      logtest.Buffer
	offset   atomic.Int64 // time.Duration
}

// newWorld starts a service, which runs until the test ends. changes change its configuration.
func newWorld(t *testing.T, changes ...func(*server.Config)) *world {
	t.Helper()
	w := &world{t: t, chain: chaintest.New(7), receiver: newReceiver(t)}
	w.forward(time.Until(time.Unix(chaintest.GenesisTime, 0).Add(time.Hour)))
	w.chain.Token(houseToken, 6)
	w.chain.MineAt(w.now().Unix() - 1)
	node := w.chain.Serve(t)
	w.node = node
	merchants := server.Merchants{Configured: map[string]access.MerchantSettings{"acme": {}, "globex": {}}}
	var err error
	if w.root, err = access.NewKey(access.Test, rand.Reader); err != nil {
		t.Fatal(err)
	}
	database := dbtest.Migrated(t)
	l, err := server.Listen(t.Context(), server.Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	cfg := server.Config{
		Listeners: []*server.Listener{l}, Database: database, Merchants: merchants, Keyring: newKeyring(t), WebhookAllow: webhooks.Loopback(),
		Chains: []server.Chain{{PollInterval: 5 * time.Millisecond, Chain: chain.Chain{
			Key: house, ID: 7, RPC: []string{node.URL}, Finality: chain.Finality{Depth: 1},
			Tokens: []chain.Token{{Currency: chain.USDC, Address: houseToken, Decimals: 6}},
		}}},
		Access: server.Access{Mode: access.Test, OperatorKey: w.root}, AllowListDelay: time.Hour, SMTP: &w.letters, Now: w.now, Rand: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, change := range changes {
		change(&cfg)
	}
	w.run(cfg)
	w.store = dbtest.Open(t, database)
	w.keys = access.NewKeyManager(access.KeyManagerConfig{Store: w.store, Mode: access.Test, Known: func(string) bool { return true }, Now: w.now, Rand: rand.Reader})
	w.operator = w.person("", access.Admin)
	if _, ok := cfg.Merchants.Configured["acme"]; ok {
		w.operator.api("PUT", "/api/merchants/acme/webhook", map[string]string{"url": w.receiver.URL}, nil)
	}
	return w
}

// now is the clock of the service.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }

// forward advances the clock.
func (w *world) forward(d time.Duration) { w.offset.Add(int64(d)) }

// run runs a server until the test ends, and waits until it is ready.
func (w *world) run(cfg server.Config) {
	w.t.Helper()
	ready, ended := make(chan string, 1), make(chan error, 1)
	cfg.Ready = func(base string) { ready <- base }
	ctx, stop := context.WithCancel(w.t.Context())
	go func() { ended <- server.Run(ctx, cfg) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Errorf("the service ended: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case w.url = <-ready:
	case err := <-ended:
		ended <- err
		w.t.Fatalf("the service ended: %v", err)
	}
	w.await("readiness", func() bool {
		resp, err := http.Get(w.url + "/readyz")
		return err == nil && errors.Join(resp.Body.Close()) == nil && resp.StatusCode == http.StatusOK
	})
}

func newKeyring(t *testing.T) *access.Keyring {
	t.Helper()
	text, err := access.NewMasterKey(rand.Reader)
	expect.OK(t, err)
	master := expect.Must(access.ParseMasterKey(text))
	return access.NewKeyring(master)
}

// await polls until ok returns true.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-limit.C:
			w.t.Fatalf("no %s after %v\n%s", what, patience, w.log.String())
		}
	}
}

// receiver is a webhook receiver. It answers with the next status that is set, or else with the usual
// one, which is 200 by default.
type receiver struct {
	*httptest.Server
	status chan int // of the next responses

	mu    sync.Mutex
	usual int
	text  string
}

// say sets the usual response to deliveries.
func (r *receiver) say(status int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usual, r.text = status, text
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: make(chan int, 100), usual: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case status := <-r.status:
			w.WriteHeader(status)
			return
		default:
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		w.WriteHeader(r.usual)
		_, _ = io.WriteString(w, r.text)
	}))
	t.Cleanup(r.Close)
	return r
}

// person is a person with a key who is signed in at the dashboard.
type person struct {
	*world
	*http.Client
	id, key    string // of the key
	merchantID string // of the key; empty: the operator
	scopes     access.Scopes
}

// person makes a key of a merchant, or of the operator for "", and signs in with it.
func (w *world) person(merchantID string, scopes access.Scopes) *person {
	w.t.Helper()
	return w.named(merchantID, "maria", scopes)
}

// named is person with a name.
func (w *world) named(merchantID, name string, scopes access.Scopes) *person {
	w.t.Helper()
	record, key, err := w.keys.Create(w.t.Context(), access.Open(), access.KeyRequest{Name: name, MerchantID: merchantID, Scopes: scopes})
	expect.OK(w.t, err)
	p := w.guest()
	p.id, p.key, p.merchantID, p.scopes = record.ID, key.Reveal(), merchantID, scopes
	if got := p.post("/dashboard/sign-in", url.Values{"key": {p.key}}); got.status != http.StatusOK {
		w.t.Fatalf("the sign-in leads to %s, which answers %d\n%s", got.path, got.status, got.body)
	}
	return p
}

// guest is a person with a browser who is not signed in.
func (w *world) guest() *person {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	expect.OK(w.t, err)
	base := &http.Transport{}
	w.t.Cleanup(base.CloseIdleConnections)
	return &person{world: w, Client: &http.Client{Transport: apitest.Transport(w.t, base), Jar: jar, Timeout: patience}}
}

// answer is the page that a request led to, after redirects.
type answer struct {
	*element
	status int
	path   string // with the query
	header http.Header
	body   string
}

// get asks for a page.
func (p *person) get(path string) answer {
	p.t.Helper()
	return p.visit(http.MethodGet, path, "", "")
}

// post sends a form.
func (p *person) post(path string, form url.Values) answer {
	p.t.Helper()
	return p.visit(http.MethodPost, path, "application/x-www-form-urlencoded", form.Encode())
}

// open asks for a page of any host.
func (p *person) open(address string) answer {
	p.t.Helper()
	return p.fetch(http.MethodGet, address, "", "")
}

func (p *person) visit(method, path, contentType, body string) answer {
	p.t.Helper()
	return p.fetch(method, p.url+path, contentType, body)
}

func (p *person) fetch(method, address, contentType, body string) answer {
	p.t.Helper()
	r := expect.Must(http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(body)))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	resp, err := p.Do(r)
	expect.OK(p.t, err)
	text, err := io.ReadAll(resp.Body)
	expect.OK(p.t, errors.Join(err, resp.Body.Close()))
	a := answer{status: resp.StatusCode, path: resp.Request.URL.RequestURI(), header: resp.Header, body: string(text), element: &element{}}
	if (p.merchantID != "" || p.key == "") && !strings.Contains(address, "merchantId=") {
		a.path, a.body = p.withoutMerchant(a.path), p.withoutMerchant(a.body)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		a.element = webtest.Parse(p.t, a.body)
	}
	return a
}

// withoutMerchant leaves the person's merchant out of addresses, which most tests do not look at.
func (p *person) withoutMerchant(text string) string {
	id := `\w+` // of somebody who is not signed in
	if p.merchantID != "" {
		id = regexp.QuoteMeta(p.merchantID)
	}
	text = regexp.MustCompile(`\?merchantId=`+id+`&(amp;)?`).ReplaceAllString(text, "?")
	return regexp.MustCompile(`(&amp;|&|\?|%3F)merchantId(=|%3D)`+id).ReplaceAllString(text, "")
}

// submit sends the form with the given action, with the page's values and the given changes: an empty
// list of values removes a field.
func (p *person) submit(page answer, action string, changes url.Values) answer {
	p.t.Helper()
	for _, form := range page.Forms() {
		if form.Attrs["action"] != action {
			continue
		}
		values := form.Values()
		for name, value := range changes {
			values[name] = value
		}
		if form.Attrs["method"] != "post" {
			return p.get(action + "?" + values.Encode())
		}
		return p.post(action, values)
	}
	p.t.Fatalf("%s has no form to %s\n%s", page.path, action, page.Words())
	return answer{}
}

// want fails the test unless the page has the status and contains all texts.
func (a answer) want(t *testing.T, status int, texts ...string) answer {
	t.Helper()
	if a.status != status {
		t.Errorf("%s answers %d, want %d\n%s", a.path, a.status, status, a.Words())
	}
	words := a.Words()
	for _, text := range texts {
		if !strings.Contains(words, text) {
			t.Errorf("%s lacks %q:\n%s", a.path, text, words)
		}
	}
	return a
}

// api calls the REST interface with the person's key. The answer must be a success, and is decoded unless it is nil.
func (p *person) api(method, path string, body, into any) {
	p.t.Helper()
	status, text := p.ask(method, path, body)
	if status >= http.StatusMultipleChoices {
		p.t.Fatalf("%s %s answers %d %s", method, path, status, text)
	}
	if into != nil {
		expect.OK(p.t, json.Unmarshal(text, into))
	}
}

// ask calls the REST interface with the person's key.
func (p *person) ask(method, path string, body any) (status int, answer []byte) {
	p.t.Helper()
	text, raw := body.([]byte)
	if !raw {
		text = expect.Must(json.Marshal(body))
	}
	r := expect.Must(http.NewRequestWithContext(p.t.Context(), method, p.url+path, bytes.NewReader(text)))
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.Do(r)
	expect.OK(p.t, err)
	text, err = io.ReadAll(resp.Body)
	expect.OK(p.t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, text
}
