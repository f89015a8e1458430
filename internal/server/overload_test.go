package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

const (
	// overloadTrip is the round trip to the database, of which a batch of creates takes two.
	overloadTrip = 200 * time.Millisecond
	// overloadCreators and overloadReaders are the numbers of clients that create invoices, half of them
	// with idempotency keys, and of clients that read one. Of the creators, up to three batches of 128
	// have a create in progress, or have just had their answers.
	overloadCreators, overloadReaders = 620, 300
	// overloadBacklog is the least number of creates that wait while the service is overloaded: more than one batch.
	overloadBacklog = 128
	// overloadPassing is the highest number of creates from a block to the delivery of its payment: 2
	// batches of 128 in each of 30 turns of two round trips, however many wait.
	overloadPassing = 30 * 2 * 128
	// overloadPayments is how many payments arrive, each in a separate block.
	overloadPayments = 2
)

// overload is a service on a distant database, and clients that create far more invoices than it takes.
type overload struct {
	*testing.T
	url    string
	proxy  *dbtest.Proxy
	blocks *chaintest.Chain
	clock  func() time.Time
	log    *logtest.Buffer
	paid   chan string // the invoices of the payment.received events that were delivered

	client            *http.Client
	stop              atomic.Bool
	working           sync.WaitGroup
	begun             atomic.Int64 // creates
	made              atomic.Int64
	refused           atomic.Int64 // creates that waited too long for their transaction
	read, busy        atomic.Int64 // reads, and reads that waited too long for a connection
	open              atomic.Int64 // creates with an unknown outcome, since their transaction took too long
	probes, unhealthy atomic.Int64
}

// TestExtraOverload creates invoices of a merchant from many clients on a database that is far too slow for them. In
// spite of all the waiting creates, each payment becomes an event and is delivered, and the service stays ready. Then
// the database is blocked until creates are refused: with Retry-After, and without an invoice.
func TestExtraOverload(t *testing.T) {
	t.Parallel()
	database := dbtest.MigratedPostgres(t)
	o := startOverload(t, database)
	invoices := o.createInvoices()
	o.proxy.SetRoundTrip(overloadTrip)
	o.begin(invoices[0].ID)
	waited := false
	for _, inv := range invoices {
		o.awaitBacklog()
		made := o.made.Load()
		o.pay(inv)
		o.awaitPaid(inv.ID)
		waited = waited || o.backlog() >= overloadBacklog
		if passed := o.made.Load() - made; passed > overloadPassing {
			t.Errorf("%d creates were made between a block and the delivery of its payment, want %d at most", passed, overloadPassing)
		}
	}
	if !waited { // a busy machine may be slow to create them again, but hardly for both payments
		t.Errorf("fewer than %d creates waited whenever a payment was delivered", overloadBacklog)
	}
	o.hold(database)
	o.end()
	// On a busy machine the database may not answer a check in time.
	if 2*o.unhealthy.Load() > o.probes.Load() || o.probes.Load() == 0 {
		t.Errorf("%d of %d requests for the service's health were not answered 200\n%s", o.unhealthy.Load(), o.probes.Load(), o.log.String())
	}
	var stored int64
	expect.OK(t, dbtest.SQL(t, database).QueryRowContext(t.Context(), "SELECT count(*) FROM invoices").Scan(&stored))
	if least := o.made.Load() + overloadPayments; stored < least || stored > least+o.open.Load() {
		t.Errorf("%d invoices are stored, want the %d that were answered 201, and %d more at most", stored, least, o.open.Load())
	}
	t.Logf("%d creates were made, %d refused and %d left open; %d reads and %d refused; %d health checks", o.made.Load(), o.refused.Load(), o.open.Load(), o.read.Load(), o.busy.Load(), o.probes.Load())
}

