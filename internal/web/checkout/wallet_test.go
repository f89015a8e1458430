package checkout

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"rsc.io/qr"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// walletOf returns the answer that wallets get.
func (w *world) walletOf(t *testing.T) walletData {
	t.Helper()
	answer := w.ask(http.MethodGet, "/checkout/"+testID+"/wallet")
	var d walletData
	if err := json.Unmarshal(answer.Body.Bytes(), &d); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", answer.Code, err, answer.Body)
	}
	return d
}

func TestWalletData(t *testing.T) {
	w := newWorld()
	w.cursor.Confirmed = invoice.Header{Number: 9, Hash: invoice.Hash{31: 9}}
	w.chain.RPC = []string{"http://127.0.0.1:8545"}
	want := walletData{
		Terms: newTerms(w.invoice, w.chain), Merchant: "corner-cafe", Network: "Local test chain", Currency: "USDC", Decimals: 6,
		PayTo: chain.Checksum(merchantAddress), Due: "4900000", TransferAmount: "4900123", RegistryPays: true,
		Block: &walletBlock{"9", invoice.Hash{31: 9}.String()}, Coin: (chain.Chain{}).Coin(), RPC: []string{"http://127.0.0.1:8545"},
		Payments: []walletPayment{}, Now: defaultNow,
	}
	expect.NoDiff(t, cmp.Diff(want, w.walletOf(t)), "")
}

func TestWalletAmounts(t *testing.T) {
	for _, test := range []struct {
		name          string
		set           func(*world)
		due, transfer string
		payments      int
	}{
		{"a part has arrived", func(w *world) {
			w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
		}, "2900000", "", 1},
		{"a part has arrived, and its rest has a transfer amount", func(w *world) {
			w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
			w.invoice.RemainingTransfer = invoice.NewAmount(2_900_077)
		}, "2900000", "2900077", 1},
		{"a deposit address", func(w *world) { w.invoice.Collection, w.invoice.DepositAddress = invoice.Deposit, payerAddress }, "4900000", "", 0},
		{"seen", func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
		}, "0", "", 1},
		{"orphaned", func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned)}
		}, "0", "", 0},
		{"the time is up", func(w *world) { w.now = expires + 1 }, "0", "", 0},
		{"expired", func(w *world) { w.invoice.Status = invoice.Expired }, "0", "", 0},
		{"held", func(w *world) { w.invoice.ClosedBlock = 10 }, "0", "", 0},
		{"void", func(w *world) { w.invoice.Status = invoice.Void }, "0", "", 0},
		{"draft", func(w *world) { w.invoice.Status = invoice.Drafted }, "0", "", 0},
	} {
		w := newWorld()
		test.set(w)
		d := w.walletOf(t)
		if d.Due != test.due || d.TransferAmount != test.transfer || len(d.Payments) != test.payments {
			t.Errorf("%s: due is %s, as a transfer %q, with %d payments", test.name, d.Due, d.TransferAmount, len(d.Payments))
		}
	}
}

// The nodes of the configuration may have keys in their URLs, and are not shared.
func TestWalletNodesAreNotTheServices(t *testing.T) {
	for _, c := range chain.Builtin() {
		c.RPC = []string{"https://node.example/secret"}
		for _, url := range c.WalletNodes() {
			if c.Key != chain.Local && (strings.Contains(url, "secret") || !strings.HasPrefix(url, "https://")) {
				t.Errorf("%s: wallets are given %s", c.Key, url)
			}
		}
	}
	if got := (chain.Chain{Key: "testnet", RPC: []string{"https://node.example/secret"}}).WalletNodes(); got != nil {
		t.Errorf("a network of the configuration has the nodes %s", got)
	}
}

func TestPagesAreCompressed(t *testing.T) {
	w := newWorld()
	plain := w.ask(http.MethodGet, "/checkout/"+testID)
	small := w.ask(http.MethodGet, "/checkout/"+testID, "Accept-Encoding", "gzip")
	if small.Header().Get("Content-Encoding") != "gzip" || small.Body.Len() > plain.Body.Len()/2 {
		t.Errorf("of %d bytes, %d are sent in %q", plain.Body.Len(), small.Body.Len(), small.Header().Get("Content-Encoding"))
	}
	body, err := gzip.NewReader(small.Body)
	expect.OK(t, err)
	if text, err := io.ReadAll(body); err != nil || string(text) != plain.Body.String() {
		t.Errorf("another page, %v", err)
	}
}

func TestAssetsAreCompressed(t *testing.T) {
	w := newWorld()
	script := assets["wallet.js"]
	for coding, want := range map[string]string{
		"": "", "br": "", "gzip;q=0": "", "gzip; q=0.000": "", "identity": "",
		"gzip": "gzip", "br, gzip": "gzip", "GZIP;q=0.5": "gzip", "deflate,gzip;q=1": "gzip",
	} {
		answer := w.ask(http.MethodGet, script.Path, "Accept-Encoding", coding)
		expect.Equal(t, answer.Header().Get("Content-Encoding"), want, "Accept-Encoding %q is answered in", coding)
		expect.Equal(t, answer.Header().Get("Vary"), "Accept-Encoding", "Vary is")
		body := io.Reader(answer.Body)
		if want == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != string(walletScript) {
			t.Errorf("Accept-Encoding %q: another content, %v", coding, err)
		}
	}
}

