package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/webhook"
)

const (
	// deliverSecret signs what is delivered.
	deliverSecret = "whsec_YmVuY2ggYmVuY2ggYmVuY2ggYmVuY2ggYmVuY2g="
	// deliverMerchants is how many merchants share the events of a throughput.
	deliverMerchants = 100
	// deliverLanes is how many posts the bare loop has under way: what a worker
	// allows for healthy endpoints.
	deliverLanes = 64
)

// serveSink answers every request with 200 until its standard input ends. It is a process of
// its own, so that its CPU time is not that of the worker.
func serveSink(ctx context.Context) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "0.0.0.0:0") // all of 127.0.0.0/8
	if err != nil {
		return err
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	})}
	go s.Serve(l) //nolint:errcheck // it ends with the process
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}

// measureDeliver measures how many events are delivered in a second to local
// receivers, and how many a bare loop of signed posts sends with the same
// transport.
func (b *bench) measureDeliver(ctx context.Context, kind string) (err error) {
	sink, port, err := startProcess(ctx, "sink", struct{}{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.stop()) }()
	s, _, err := b.openStore(ctx, kind, "deliver")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := schedule(ctx, s, merchantNames("m", deliverMerchants), b.events/deliverMerchants, time.Now()); err != nil {
		return err
	}
	ceiling, bare, err := b.bareLoop(ctx, port)
	if err != nil {
		return err
	}
	w := newDeliverer(s, newClient(), func(id string) string { return sinkURL(id, port) })
	stopProfile, err := b.profiled("deliveries-" + kind)
	if err != nil {
		return err
	}
	server, err := b.serverCPU(ctx, kind)
	if err != nil {
		return err
	}
	cpu, began := ownCPU(), time.Now()
	err = w.until(ctx, int64(b.events))
	took := time.Since(began)
	cpu = ownCPU() - cpu
	after, afterErr := b.serverCPU(ctx, kind)
	if err := errors.Join(err, afterErr, stopProfile()); err != nil {
		return err
	}
	server = (after - server) / time.Duration(b.events)
	rate := float64(b.events) / took.Seconds()
	b.report.ratio(kind, "deliveries/s", fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", ceiling), rate/ceiling,
		fmt.Sprintf("ceiling: a bare loop of signed posts, %d at a time", deliverLanes))
	b.report.row(kind, "CPU per delivery", (cpu/time.Duration(b.events) + server).Round(time.Microsecond), bare.Round(time.Microsecond), "",
		fmt.Sprintf("of the database %v; receiver not included; the ceiling is the bare loop's; %d requests for leases", server.Round(time.Microsecond), len(w.leases)))
	return nil
}

// profiled starts a CPU profile of this process if profiles are enabled.
func (b *bench) profiled(name string) (stop func() error, err error) {
	if b.profile == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(b.profile, name+".pprof"))
	if err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, pprof.StartCPUProfile(file)
}

// sinkURL is the address of a merchant at the sink: each has a host of its own.
func sinkURL(merchantID, port string) string {
	return "http://127.0.0." + strings.TrimLeft(strings.TrimPrefix(merchantID, "m"), "0") + ":" + port
}