func startOverload(t *testing.T, database string) *overload {
	t.Helper()
	began := time.Now()
	o := &overload{T: t, log: new(logtest.Buffer), paid: make(chan string, overloadPayments)}
	proxy, through, err := dbtest.StartProxy(t.Context(), database, 0)
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, proxy.Close()) })
	o.proxy = proxy
	receiver := httptest.NewServer(http.HandlerFunc(o.receive))
	t.Cleanup(receiver.Close)
	endpoint := access.MerchantSettings{WebhookURL: receiver.URL, WebhookSecret: "whsec_test"}
	c, blocks, _ := scriptedChain(t, "house", 7)
	o.blocks = blocks
	o.clock = func() time.Time { return time.Unix(chaintest.GenesisTime, 0).Add(time.Since(began)) }
	o.url = startServer(t, Config{
		Now: o.clock, Database: through, Chains: []Chain{c}, Logger: slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelWarn})), Keyring: keyringtest.New(t), WebhookAllow: webhooks.Loopback(),
		Merchants: Merchants{AcceptAll: true, Configured: map[string]access.MerchantSettings{"paid": endpoint, "busy": endpoint}},
	}).url
	await(t, o.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	o.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: overloadCreators + overloadReaders}}
	t.Cleanup(o.client.CloseIdleConnections)
	return o
}

// receive notes payments that are delivered.
func (o *overload) receive(_ http.ResponseWriter, r *http.Request) {
	if r.Header.Get(webhook.HeaderEvent) != string(invoice.EventReceived) {
		return
	}
	var event struct {
		Data struct{ Payment struct{ InvoiceID string } }
	}
	expect.NoError(o, json.NewDecoder(r.Body).Decode(&event))
	o.paid <- event.Data.Payment.InvoiceID
}

// createInvoices creates the invoices that will be paid.
func (o *overload) createInvoices() (all [overloadPayments]apitypes.CreateInvoiceResponse) {
	o.Helper()
	for i := range all {
		a := ask(o.T, http.MethodPost, o.url+"/api/invoices", o.invoice("paid", invoice.Address{2}))
		if err := json.Unmarshal([]byte(a.body), &all[i]); err != nil || a.status != http.StatusCreated {
			o.Fatalf("create: %d %s, %v", a.status, a.body, err)
		}
	}
	return all
}

// begin starts the clients. Some read the invoice, and one asks for the service's health.
func (o *overload) begin(id string) {
	o.Cleanup(o.end)
	work := func(one func(n int) (done bool)) {
		o.working.Go(func() {
			for n := 0; !o.stop.Load(); n++ {
				if !one(n) {
					clock.Sleep(o.Context(), time.Second, nil) // as Retry-After asks
				}
			}
		})
	}
	for i := range overloadCreators {
		work(func(n int) bool {
			if i%2 == 0 {
				return o.createOne("")
			}
			return o.createOne(fmt.Sprint("order-", i, "-", n))
		})
	}
	for range overloadReaders {
		work(func(int) bool { return o.readOne(id) })
	}
	o.working.Go(func() {
		for !o.stop.Load() {
			for _, path := range []string{"/readyz", "/healthz"} {
				o.probes.Add(1)
				if a := ask(o.T, http.MethodGet, o.url+path, ""); a.status != http.StatusOK {
					o.unhealthy.Add(1)
				}
			}
		}
	})
}

// hold keeps the lock of events, for which all creates wait, until one is refused.
func (o *overload) hold(database string) {
	o.Helper()
	tx, err := dbtest.SQL(o.T, database).BeginTx(o.Context(), nil)
	expect.OK(o, err)
	defer func() { expect.NoError(o, tx.Rollback()) }()
	expect.Success(o)(tx.ExecContext(o.Context(), "SELECT pg_advisory_xact_lock(1903520116)"))
	for deadline := time.Now().Add(time.Minute); o.refused.Load() == 0; {
		if time.Now().After(deadline) || !clock.Sleep(o.Context(), overloadTrip, nil) {
			o.Fatal("no create is refused")
		}
	}
}