// TestAssetsOfAnotherRelease asks for files as a page of another release does.
func TestAssetsOfAnotherRelease(t *testing.T) {
	w := newWorld()
	for path, want := range map[string]string{
		assets["wallet.js"].Path: webpage.Forever, "/checkout/static/0123456789abcdef/wallet.js": "no-cache",
		"/checkout/static/wallet.js": "", "/checkout/static/0123456789abcdef/other.js": "",
	} {
		answer := w.ask(http.MethodGet, path)
		if want == "" {
			expect.Equal(t, answer.Code, http.StatusNotFound, "%s: status", path)
			continue
		}
		if answer.Code != http.StatusOK || answer.Header().Get("Cache-Control") != want || answer.Body.String() != string(walletScript) {
			t.Errorf("%s: status %d, %q", path, answer.Code, answer.Header().Get("Cache-Control"))
		}
	}
}

func TestWalletLinks(t *testing.T) {
	want := []walletLink{
		{"MetaMask", "https://link.metamask.io/dapp/pay.example.com/checkout/inv_1"},
		{"Coinbase Wallet", "https://go.cb-w.com/dapp?cb_url=https%3A%2F%2Fpay.example.com%2Fcheckout%2Finv_1"},
		{"Trust", "https://link.trustwallet.com/open_url?coin_id=60&url=https%3A%2F%2Fpay.example.com%2Fcheckout%2Finv_1"},
		{"Rabby", "https://go.rabby.io/mobile/?_cmd=open-dapp&dapp=https%3A%2F%2Fpay.example.com%2Fcheckout%2Finv_1"},
	}
	if diff := cmp.Diff(want, walletLinks("https://pay.example.com", "/checkout/inv_1")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := walletLinks("", "/checkout/inv_1"); got != nil {
		t.Errorf("without a public URL: %v", got)
	}
}

// matrix draws the path of a code, without its margin.
func matrix(t *testing.T, c webpage.QRCode) [][]bool {
	t.Helper()
	size := c.Size - 2*webpage.QuietZone
	m := make([][]bool, size)
	for y := range m {
		m[y] = make([]bool, size)
	}
	var x, y int
	for run := range strings.SplitSeq(strings.TrimSuffix(c.Path, "z"), "z") {
		var right, down, n, back int
		if _, err := fmt.Sscanf(run, "m%d %dh%dv1h-%d", &right, &down, &n, &back); err != nil || n != back {
			t.Fatalf("the path has %q: %v", run, err)
		}
		x, y = x+right, y+down
		for i := range n {
			m[y-webpage.QuietZone][x-webpage.QuietZone+i] = true
		}
	}
	return m
}

func TestPathDrawsEveryModule(t *testing.T) {
	link := "ethereum:" + chain.Checksum(tokenAddress) + "@11155420/transfer?address=" + chain.Checksum(merchantAddress) +
		"&uint256=" + strings.Repeat("9", 78)
	code := expect.Must(webpage.NewQRCode(link))
	want, err := qr.Encode(link, qr.M)
	expect.OK(t, err)
	m := matrix(t, code)
	if len(m) != want.Size {
		t.Fatalf("the path draws %d modules, want %d", len(m), want.Size)
	}
	for y := range m {
		for x := range m {
			if m[y][x] != want.Black(x, y) {
				t.Fatalf("module %d, %d is black: %t, want the other", x, y, m[y][x])
			}
		}
	}
}

// The codes are of the address, the transfer and the page. The first one is chosen.
func TestCodesOfThePage(t *testing.T) {
	w := newWorld()
	w.publicURL = "https://pay.example"
	pay := w.page(t).ID(t, "pay")
	codes, choices := pay.Named("svg"), pay.Named("input")
	texts := []string{
		chain.Checksum(merchantAddress),
		"ethereum:" + chain.Checksum(tokenAddress) + "@1337/transfer?address=" + chain.Checksum(merchantAddress) + "&uint256=4900123",
		"https://pay.example/checkout/" + testID,
	}
	if len(codes) != len(texts) || len(choices) != len(texts) {
		t.Fatalf("the page has %d codes and %d choices, want %d", len(codes), len(choices), len(texts))
	}
	for i, text := range texts {
		want := expect.Must(webpage.NewQRCode(text))
		if codes[i].Named("path")[0].Attrs["d"] != want.Path {
			t.Errorf("code %d is not of %s", i+1, text)
		}
		if _, checked := choices[i].Attrs["checked"]; checked != (i == 0) {
			t.Errorf("code %d is chosen: %t", i+1, checked)
		}
	}
}

func TestTooLongForACode(t *testing.T) {
	if _, err := webpage.NewQRCode(strings.Repeat("a", 3000)); err == nil {
		t.Error("3000 bytes fit a QR code")
	}
}
