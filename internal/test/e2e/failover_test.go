package e2e

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/webhook"
)

var failovers = flag.Int("failovers", 1, "how often TestExtraFailover kills PostgreSQL's primary")

const (
	// resumption is the time from a kill of the primary within which every replica must work on the promoted standby.
	resumption = 20 * time.Second
	// buyers is the number of clients that create invoices, each one every buyerPause.
	buyers     = 4
	buyerPause = 50 * time.Millisecond
	// ordersBetween is how many invoices are created between two changes.
	ordersBetween = 60
)

// TestExtraFailover kills the primary of a synchronous pair of PostgreSQL servers while two replicas create invoices,
// and promotes the standby. Work must resume, no accepted invoice is lost, and no idempotency key creates two.
func TestExtraFailover(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(*failovers)*time.Minute)
	t.Cleanup(cancel)
	primary, standby := startPair(ctx, t)
	// The first host is read-only, and is skipped.
	s := newService(t, dbtest.HostsDSN("postgres", standby, primary))
	replicas := []*replica{s.start(), s.start()}
	orders := s.takeOrders(replicas...)
	wantTypes := make(map[string][]string)
	for n := range *failovers {
		if n > 0 {
			primary, standby = standby, primary
			expect.OK(t, standby.Follow(ctx, primary))
		}
		orders.await(t, ordersBetween)
		before, after := s.create(replicas[0], 1_000_000+2*n), s.create(replicas[1], 1_000_001+2*n)
		s.awaitCommitment(after.OnChainInvoiceID, contracts.StatusOpen)
		paidBefore := s.payTransferAmount(before)

		killed := time.Now()
		expect.OK(t, primary.KillNine())
		paidAfter := s.payTransferAmount(after) // while no server accepts writes
		expect.OK(t, standby.Promote(ctx))
		promoted := time.Since(killed)
		resumed := orders.acceptedSince(t, time.Now(), killed)
		s.awaitPayment(replicas[0], before.ID, paidBefore, apitypes.PaymentConfirmed)
		s.awaitPayment(replicas[1], after.ID, paidAfter, apitypes.PaymentConfirmed)
		settled := time.Since(killed)
		t.Logf("failover %d: promoted after %s, replicas create after %s, payments settled after %s",
			n+1, promoted.Round(time.Millisecond), resumed, settled.Round(time.Millisecond))
		for _, took := range append(resumed, settled) {
			if took > resumption {
				t.Errorf("work resumed %s after the kill; want at most %s", took, resumption)
			}
		}
		for _, made := range []apitypes.CreateInvoiceResponse{before, after} {
			wantTypes[made.ID] = []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
		}
	}
	orders.await(t, ordersBetween)
	made := orders.stop()
	for id := range made {
		wantTypes[id] = []string{webhook.InvoiceCreated}
	}
	s.expectInvoices(replicas[0], wantTypes)
	t.Logf("%d invoices were created with a key each; refused attempts: %d", len(made), orders.refused)
	s.patience = outlastLeases // the primary may have been killed between a delivery's lease and its outcome
	s.awaitEvents(wantTypes)
	s.expectEventsOnce(wantTypes)
}

// startPair starts a primary and its synchronous standby.
func startPair(ctx context.Context, tb testing.TB) (primary, standby *dbtest.Cluster) {
	tb.Helper()
	primary, err := dbtest.StartCluster(ctx, dbtest.Options{Fsync: true})
	expect.OK(tb, err)
	tb.Cleanup(func() { stopCluster(tb, primary) })
	if standby, err = dbtest.StartStandby(ctx, primary); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stopCluster(tb, standby) })
	return primary, standby
}

func stopCluster(tb testing.TB, c *dbtest.Cluster) {
	tb.Helper()
	expect.NoError(tb, c.Stop())
}