// end waits until the clients have their last answers.
func (o *overload) end() {
	o.stop.Store(true)
	o.working.Wait()
}

// invoice returns the body of a create of a merchant with a unique amount.
func (o *overload) invoice(merchant string, address invoice.Address) string {
	return fmt.Sprintf(`{"merchantId":"%s","merchantAddress":"%s","amount":"%d","currency":"USDC","chainKey":"house","expiresAt":%d}`, merchant, address, 1_000_000+1000*o.begun.Add(1), o.clock().Unix()+3600)
}

// createOne creates an invoice, with an idempotency key unless it is empty, and reports whether it was made.
func (o *overload) createOne(key string) (made bool) {
	status, text := o.send(http.MethodPost, "", o.invoice("busy", invoice.Address{3}), key)
	switch {
	case status == http.StatusCreated:
		o.made.Add(1)
	case status != http.StatusServiceUnavailable:
		o.Errorf("a create is answered %d %s", status, text)
	case bytes.Contains(text, []byte("created none")):
		o.refused.Add(1)
	default:
		o.open.Add(1)
	}
	return status == http.StatusCreated
}

// readOne reads an invoice, and reports whether it was there.
func (o *overload) readOne(id string) (found bool) {
	status, text := o.send(http.MethodGet, "/"+id, "", "")
	switch {
	case status == http.StatusOK:
		o.read.Add(1)
	case status == http.StatusServiceUnavailable:
		o.busy.Add(1)
	default:
		o.Errorf("a read is answered %d %s", status, text)
	}
	return status == http.StatusOK
}

// send sends a request about invoices. An answer of 503 must have Retry-After.
func (o *overload) send(method, path, body, key string) (status int, text []byte) {
	r, err := http.NewRequestWithContext(o.Context(), method, o.url+"/api/invoices"+path, strings.NewReader(body))
	if err != nil {
		o.Error(err)
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	response, err := o.client.Do(r)
	if err != nil {
		o.Error(err)
		return 0, nil
	}
	text, err = io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read
	if err != nil || response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "" {
		o.Errorf("%s is answered %s %q, %v", path, response.Status, text, err)
	}
	return response.StatusCode, text
}

var createsWaitingLine = regexp.MustCompile(`(?m)^quittance_creates_waiting (\d+)$`)

// backlog returns how many creates wait for a transaction.
func (o *overload) backlog() int64 {
	o.Helper()
	line := createsWaitingLine.FindStringSubmatch(ask(o.T, http.MethodGet, o.url+"/metrics", "").body)
	if line == nil {
		o.Fatal("the metrics lack the creates that wait")
	}
	n := expect.Must(strconv.ParseInt(line[1], 10, 64))
	return n
}

// awaitBacklog waits until the creates that wait fill several batches.
func (o *overload) awaitBacklog() {
	o.Helper()
	for o.backlog() < overloadBacklog {
		if !clock.Sleep(o.Context(), overloadTrip/10, nil) {
			o.Fatal("no creates wait")
		}
	}
}

// pay mines a block with the payment of an invoice.
func (o *overload) pay(made apitypes.CreateInvoiceResponse) {
	o.Helper()
	amount := expect.Must(invoice.ParseAmount(made.Invoice.TransferAmount))
	to := expect.Must(invoice.ParseAddress(made.Invoice.MerchantAddress))
	o.blocks.MineAt(max(o.clock().Unix(), o.blocks.Head().Time+1), chaintest.NewTx(chaintest.Transfer(testToken, invoice.Address{1}, to, amount)))
}

// awaitPaid waits until the payment of an invoice was delivered.
func (o *overload) awaitPaid(id string) {
	o.Helper()
	select {
	case got := <-o.paid:
		if got != id {
			o.Errorf("a payment of %s is delivered, want %s", got, id)
		}
	case <-time.After(time.Minute):
		o.Fatalf("no payment of %s is delivered\n%s", id, o.log.String())
	}
}
