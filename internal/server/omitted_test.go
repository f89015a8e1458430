package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// TestLookupHasOmittedPaymentRead uses a single node that omits a payment from the logs of a block
// that holds another transfer, and that returns no receipts of blocks. When the payer looks the
// transaction up on the invoice's page, the payment is read, and the invoice becomes paid.
func TestLookupHasOmittedPaymentRead(t *testing.T) {
	t.Parallel()
	c, blocks, node := scriptedChain(t, "house", 7)
	proxy := chaintest.NewProxy(t, node, 1)
	c.RPC, c.CompareLogs = []string{proxy.URL}, true
	base := startServer(t, Config{Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}}).url
	await(t, base, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	to := invoice.Address{0x11}
	made := ask(t, http.MethodPost, base+"/api/invoices", fmt.Sprintf(
		`{"merchantId":"m","merchantAddress":%q,"amount":"1000000","currency":"USDC","chainKey":"house","expiresAt":%d}`, to, chaintest.GenesisTime+1_000_000))
	if made.status != http.StatusCreated {
		t.Fatalf("create: %d %s", made.status, made.body)
	}
	id := between(made.body, `"id":"`, `"`)
	amount, err := invoice.ParseAmount(between(made.body, `"transferAmount":"`, `"`))
	if err != nil {
		t.Fatalf("%v: %s", err, made.body)
	}
	paid := chaintest.NewTx(chaintest.Transfer(testToken, invoice.Address{1}, to, amount))
	proxy.SetFaults(chaintest.DropLogs{Txs: []common.Hash{paid.Hash}},
		chaintest.Only{Methods: []string{"eth_getBlockReceipts"}, Fault: chaintest.Fail{Code: -32099, Message: "no"}})
	blocks.MineAt(max(time.Now().Unix(), blocks.Head().Time+1),
		chaintest.NewTx(chaintest.Transfer(testToken, invoice.Address{1}, invoice.Address{2}, amount)), paid)
	blocks.MineEmpty(2)
	await(t, base, "end of the blocks", func(_ int, h health) bool { return h.Chains[0].Confirmed+1 >= blocks.Head().Number })
	status := func(wait string) string {
		return between(ask(t, http.MethodGet, base+"/api/invoices/"+id+wait, "").body, `"status":"`, `"`)
	}
	if got := status(""); got != "open" {
		t.Fatalf("before the lookup the invoice is %s", got)
	}
	check := base + "/checkout/" + id + "/check?tx=" + paid.Hash.Hex()
	for range 10 { // the page repeats itself
		if a := ask(t, http.MethodGet, check, ""); a.status != http.StatusOK {
			t.Fatalf("the page of the transaction: %d %s", a.status, a.body)
		}
		if status("?wait=3") == "paid" {
			break
		}
	}
	if got := status(""); got != "paid" {
		t.Fatalf("after the lookup the invoice is %s", got)
	}
	payments := ask(t, http.MethodGet, base+"/api/invoices/"+id+"/payments", "")
	if !strings.Contains(payments.body, strings.ToLower(paid.Hash.Hex())) {
		t.Errorf("its payments are %s", payments.body)
	}
}