// expectInvoices fails the test unless a replica has exactly these invoices.
func (s *service) expectInvoices(r *replica, want map[string][]string) {
	s.Helper()
	found := make(map[string]bool)
	for inv, err := range s.api(r).Invoices(s.Context(), client.InvoiceFilter{PageSize: 100}) {
		expect.OK(s, err)
		found[inv.ID] = true
		if want[inv.ID] == nil {
			s.Errorf("the invoice %s was made twice, or for nobody", inv.ID)
		}
	}
	for id := range want {
		if !found[id] {
			s.Errorf("the invoice %s was accepted and is lost", id)
		}
	}
}

// orders creates invoices continuously, each with an idempotency key that is used until the invoice is accepted.
type orders struct {
	closing chan struct{}
	work    sync.WaitGroup

	mu       sync.Mutex
	apis     []*client.Client // of the replicas
	made     map[string]bool  // ids of accepted invoices
	accepted []time.Time      // when each replica last accepted an order, by the time at which that order began
	begun    []time.Time
	refused  int           // attempts
	changed  chan struct{} // closed and replaced at every order
}

// takeOrders starts the clients, alternating between the replicas.
func (s *service) takeOrders(replicas ...*replica) *orders {
	s.Helper()
	o := &orders{
		closing: make(chan struct{}), made: make(map[string]bool), changed: make(chan struct{}),
		accepted: make([]time.Time, len(replicas)), begun: make([]time.Time, len(replicas)),
	}
	draft := s.draft(0)
	for _, r := range replicas {
		o.apis = append(o.apis, s.api(r))
	}
	for i := range buyers {
		o.work.Go(func() { o.buy(s.Context(), i%len(replicas), i, draft) })
	}
	s.Cleanup(func() { o.stop() })
	return o
}

// buy creates invoices one after the other until the orders are stopped.
func (o *orders) buy(ctx context.Context, at, buyer int, draft apitypes.CreateInvoiceRequest) {
	pause := time.NewTicker(buyerPause)
	defer pause.Stop()
	for n := 0; ; n++ {
		draft.Amount = strconv.Itoa(100_000_000 + 10_000*(buyers*n+buyer))
		key := client.IdempotencyKey(fmt.Sprintf("order-%d-%d", buyer, n))
		for accepted := false; !accepted; {
			begun := time.Now()
			answer, err := o.api(at).CreateInvoice(ctx, draft, key)
			accepted = err == nil
			o.record(at, begun, answer.ID, err)
			select {
			case <-pause.C:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-o.closing:
			return
		default:
		}
	}
}

func (o *orders) api(at int) *client.Client {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.apis[at]
}

// move switches the clients of a replica to another one, and returns once each has switched.
func (o *orders) move(tb testing.TB, at int, to *client.Client) {
	tb.Helper()
	o.mu.Lock()
	o.apis[at] = to
	o.mu.Unlock()
	moved := time.Now()
	o.until(tb, func() bool { return o.begun[at].After(moved) })
}

func (o *orders) record(at int, begun time.Time, id string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.refused++
		return
	}
	o.made[id] = true
	o.accepted[at], o.begun[at] = time.Now(), begun
	close(o.changed)
	o.changed = make(chan struct{})
}

// stop waits until each client's last invoice is accepted, and returns the ids of all. It may be called again.
func (o *orders) stop() map[string]bool {
	select {
	case <-o.closing:
	default:
		close(o.closing)
	}
	o.work.Wait()
	return o.made
}

// await waits for further orders.
func (o *orders) await(tb testing.TB, further int) {
	tb.Helper()
	o.mu.Lock()
	want := len(o.made) + further
	o.mu.Unlock()
	o.until(tb, func() bool { return len(o.made) >= want })
}

// acceptedSince waits until every replica has accepted an order that began after moment,
// and returns the time of each since killed.
func (o *orders) acceptedSince(tb testing.TB, moment, killed time.Time) []time.Duration {
	tb.Helper()
	took := make([]time.Duration, len(o.begun))
	o.until(tb, func() bool {
		all := true
		for i, begun := range o.begun {
			if took[i] == 0 && begun.After(moment) {
				took[i] = o.accepted[i].Sub(killed).Round(time.Millisecond)
			}
			all = all && took[i] > 0
		}
		return all
	})
	return took
}

