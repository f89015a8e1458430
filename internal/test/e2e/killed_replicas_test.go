package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

var replicaKills = flag.Int("replica-kills", 2, "how often TestExtraKilledReplicas kills a replica")

const (
	// killInterval is the time from one kill to the next.
	killInterval = 3 * time.Second
	// outlastLeases is longer than the leases of a killed replica last.
	outlastLeases = 75 * time.Second
)

// TestExtraKilledReplicas kills one of three replicas behind a proxy every few seconds and
// restarts it, while invoices are created and paid. No accepted invoice is lost or created
// twice, each event arrives once, and no transaction is sent twice.
func TestExtraKilledReplicas(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.MigratedPostgres(t))
	before := s.nonce()
	replicas := []*replica{s.start(), s.start(), s.start()}
	p := newProxy(t, replicas)
	front := &replica{url: p.URL}
	orders := s.takeOrders(front)
	orders.await(t, ordersBetween)

	wantTypes := make(map[string][]string)
	paid := make(map[string]apitypes.CreateInvoiceResponse) // by transaction
	next := time.NewTicker(killInterval)
	defer next.Stop()
	var longest time.Duration // the longest time from a kill until the replica worked again
	for n := range *replicaKills {
		killed, at := time.Now(), n%len(replicas)
		replicas[at].kill()
		made := s.createWithRetries(front, fmt.Sprintf("paid-%d", n), 1_000_000+n)
		paid[s.payTransferAmount(made)] = made
		wantTypes[made.ID] = []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
		replicas[at] = s.start()
		p.replace(at, replicas[at])
		longest = max(longest, time.Since(killed))
		select {
		case <-next.C:
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
	orders.await(t, ordersBetween)
	made := orders.stop()
	for id := range made {
		wantTypes[id] = []string{webhook.InvoiceCreated}
	}
	t.Logf("%d kills, %d invoices created with a key each, refused attempts: %d, requests passed to another replica: %d; a replica worked again within %s",
		*replicaKills, len(made), orders.refused, p.passedOn(), longest.Round(time.Millisecond))

	s.patience = outlastLeases // replicas were killed between a delivery's lease and its outcome
	s.awaitEvents(wantTypes)
	for tx, inv := range paid {
		s.awaitPayment(front, inv.ID, tx, apitypes.PaymentConfirmed)
		s.awaitCommitment(inv.OnChainInvoiceID, contracts.StatusClosed)
	}
	s.expectInvoices(front, wantTypes)
	s.expectPaidOnce(front, paid)
	s.expectEventsOnce(wantTypes)
	// A transaction that two replicas sent would have no effect.
	if sent, useful := s.nonce()-before, s.registryTransactions(); sent > useful {
		t.Errorf("%d transactions were sent to the registry, of which %d changed something", sent, useful)
	}
}

// nonce returns how many transactions the operator has sent.
func (s *service) nonce() int {
	s.Helper()
	n, err := strconv.Atoi(s.chain.Cast(s, "nonce", s.admin.Address))
	expect.OK(s, err)
	return n
}

// registryTransactions returns the number of transactions that opened or closed commitments.
func (s *service) registryTransactions() int {
	s.Helper()
	changed := make(map[string]bool)
	for _, event := range []string{"Opened(bytes32)", "Closed(bytes32)"} {
		text := s.chain.Cast(s, "logs", "--json", "--from-block", "0", "--address", s.registry, event)
		var logs []struct {
			TxHash string `json:"transactionHash"`
		}
		if err := json.Unmarshal([]byte(text), &logs); err != nil {
			s.Fatalf("cast logs printed no logs: %v\n%s", err, text)
		}
		for _, l := range logs {
			changed[l.TxHash] = true
		}
	}
	return len(changed)
}

// createWithRetries creates an invoice with an idempotency key, and repeats the request until it is answered.
func (s *service) createWithRetries(r *replica, key string, amount int) (made apitypes.CreateInvoiceResponse) {
	s.Helper()
	draft, api := s.draft(amount), s.api(r)
	var err error
	if await(within(s, s.patience), func() bool {
		made, err = api.CreateInvoice(s.Context(), draft, client.IdempotencyKey(key))
		return err == nil
	}) != nil {
		s.Fatal(err)
	}
	return made
}

// expectPaidOnce fails the test unless exactly these transactions each paid their invoice once.
func (s *service) expectPaidOnce(r *replica, paid map[string]apitypes.CreateInvoiceResponse) {
	s.Helper()
	payments := s.payments(r)
	if len(payments) != len(paid) {
		s.Errorf("there are %d payments; want %d", len(payments), len(paid))
	}
	for _, p := range payments {
		if p.Status != apitypes.PaymentConfirmed || p.InvoiceID != paid[p.TxHash].ID {
			s.Errorf("transaction %s paid invoice %s; the payment is %+v", p.TxHash, paid[p.TxHash].ID, p)
		}
	}
	for tx, made := range paid {
		if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusPaid || inv.SettledTxHash != tx || inv.Exception != "" {
			s.Errorf("after transaction %s the invoice is %+v", tx, inv)
		}
	}
}

// proxy passes requests to replicas in turn. As nginx does by default, it passes a request to the next
// replica if it cannot connect to one, or if one breaks off and the method is idempotent. Otherwise it
// closes the client's connection.
type proxy struct {
	*httptest.Server
	transport *http.Transport

	mu      sync.Mutex
	targets []*url.URL
	turn    int
	passed  int // number of requests that were passed to another replica
}

func newProxy(tb testing.TB, replicas []*replica) *proxy {
	tb.Helper()
	p := &proxy{targets: make([]*url.URL, len(replicas)), transport: &http.Transport{MaxIdleConnsPerHost: 16, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}
	for i, r := range replicas {
		p.replace(i, r)
	}
	p.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, Transport: p,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(tb.Output(), "proxy: ", 0),
	})
	tb.Cleanup(func() {
		p.Server.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// replace replaces one replica by another.
func (p *proxy) replace(at int, r *replica) {
	target, err := url.Parse(r.url)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets[at] = target
}

// passedOn returns the number of requests that were passed to another replica.
func (p *proxy) passedOn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// next returns the replica that takes the next request.
func (p *proxy) next(again bool) *url.URL {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again {
		p.passed++
	}
	p.turn++
	return p.targets[p.turn%len(p.targets)]
}

// RoundTrip implements http.RoundTripper.
func (p *proxy) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	for try := range len(p.targets) {
		target := p.next(try > 0)
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = target.Scheme, target.Host
		answer, err = p.transport.RoundTrip(out)
		if err == nil || errors.Is(err, context.Canceled) || !canPassOn(r, err) {
			return answer, err
		}
	}
	return answer, err
}

// canPassOn reports whether a request that failed may be sent to another replica.
func canPassOn(r *http.Request, err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	return r.Method == http.MethodGet
}
