// Package devtest runs a development world for tests of programs that use the service. The
// world is quittance dev in its own process, so that the tests do not link the service.
package devtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// patience bounds a wait for the world.
const patience = 5 * time.Minute

// World is a running development world.
type World struct {
	Info     Info
	Operator *client.Client
}

// Info is the part of the file of quittance dev --info that tests use.
type Info struct {
	BaseURL  string `json:"baseUrl"`
	Merchant struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	} `json:"merchant"`
	Chain struct {
		ChainKey string `json:"chainKey"`
	} `json:"chain"`
}

// Start builds quittance, and runs a world until the test ends.
func Start(t testing.TB) *World {
	t.Helper()
	dir := t.TempDir()
	program, file := filepath.Join(dir, "quittance"), filepath.Join(dir, "info.json")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/quittance/quittance/cmd/quittance")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("devtest: build quittance: %v\n%s", err, out)
	}
	Run(t, exec.CommandContext(t.Context(), program, "dev", "--listen", "127.0.0.1:0", "--rpc-listen", "127.0.0.1:0",
		"--block-time", "200ms", "--data", filepath.Join(dir, "data"), "--info", file)).Await(`^Quittance is (ready)`)
	w := &World{}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &w.Info)
	}
	if err == nil {
		w.Operator, err = client.New(w.Info.BaseURL)
	}
	expect.OK(t, err)
	return w
}

// Merchant is a merchant with a default settlement address, a key and a webhook endpoint.
type Merchant struct {
	Key    string
	Secret string // of the endpoint
}

// Merchant creates a merchant with a random settlement address, whose events are posted to a URL.
func (w *World) Merchant(t testing.TB, id, webhookURL string) Merchant {
	t.Helper()
	account := make([]byte, 20)
	expect.Success(t)(rand.Read(account))
	address := "0x" + hex.EncodeToString(account)
	_, err := w.Operator.CreateMerchant(t.Context(), apitypes.CreateMerchantRequest{
		ID: id, Name: id, DefaultAddresses: map[string]apitypes.Address{w.Info.Chain.ChainKey: address},
	})
	expect.OK(t, err)
	_, key, err := w.Operator.CreateKey(t.Context(), apitypes.CreateKeyRequest{Name: "test", MerchantID: id, Scopes: []string{"standard"}})
	expect.OK(t, err)
	_, secret, err := w.Operator.PutWebhook(t.Context(), id, webhookURL)
	expect.OK(t, err)
	return Merchant{Key: key, Secret: secret}
}

// Pay pays an invoice by the button of its page, which pays from the test wallet. The page has none while the service has
// not read the chain for a while, as in the first moments of a world on a busy machine.
func (w *World) Pay(t testing.TB, invoiceID string) {
	t.Helper()
	page := w.Info.BaseURL + "/checkout/" + invoiceID
	poll(t, "no button of the test wallet at "+page, func(context.Context) bool {
		_, _, body := visit(t, http.MethodGet, page, nil)
		return strings.Contains(body, "/test-payment")
	})
	if status, _, body := visit(t, http.MethodPost, page+"/test-payment", nil); status != http.StatusSeeOther {
		t.Fatalf("devtest: the test payment of %s is answered with %d\n%s", invoiceID, status, body)
	}
}
