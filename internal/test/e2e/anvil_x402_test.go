package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

var (
	x402Payments = flag.Int("x402-payments", 64, "how many payments each part of TestExtraX402Kills makes with @x402/fetch, 32 at a time")
	x402Kills    = flag.Int("x402-kills", 2, "how often each part of TestExtraX402Kills kills the service meanwhile")
)

// x402Budget is large enough to check and send all authorizations of the tests.
const x402Budget = `    requestCallsPerSecond: 1000
    gasless: {enabled: on, perMerchant: 100000, perPayer: 100000, perDay: 100000}
`

// x402Patience bounds an agent's purchase with all its repetitions.
const x402Patience = 2 * time.Minute

// agents is a folder with the programs of npm's x402 packages.
type agents struct {
	testing.TB
	dir string
	env []string
}

// newAgents returns a folder with the unmodified packages and the programs that use them.
func newAgents(tb testing.TB, payerKey string) *agents {
	tb.Helper()
	example := testdeps.Repo("examples/x402-express")
	modules, err := testdeps.NodeModules(tb.Context(), "e2e", example)
	expect.OK(tb, err)
	a := &agents{tb, tb.TempDir(), append(os.Environ(), "PAYER_KEY="+payerKey, fmt.Sprint("PATIENCE_MS=", x402Patience.Milliseconds()))}
	for _, path := range []string{example + "/server.mjs", "testdata/agents.mjs"} {
		text, err := os.ReadFile(path)
		expect.OK(tb, err)
		expect.OK(tb, os.WriteFile(filepath.Join(a.dir, filepath.Base(path)), text, 0o600))
	}
	expect.OK(tb, os.Symlink(modules, filepath.Join(a.dir, "node_modules")))
	return a
}

// bought is what an agent reports about a URL.
type bought struct {
	URL      string
	Status   int
	Body     string
	Requests int
	Signed   int // payments
	Settled  *apitypes.X402SettleResponse
	Errors   []string
}

// buy has agents buy the URLs, atATime of them at a time.
func (a *agents) buy(atATime int, urls ...string) map[string]bought {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), x402Patience+time.Duration(len(urls))*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "agents.mjs", fmt.Sprint(atATime))
	cmd.Dir, cmd.Env, cmd.Stdin = a.dir, a.env, strings.NewReader(strings.Join(urls, "\n"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		a.Fatalf("agents: %v\n%s%s", err, out, &stderr)
	}
	all := make(map[string]bought)
	for line := range strings.Lines(string(out)) {
		var b bought
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			a.Fatalf("agents: %v in %q", err, line)
		}
		all[b.URL] = b
	}
	return all
}

// sell runs the example's server in front of a service, and returns its URL.
func (a *agents) sell(env ...string) string {
	a.Helper()
	_, port, err := net.SplitHostPort(devtest.FreeAddress(a))
	expect.OK(a, err)
	cmd := exec.CommandContext(a.Context(), "node", "server.mjs")
	cmd.Dir, cmd.Env = a.dir, append(append(a.env, env...), "PORT="+port)
	out, err := cmd.StdoutPipe()
	expect.OK(a, err)
	cmd.Stderr = a.Output()
	expect.OK(a, cmd.Start())
	a.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "listening") {
		a.Fatalf("the server printed %q, %v", line, err)
	}
	return "http://127.0.0.1:" + port
}

// newX402Service returns a service that sends authorizations, and agents that pay with the service's payer.
func newX402Service(tb testing.TB, database string) (*service, *agents) {
	tb.Helper()
	s := newService(tb, database)
	s.allow(x402Budget)
	return s, newAgents(tb, s.payer.Key)
}

// allow adds settings to the chain's.
func (s *service) allow(settings string) {
	s.Helper()
	text, err := os.ReadFile(s.config)
	expect.OK(s, err)
	const setting = "    operatorKeyEnv: " + operatorEnv + "\n"
	if !strings.Contains(string(text), setting) {
		s.Fatalf("the configuration lacks %q:\n%s", setting, text)
	}
	expect.OK(s, os.WriteFile(s.config, []byte(strings.Replace(string(text), setting, setting+settings, 1)), 0o600))
}

