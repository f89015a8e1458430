package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api/apitest"
)

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
	c, err := client.New(w.info.Load().BaseURL, client.WithHTTPClient(w.http), client.WithRetries(0))
	expect.OK(w, err)
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