// until waits until the condition on the orders holds.
func (o *orders) until(tb testing.TB, ok func() bool) {
	tb.Helper()
	ctx := within(tb, 2*patience)
	for {
		o.mu.Lock()
		changed, done := o.changed, ok()
		o.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			tb.Fatal("no further orders are accepted")
		}
	}
}

// drainLimit is the time within which the service must stop without its database.
const drainLimit = 20 * time.Second

// faultyDatabaseService is a service in this process with database connections that a test can cut.
type faultyDatabaseService struct {
	*testing.T
	api   *client.Client
	stop  context.CancelFunc
	ended chan error // what server.Run returned
	node  *devchain.Chain
	proxy *dbtest.Proxy
	log   *logtest.Buffer
}

func startFaultyDatabase(t *testing.T) *faultyDatabaseService {
	s := &faultyDatabaseService{T: t, ended: make(chan error, 1), log: new(logtest.Buffer)}
	var err error
	if s.node, err = devchain.Start(t.Context(), devchain.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.NoError(t, s.node.Close()) })
	var database string
	if s.proxy, database, err = dbtest.StartProxy(t.Context(), dbtest.MigratedPostgres(t), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.NoError(t, s.proxy.Close()) })
	listeners, err := server.ListenAll(t.Context(), []server.Address{{Listen: "127.0.0.1:0"}})
	expect.OK(t, err)
	ready := make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.ended <- server.Run(ctx, server.Config{
			Listeners: listeners, Database: database, Merchants: server.Merchants{AcceptAll: true},
			Access: server.Access{Mode: access.Test, Open: true},
			Chains: []server.Chain{{Chain: s.chain(), OperatorKey: s.node.Keys.Operator, PollInterval: 100 * time.Millisecond}},
			Now:    time.Now, Rand: rand.Reader, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
			Ready: func(url string) { ready <- url },
		})
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
	})
	select {
	case url := <-ready:
		s.api = client.Must(client.New(url, client.WithRetries(0)))
	case err := <-s.ended:
		t.Fatalf("it ended: %v", err)
	}
	return s
}

func (s *faultyDatabaseService) chain() chain.Chain {
	local, _ := chain.Lookup(chain.Local)
	local.RPC = []string{s.node.RPCURL()}
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(s.node.Token), Decimals: 6}}
	local.Registry = invoice.Address(s.node.Registry)
	return local
}

// opened creates an invoice, and seals blocks until it is open in the registry.
func (s *faultyDatabaseService) opened() {
	s.Helper()
	made, err := s.api.CreateInvoice(s.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: "m", MerchantAddress: devchain.Address(s.node.Keys.Merchant).Hex(),
		Amount: "1000000", Currency: chain.USDC, ChainKey: chain.Local, ExpiresAt: time.Now().Add(time.Hour).Unix(),
	})
	expect.OK(s, err)
	if err := await(within(s, patience), func() bool {
		expect.OK(s, s.node.Seal(s.Context()))
		status, err := s.node.StatusOf(s.Context(), common.HexToHash(made.OnChainInvoiceID))
		return err == nil && status == contracts.StatusOpen
	}); err != nil {
		s.Fatalf("the invoice was not opened:\n%s", s.log.String())
	}
}

// TestExtraStopWithLostDatabase stops a service after its database connections died. It must stop without
// an error within drainLimit.
func TestExtraStopWithLostDatabase(t *testing.T) {
	t.Parallel()
	s := startFaultyDatabase(t)
	s.opened()
	expect.Success(t)(s.proxy.Lose(dbtest.Swallowed))
	begun := time.Now()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	t.Logf("it took %s to stop", time.Since(begun).Round(10*time.Millisecond))
	if took := time.Since(begun); took > drainLimit {
		t.Errorf("it took %s to stop; want at most %s", took, drainLimit)
	}
}