// x402Key returns a key of a merchant for a server that charges by x402.
func x402Key(tb testing.TB, api *client.Client, merchantID string) string {
	tb.Helper()
	_, key, err := api.CreateKey(tb.Context(), apitypes.CreateKeyRequest{Name: "x402", MerchantID: merchantID, Scopes: []string{"invoices:read", "invoices:write"}})
	expect.OK(tb, err)
	return key
}

// merchantKey returns a key of the shop.
func (s *service) merchantKey(r *replica) string {
	s.Helper()
	return x402Key(s, s.api(r), shopID)
}

// shop runs the example's server with a service at a URL as its facilitator.
func (s *service) shop(a *agents, url, key string) string {
	s.Helper()
	return a.sell("QUITTANCE_URL="+url, "QUITTANCE_API_KEY="+key, fmt.Sprintf("NETWORK=eip155:%d", anviltest.ChainID), "ASSET="+s.token, "PAY_TO="+s.till.Address)
}

// TestExtraX402Kills kills the service while agents pay, 32 at a time: for invoices, and for the resources
// of a server that has the service as its facilitator. Each agent repeats its payment until it is
// answered 200. No agent is charged twice, and every agent that paid gets an answer.
func TestExtraX402Kills(t *testing.T) {
	t.Parallel()
	type prepare = func(s *service, a *agents, r *replica, p *proxy) (urls []string, total int)
	for kind, of := range map[string]struct {
		database func(testing.TB) string
		prepare
	}{
		"invoices": {dbtest.SQLite, func(s *service, _ *agents, r *replica, p *proxy) (urls []string, total int) {
			for n := range *x402Payments {
				urls = append(urls, p.URL+"/x402/invoices/"+s.create(r, 1_000_000+n).ID)
				total += 1_000_000 + n
			}
			return urls, total
		}},
		"resources": {dbtest.MigratedPostgres, func(s *service, a *agents, r *replica, p *proxy) (urls []string, total int) {
			shop := s.shop(a, p.URL, s.merchantKey(r))
			for n := range *x402Payments {
				urls = append(urls, fmt.Sprintf("%s/forecast/%d", shop, n))
				total += 10_000 // the example's price
			}
			return urls, total
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			killX402(t, of.database(t), of.prepare)
		})
	}
}

// killX402 kills a service while agents buy the URLs that prepare returns, with their total price.
func killX402(t *testing.T, database string, prepare func(s *service, a *agents, r *replica, p *proxy) (urls []string, total int)) {
	t.Helper()
	s, a := newX402Service(t, database)
	s.patience = outlastLeases
	r := s.start()
	p := newProxy(t, []*replica{r})
	urls, total := prepare(s, a, r, p)
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() { r = s.killRepeatedly(p, r, stop) })
	all := a.buy(32, urls...)
	close(stop)
	killer.Wait()

	for _, url := range urls {
		if b := all[url]; b.Status != http.StatusOK || b.Signed != 1 {
			t.Errorf("%s ended with %d after %d requests and %d payments: %q", url, b.Status, b.Requests, b.Signed, b.Errors)
		}
	}
	payments := s.payments(r)
	if len(payments) != len(urls) {
		t.Errorf("there are %d payments for %d purchases", len(payments), len(urls))
	}
	seen := make(map[string]bool)
	for _, pay := range payments {
		if pay.InvoiceID == "" || seen[pay.InvoiceID] {
			t.Errorf("a payment belongs to %q, which has another or is none", pay.InvoiceID)
		}
		seen[pay.InvoiceID] = true
	}
	balance := s.chain.Cast(t, "call", s.token, "balanceOf(address)(uint256)", s.till.Address)
	if strings.Fields(balance)[0] != fmt.Sprint(total) {
		t.Errorf("the merchant has %s, want %d", balance, total)
	}
}

// killRepeatedly kills the service and starts it again, until it was killed often enough or stop is
// closed. It returns the last one.
func (s *service) killRepeatedly(p *proxy, r *replica, stop <-chan struct{}) *replica {
	s.Helper()
	next := time.NewTicker(2 * time.Second)
	defer next.Stop()
	for n := range *x402Kills {
		select {
		case <-next.C:
		case <-stop:
			s.Logf("killed %d times", n)
			return r
		}
		r.kill()
		r = s.start()
		p.replace(0, r)
	}
	s.Logf("killed %d times", *x402Kills)
	return r
}
