package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// parallel is how many tests run at a time: most of their time they wait for blocks and timeouts.
const parallel = 6

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	testdeps.Parallel(parallel)
	testdeps.TempInMemory()
	if testing.Short() {
		os.Exit(0) // -short leaves out the tests of the whole program
	}
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// buildAndRun builds the binary once for all tests.
func buildAndRun(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "quittance-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if removed := os.RemoveAll(dir); removed != nil {
			code, err = 1, removed
		}
	}()
	// Worlds prefer one port for JSON-RPC. While that is taken, each picks its own port, and keeps it after a restart.
	if taken, err := net.Listen("tcp", "127.0.0.1:8545"); err == nil {
		defer taken.Close() //nolint:errcheck // the process is about to end
	}
	program = filepath.Join(dir, "quittance")
	build := exec.Command("go", "build", "-o", program, testdeps.Repo("cmd/quittance"))
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// world is a data folder of quittance dev, which can be restarted.
type world struct {
	testing.TB
	dir  string
	file string // the path of the file that --info writes
	args []string
	http *http.Client // checks every response against openapi.yaml
	info atomic.Pointer[dev.Info]
}

// newWorld returns a world in an empty folder; args are more flags.
func newWorld(tb testing.TB, args ...string) *world {
	tb.Helper()
	base := tb.TempDir()
	w := &world{TB: tb, dir: filepath.Join(base, "data"), file: filepath.Join(base, "info.json")}
	w.args = append([]string{"dev", "--listen", "127.0.0.1:0", "--data", w.dir, "--info", w.file}, args...)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	tb.Cleanup(transport.CloseIdleConnections)
	w.http = &http.Client{Transport: apitest.Transport(tb, transport), Timeout: patience}
	return w
}

// startWorld returns a running world.
func startWorld(tb testing.TB, args ...string) (*world, *child) {
	tb.Helper()
	w := newWorld(tb, args...)
	return w, w.start()
}

// start runs the world and waits until it is ready.
func (w *world) start() *child {
	w.Helper()
	c := w.begin()
	if !w.ready(c) {
		w.Fatalf("the world did not become ready:\n%s", c.stderr.String())
	}
	return c
}

// begin starts the world without waiting.
func (w *world) begin() *child {
	w.Helper()
	if err := os.Remove(w.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.Fatal(err)
	}
	return launch(w, w.args...)
}

// ready waits until the world has written its addresses, or has ended.
func (w *world) ready(c *child) bool {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var info *dev.Info
	err := await(ctx, func() bool {
		raw, err := os.ReadFile(w.file)
		if err == nil {
			// The file is replaced atomically, so a partial one is an error.
			if err := json.Unmarshal(raw, &info); err != nil {
				w.Fatalf("the info file is not whole: %v\n%s", err, raw)
			}
		}
		return info != nil || c.ended()
	})
	if err != nil {
		w.Errorf("wait for the info file: %v", err)
	}
	if info != nil {
		w.info.Store(info)
	}
	return info != nil
}

// api returns a client of the running world.
func (w *world) api() *client.Client {
	w.Helper()
	c := expect.Must(client.New(w.info.Load().BaseURL, client.WithHTTPClient(w.http), client.WithRetries(0)))
	return c
}

// url returns the URL of a path of the running world.
func (w *world) url(path string) string { return w.info.Load().BaseURL + path }

// draft returns a request for an invoice of the demo merchant that expires in an hour.
func (w *world) draft(amount string) apitypes.CreateInvoiceRequest {
	info := w.info.Load()
	return apitypes.CreateInvoiceRequest{
		MerchantID: info.Merchant.ID, MerchantAddress: info.Merchant.Address, Amount: amount,
		Currency: "USDC", ChainKey: info.Chain.ChainKey, ExpiresAt: time.Now().Unix() + 3600,
	}
}

// create creates an invoice.
func (w *world) create(r apitypes.CreateInvoiceRequest, options ...client.Option) apitypes.CreateInvoiceResponse {
	w.Helper()
	made, err := w.api().CreateInvoice(w.Context(), r, options...)
	expect.OK(w, err)
	return made
}

// servedWorld is a service of quittance serve on the chain of another world, with the merchant acme.
type servedWorld struct {
	*world
	chain *world
	ctx   context.Context
	env   []string // of the service
	file  string   // its configuration
}

func newServedWorld(t *testing.T) *servedWorld {
	t.Helper()
	chainWorld, _ := startWorld(t, "--block-time", quick)
	dir := t.TempDir()
	s := &servedWorld{
		world: &world{TB: t, dir: dir, http: withKey(chainWorld.http)}, chain: chainWorld,
		ctx: within(t, 2*time.Minute), file: filepath.Join(dir, "quittance.yaml"),
	}
	s.info.Store(&dev.Info{Merchant: dev.MerchantInfo{ID: "acme", Address: s.newWalletAddress()}, Chain: chainWorld.info.Load().Chain})
	return s
}

// configure writes the configuration.
func (s *servedWorld) configure(text string) {
	s.Helper()
	expect.OK(s, os.WriteFile(s.file, []byte(text), 0o600))
}

// newWalletAddress returns the address of a new key.
func (s *servedWorld) newWalletAddress() string {
	key := expect.Must(crypto.GenerateKey())
	return crypto.PubkeyToAddress(key.PublicKey).Hex()
}

// serve runs the service until it is ready.
func (s *servedWorld) serve() *child {
	s.Helper()
	c := launchWith(s, s.env, "serve", "--config", s.file)
	info := *s.info.Load()
	info.BaseURL, info.Chain.ChainKey = c.awaitURL(s), "testnet"
	s.info.Store(&info)
	return c
}

// awaitInvoice waits until an invoice meets a condition, and returns it.
func (s *servedWorld) awaitInvoice(id string, wanted func(apitypes.Invoice) bool) (inv apitypes.Invoice) {
	s.Helper()
	err := await(s.ctx, func() bool {
		got, err := s.api().Invoice(s.ctx, id)
		inv = got
		return err == nil && wanted(inv)
	})
	if err != nil {
		s.Fatalf("%v: %+v", err, inv)
	}
	return inv
}

// payments returns the payments of an invoice.
func (s *servedWorld) payments(id string) (all []apitypes.Payment) {
	s.Helper()
	for p, err := range s.api().Payments(context.WithoutCancel(s.ctx), client.PaymentFilter{InvoiceID: id, IncludePending: true}) {
		expect.OK(s, err)
		all = append(all, p)
	}
	return all
}

// keyEnv is the variable with the operator's key of the services that tests start with
// quittance serve, and keySetting is the setting that names it.
const (
	keyEnv     = "SERVICE_KEY"
	keySetting = "access: {operatorKeyEnv: " + keyEnv + "}"
)

// operatorKey is the operator's key of these services.
var operatorKey = func() string {
	key, err := access.NewKey(access.Live, bytes.NewReader(make([]byte, access.KeyLength)))
	if err != nil {
		panic(err) // the reader has enough bytes
	}
	return key.Reveal()
}()

// withKey returns a client that sends the operator's key with each request.
func withKey(c *http.Client) *http.Client {
	keyed := *c
	keyed.Transport = keyTransport{c.Transport}
	return &keyed
}

type keyTransport struct{ base http.RoundTripper }

// RoundTrip sends the request with the key.
func (t keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+operatorKey)
	return t.base.RoundTrip(r)
}
