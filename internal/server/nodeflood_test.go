package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// tooManyError is how a node refuses a call beyond its rate.
type tooManyError struct{}

func (tooManyError) Error() string  { return "call rate limit exceeded" }
func (tooManyError) ErrorCode() int { return http.StatusTooManyRequests }

// callLimit refuses calls beyond a number a second.
type callLimit struct {
	most int

	mu      sync.Mutex
	second  int64
	calls   int
	refused int
}

func (l *callLimit) intercept(context.Context, string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now().Unix(); now != l.second {
		l.second, l.calls = now, 0
	}
	if l.calls++; l.calls > l.most {
		l.refused++
		return tooManyError{}
	}
	return nil
}

// TestVerifyFloodLeavesPayments verifies payments by x402 for one merchant without a pause, on 24
// connections with a key that may only read, at a node that takes 100 calls a second. In that time the
// invoice of another merchant is paid, and the node refuses no call.
func TestVerifyFloodLeavesPayments(t *testing.T) {
	t.Parallel()
	c, blocks, node := scriptedChain(t, "house", 7)
	c.OperatorKey, c.Gasless = testKey(t), &ledger.AuthorizationBudget{PerMerchant: 1000, PerPayer: 1000, PerDay: 1000}
	c.Registry = testToken // any contract
	c.PollInterval = 250 * time.Millisecond
	database := dbtest.Migrated(t)
	merchants := Merchants{Configured: map[string]access.MerchantSettings{"acme": {}, "globex": {}}}
	base := startServer(t, Config{
		Database: database, Chains: []Chain{c}, Merchants: merchants, Access: Access{Mode: access.Live},
	}).url
	await(t, base, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Confirmed > 0 })
	limit := &callLimit{most: 100}
	node.Intercept(limit.intercept)

	keys := access.NewKeyManager(access.KeyManagerConfig{
		Store: dbtest.Open(t, database), Mode: access.Live, Known: func(string) bool { return true }, Now: time.Now, Rand: rand.Reader,
	})
	with := func(merchant string, scopes access.Scopes) func(*http.Request) {
		_, key, err := keys.Create(t.Context(), access.Open(), access.KeyRequest{Name: "test", MerchantID: merchant, Scopes: scopes})
		expect.OK(t, err)
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key.Reveal()) }
	}
	globex := with("globex", access.Admin)
	pay := func(n uint64) time.Duration {
		t.Helper()
		to := invoice.Address{0x22, byte(n)}
		made := ask(t, http.MethodPost, base+"/api/invoices", fmt.Sprintf(
			`{"merchantAddress":%q,"amount":"1000000","currency":"USDC","chainKey":"house","expiresAt":%d}`, to, chaintest.GenesisTime+1_000_000), globex)
		if made.status != http.StatusCreated {
			t.Fatalf("create: %d %s", made.status, made.body)
		}
		amount, err := invoice.ParseAmount(between(made.body, `"transferAmount":"`, `"`))
		if err != nil {
			t.Fatalf("%v: %s", err, made.body)
		}
		began := time.Now()
		blocks.MineAt(max(time.Now().Unix(), blocks.Head().Time+1),
			chaintest.NewTx(chaintest.Transfer(testToken, invoice.Address{1}, to, amount)))
		blocks.MineEmpty(1)
		id := between(made.body, `"id":"`, `"`)
		for {
			if a := ask(t, http.MethodGet, base+"/api/invoices/"+id+"?wait=1", "", globex); strings.Contains(a.body, `"status":"paid"`) {
				return time.Since(began)
			}
		}
	}
	quiet := pay(1)

	acme, body := with("acme", access.NewScopes(access.InvoicesRead)), verifyBody(time.Now().Add(time.Hour))
	flooding, stop := context.WithCancel(t.Context())
	var answers, refused atomic.Int64
	var group sync.WaitGroup
	for range 24 {
		group.Go(func() {
			for flooding.Err() == nil {
				switch a := ask(t, http.MethodPost, base+"/x402/verify", body, acme); a.status {
				case http.StatusTooManyRequests, http.StatusServiceUnavailable:
					refused.Add(1)
					fallthrough
				default:
					answers.Add(1)
				}
			}
		})
	}
	var slowest time.Duration
	for n := range uint64(5) {
		slowest = max(slowest, pay(n+2))
	}
	stop()
	group.Wait()
	t.Logf("paid in %s before, and in at most %s with %d verifications, of which %d were refused", quiet, slowest, answers.Load(), refused.Load())
	limit.mu.Lock()
	defer limit.mu.Unlock()
	if limit.refused > 0 || refused.Load() == 0 {
		t.Errorf("the node refused %d calls, and the service %d requests", limit.refused, refused.Load())
	}
}

// between returns the text between two others.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

// verifyBody returns the body of a verification that calls a node.
func verifyBody(expires time.Time) string {
	return strings.NewReplacer("{address}", "0x00000000000000000000000000000000000000aa", "{token}", chain.Checksum(testToken),
		"{expires}", fmt.Sprint(expires.Unix())).Replace(x402Body)
}

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

// TestNodeRoutes lists the routes with CallsNodes.
func TestNodeRoutes(t *testing.T) {
	t.Parallel()
	table, _ := testTable(t)
	var got []string
	for _, r := range table {
		if r.CallsNodes {
			got = append(got, r.Pattern)
		}
	}
	want := []string{
		"GET /api/refunds/{id}",
		"GET /checkout/{id}",
		"GET /checkout/{id}/check",
		"GET /dashboard/refunds/{id}",
		"GET /x402/invoices/{id}",
		"POST /api/payments/{id}/refunds",
		"POST /api/refunds/{id}/submissions/{submissionId}/withdraw",
		"POST /checkout/{id}/authorization",
		"POST /checkout/{id}/claim",
		"POST /dashboard/payments/{id}/refund",
		"POST /dashboard/refunds/{id}/submissions/{submission}/transaction",
		"POST /dashboard/refunds/{id}/submissions/{submission}/withdraw",
		"POST /refunds/{token}",
		"POST /x402/settle",
		"POST /x402/verify",
		"PUT /api/refunds/{id}/submissions/{submissionId}",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestOnlyNodeRoutesCallNodes calls a node from the handlers of a route that the table has, and of one that it lacks.
func TestOnlyNodeRoutesCallNodes(t *testing.T) {
	t.Parallel()
	config, node := scripted(t, "house", 7)
	pool, err := chain.OpenPool(chain.PoolConfig{Chain: config.Chain, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	expect.OK(t, err)
	defer pool.Close()
	expect.OK(t, pool.Nodes()[0].Ready(t.Context()))
	got := make(map[string]string)
	for _, pattern := range []string{"POST /x402/verify", "GET /api/invoices"} {
		route := routeAt(t, pattern)
		route.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx := chain.OnBehalfOf(r.Context(), "acme")
			if err := pool.Requests().CallContext(ctx, new(hexutil.Uint64), "eth_chainId"); err != nil {
				got[pattern] = err.Error()
			}
		})
		withNodes(route).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	if diff := cmp.Diff(map[string]string{"GET /api/invoices": chain.ErrNoRoute.Error()}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := node.Calls("eth_chainId"); n != 2 { // the check, and the route of the table
		t.Errorf("the node was called %d times, want 2", n)
	}
}