// bareLoop returns how many signed posts a second a loop sends, and what CPU
// time each takes.
func (b *bench) bareLoop(ctx context.Context, port string) (rate float64, cpu time.Duration, err error) {
	client := newClient()
	defer client.CloseIdleConnections()
	body := []byte(eventBody)
	merchants := merchantNames("m", deliverMerchants)
	var left atomic.Int64
	left.Store(int64(b.events))
	errs := make(chan error, deliverLanes)
	before, began := ownCPU(), time.Now()
	var group sync.WaitGroup
	for range deliverLanes {
		group.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				if err := signedPost(ctx, client, sinkURL(merchants[n%deliverMerchants], port), body); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	took := time.Since(began)
	return float64(b.events) / took.Seconds(), (ownCPU() - before) / time.Duration(b.events), <-errs
}

func signedPost(ctx context.Context, client *http.Client, url string, body []byte) (err error) {
	ctx, cancel := context.WithTimeout(ctx, poster.DefaultTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(webhook.HeaderSignature, webhook.Sign(deliverSecret, now, body))
	req.Header.Set(webhook.HeaderStandardSignature, webhook.SignStandard([]string{deliverSecret}, "dlv_1", now, body))
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// newClient is the worker's, which may post to this machine.
func newClient() *http.Client {
	return poster.NewClient(poster.ClientConfig{Guard: poster.NewGuard(poster.Loopback())})
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of a bad pointer alone
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// deliverer is a worker whose outcomes are counted and whose leasing is timed.
type deliverer struct {
	*store.Store
	client *http.Client
	worker *dispatcher.Worker
	want   int64
	done   atomic.Int64
	reach  chan struct{}

	mu     sync.Mutex
	leases []time.Duration
}

// newDeliverer makes a worker whose merchants have the URLs.
func newDeliverer(s *store.Store, client *http.Client, url func(merchantID string) string) *deliverer {
	d := &deliverer{Store: s, client: client, reach: make(chan struct{})}
	d.worker = dispatcher.New(dispatcher.Config{
		Store: d, Client: client, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		Endpoints: func(_ context.Context, ids []string) (map[string]poster.Endpoint, error) {
			found := make(map[string]poster.Endpoint, len(ids))
			for _, id := range ids {
				found[id] = poster.Endpoint{URL: url(id), Secret: deliverSecret}
			}
			return found, nil
		},
		Limits: dispatcher.Limits{Grace: time.Millisecond},
	})
	return d
}

// LeaseDeliveries is the store's, timed.
func (d *deliverer) LeaseDeliveries(ctx context.Context, r delivery.LeaseRequest) (delivery.Leased, error) {
	began := time.Now()
	leased, err := d.Store.LeaseDeliveries(ctx, r)
	took := time.Since(began)
	d.mu.Lock()
	d.leases = append(d.leases, took)
	d.mu.Unlock()
	return leased, err
}

// FinishDeliveries is the store's, counted.
func (d *deliverer) FinishDeliveries(ctx context.Context, outcomes []delivery.Outcome) ([]int, error) {
	lost, err := d.Store.FinishDeliveries(ctx, outcomes)
	for _, o := range outcomes {
		if err == nil && o.Status == delivery.Delivered && d.done.Add(1) == d.want {
			close(d.reach)
		}
	}
	return lost, err
}

// until runs the worker until it has delivered a number of events.
func (d *deliverer) until(ctx context.Context, want int64) error {
	d.want = want
	return d.while(ctx, func(ctx context.Context) error {
		select {
		case <-d.reach:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// while runs the worker as long as fn takes.
func (d *deliverer) while(ctx context.Context, fn func(ctx context.Context) error) error {
	defer d.client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.worker.Run(ctx) }()
	err := fn(ctx)
	cancel()
	return errors.Join(err, <-ended)
}

func merchantNames(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%04d", prefix, i+1)
	}
	return names
}

// scheduleBatch is how many events one transaction schedules.
const scheduleBatch = 500

var scheduled atomic.Int64

// schedule inserts a number of events for each of the merchants, in turns.
func schedule(ctx context.Context, s *store.Store, merchants []string, each int, due time.Time) error {
	if err := addMerchants(ctx, s, merchants); err != nil {
		return err
	}
	var batch []string
	for range each {
		for _, m := range merchants {
			if batch = append(batch, m); len(batch) == scheduleBatch {
				if _, err := scheduleFor(ctx, s, batch, due, func([]store.Event) {}); err != nil {
					return err
				}
				batch = batch[:0]
			}
		}
	}
	_, err := scheduleFor(ctx, s, batch, due, func([]store.Event) {})
	return err
}

// addMerchants inserts merchants that have an invoice each.
func addMerchants(ctx context.Context, s *store.Store, merchants []string) error {
	invoices, settlements := make([]invoice.Invoice, len(merchants)), make([]store.SettlementAddress, len(merchants))
	for i, m := range merchants {
		invoices[i] = invoice.Invoice{
			ID: "inv_" + m, CommitmentID: sha256.Sum256([]byte(m)), MerchantID: m, Currency: "USDC", ChainKey: "local", Status: invoice.Open,
			CreatedAt: invoice.Unix(1), Terms: invoice.Terms{Merchant: invoice.Address{1}, Token: invoice.Address{2}, Amount: invoice.NewAmount(1), ExpiresAt: invoice.Unix(2)},
		}
		settlements[i] = store.SettlementAddress{ChainKey: "local", Address: invoices[i].Merchant, MerchantID: m}
	}
	return s.Update(ctx, func(tx *store.Tx) error {
		if err := tx.InsertSettlementAddresses(ctx, settlements, invoice.Unix(1)); err != nil {
			return err
		}
		_, err := tx.InsertInvoices(ctx, invoices)
		return err
	})
}

// scheduleFor inserts an event for each of the merchants.
func scheduleFor(ctx context.Context, s *store.Store, merchants []string, due time.Time, lease func([]store.Event)) ([]store.Event, error) {
	events := make([]store.Event, len(merchants))
	for i, m := range merchants {
		n := scheduled.Add(1)
		events[i] = store.Event{
			ID: fmt.Sprintf("evt_%026d", n), Type: invoice.EventReceived, Subject: fmt.Sprint(n), MerchantID: m, InvoiceID: "inv_" + m,
			Body: []byte(eventBody), CreatedAt: due, DeliveryID: fmt.Sprintf("dlv_%026d", n), Due: due,
		}
	}
	return events, s.Update(ctx, func(tx *store.Tx) error {
		lease(events)
		return tx.InsertEvents(ctx, events)
	})
}

// execute runs a statement on the database of the running program.
func execute(ctx context.Context, url, statement string) (err error) {
	db, err := openSQL(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// openSQL opens a database for statements of the bench.
func openSQL(url string) (*sql.DB, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	}
	return sql.Open("pgx", url)
}
