package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/bench/costmodel"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// mostReplicas is how many servers share a database at most.
	mostReplicas = 3
	// killCycle is the time between two kills, and killPause how long the killed server is away.
	killCycle, killPause = 15 * time.Second, 5 * time.Second
	// rateWindow is the time that a rate is measured over, and rateStep the resolution of when.
	rateWindow, rateStep = time.Second, 100 * time.Millisecond
	// ownShare is the part of a CPU, in thousandths, that each server has where none takes that of another.
	ownShare = 200
	// refusedPause is how long a client waits after a server did not answer.
	refusedPause = 50 * time.Millisecond
)

// replicas are servers that share a chain and a database.
type replicas struct {
	node *devchain.Chain
	conf serverConfig

	shares []cpuShare // of the servers, if they have some

	mu      sync.Mutex
	servers []*service // nil while one is away
}

func (b *bench) startReplicas(ctx context.Context, database string, n int) (*replicas, error) {
	w, err := b.start(ctx, serverConfig{Database: database})
	if err != nil {
		return nil, err
	}
	r := &replicas{node: w.node, conf: w.conf, servers: []*service{w.server}}
	for len(r.servers) < n {
		s, err := startService(ctx, r.conf)
		if err != nil {
			return nil, errors.Join(err, r.stop())
		}
		r.servers = append(r.servers, s)
	}
	for _, s := range r.servers {
		if err := (&world{node: r.node, server: s}).waitReady(ctx); err != nil {
			return nil, errors.Join(err, r.stop())
		}
	}
	return r, nil
}

func (r *replicas) stop() (err error) {
	for _, s := range r.servers {
		if s != nil {
			err = errors.Join(err, s.stop())
		}
	}
	for _, s := range r.shares {
		err = errors.Join(err, s.remove())
	}
	return errors.Join(err, r.node.Close())
}

// limit leaves each server a part of one CPU.
func (r *replicas) limit(thousandths int) error {
	for _, s := range r.servers {
		share, err := newCPUShare(s.cmd.Process.Pid, thousandths)
		if err != nil {
			return err
		}
		r.shares = append(r.shares, share)
	}
	return nil
}

// url returns the address of the server whose turn it is.
func (r *replicas) url(turn int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.servers {
		if s := r.servers[(int(turn)+i)%len(r.servers)]; s != nil {
			return s.url
		}
	}
	return ""
}

// replace puts a server in the place of another, or nil.
func (r *replicas) replace(i int, s *service) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers[i] = s
}

// creation is a run of creates on replicas. Each has an idempotency key, and is repeated until
// a server has answered.
type creation struct {
	replicas *replicas
	clients  int
	client   *http.Client
	began    time.Time
	made     atomic.Int64

	mu    sync.Mutex
	steps []int // how many were made in each rateStep
}

// run creates invoices, of which the keys begin with a name, for a time.
func (c *creation) run(ctx context.Context, name string, during time.Duration) error {
	c.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.clients}, Timeout: getTimeout}
	defer c.client.CloseIdleConnections()
	c.began, c.steps = time.Now(), make([]int, during/rateStep)
	merchant := devchain.Address(c.replicas.node.Keys.Merchant).Hex()
	expires := c.began.Add(24 * time.Hour).Unix()
	var begun atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, c.clients)
	for range c.clients {
		group.Go(func() {
			for time.Since(c.began) < during && ctx.Err() == nil {
				n := begun.Add(1)
				if err := c.one(ctx, n, fmt.Sprintf("%s-%d", name, n), newInvoice(aShop, merchant, n, expires)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

// one creates an invoice.
func (c *creation) one(ctx context.Context, n int64, key string, body []byte) error {
	for turn := n; ; turn++ {
		err := post(ctx, c.client, c.replicas.url(turn)+"/api/invoices", key, body)
		if err == nil {
			break
		}
		if turn-n > int64(eventPatience/refusedPause) {
			return fmt.Errorf("no server creates the invoice %s: %w", key, err)
		}
		if !wait.Sleep(ctx, refusedPause, nil) {
			return ctx.Err()
		}
	}
	c.made.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if step := int(time.Since(c.began) / rateStep); step < len(c.steps) {
		c.steps[step]++
	}
	return nil
}

// rates returns how many were made in a second, in windows that begin at each step.
func (c *creation) rates() (all []int) {
	window := int(rateWindow / rateStep)
	for i := 0; i+window <= len(c.steps); i++ {
		sum := 0
		for _, n := range c.steps[i : i+window] {
			sum += n
		}
		all = append(all, sum)
	}
	return all
}

// measureReplicas measures how many invoices are created in a second by one, two and three
// servers on one database, and how soon there are as many again after one of three was killed.
// Servers share the CPUs with PostgreSQL and the clients, or each has a part of its own.
func (b *bench) measureReplicas(ctx context.Context, kind string) error {
	if kind == "sqlite" {
		return nil // it has one process
	}
	for _, load := range []struct {
		clients, share int
		what           string
	}{
		{connections, 0, ""},
		{mostReplicas * connections, 0, ""},
		{mostReplicas * connections, ownShare, fmt.Sprintf(" of %.1f CPUs", float64(ownShare)/1000)},
	} {
		var one float64
		for n := 1; n <= mostReplicas; n++ {
			rate, note, err := b.replicasRate(ctx, kind, n, load.clients, load.share)
			if err != nil {
				return err
			}
			if n == 1 {
				one = rate
				b.report.row(kind, fmt.Sprintf("creates/s with idempotency keys, one server%s, %d connections", load.what, load.clients), fmt.Sprintf("%.0f", rate), "", "", note)
				continue
			}
			b.report.row(kind, fmt.Sprintf("creates/s with idempotency keys, %d servers%s, %d connections", n, load.what, load.clients), fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", one),
				fmt.Sprintf("%.2f", rate/one), "ceiling: one server; "+note)
		}
	}
	return b.measureKills(ctx, kind)
}

// replicasRate returns how many invoices n servers create in a second for so many clients, and what each costs. Each
// server has a part of a CPU, in thousandths, if that is not 0.
func (b *bench) replicasRate(ctx context.Context, kind string, n, clients, share int) (rate float64, note string, err error) {
	url, err := b.url(ctx, kind, fmt.Sprintf("replicas%d_%d_%d", n, clients, share))
	if err != nil {
		return 0, "", err
	}
	r, err := b.startReplicas(ctx, url, n)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if share > 0 {
		if err := r.limit(share); err != nil {
			return 0, "", err
		}
	}
	c := creation{replicas: r, clients: clients}
	if err := c.run(ctx, "warm", time.Second); err != nil {
		return 0, "", err
	}
	before, err := b.replicasCPU(ctx, kind, r)
	if err != nil {
		return 0, "", err
	}
	c = creation{replicas: r, clients: clients}
	if err := c.run(ctx, "rate", b.creates); err != nil {
		return 0, "", err
	}
	made := c.made.Load()
	rate = float64(made) / time.Since(c.began).Seconds()
	cpu, err := b.replicasCPU(ctx, kind, r)
	if err != nil {
		return 0, "", err
	}
	each := func(after, before time.Duration) time.Duration {
		return ((after - before) / time.Duration(made)).Round(time.Microsecond)
	}
	size, err := createsPerTransaction(ctx, url)
	return rate, fmt.Sprintf("CPU per create %v of the servers, %v of PostgreSQL, %v of the clients; %.1f in a transaction",
		each(cpu.Service, before.Service), each(cpu.Database, before.Database), each(cpu.Client, before.Client), size), err
}

// replicasCPU returns the CPU time of the clients, the servers and PostgreSQL.
func (b *bench) replicasCPU(ctx context.Context, kind string, r *replicas) (all costmodel.CPU, err error) {
	for _, s := range r.servers {
		cpu, err := s.cpu()
		if err != nil {
			return all, err
		}
		all.Service += cpu
	}
	all.Client = ownCPU()
	all.Database, err = b.serverCPU(ctx, kind)
	return all, err
}

// createsPerTransaction returns how many invoices one transaction has inserted on average.
func createsPerTransaction(ctx context.Context, url string) (size float64, err error) {
	db, err := openSQL(url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, "SELECT count(*)::float8 / count(DISTINCT xmin::text) FROM invoices").Scan(&size)
	return size, err
}

// measureKills kills three servers in turn while they create invoices, and starts each again. It
// fails if an invoice was lost or made twice.
func (b *bench) measureKills(ctx context.Context, kind string) (err error) {
	url, err := b.url(ctx, kind, "kills")
	if err != nil {
		return err
	}
	r, err := b.startReplicas(ctx, url, mostReplicas)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	c, done := creation{replicas: r, clients: connections}, make(chan error, 1)
	go func() { done <- c.run(ctx, "killed", mostReplicas*killCycle+killCycle/2) }()
	killed, err := r.killInTurn(ctx)
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	stored, err := count(ctx, url, "SELECT count(*) FROM invoices")
	if err != nil {
		return err
	}
	distinct, err := count(ctx, url, "SELECT count(DISTINCT amount) FROM invoices") // each was requested with its own
	if err != nil {
		return err
	}
	if made := int(c.made.Load()); stored != made || distinct != made {
		return fmt.Errorf("%d invoices are stored, %d of them different; want %d", stored, distinct, made)
	}
	rates, note := c.rates(), ""
	var longest time.Duration
	for _, at := range killed {
		before, after := recovery(rates, at.Sub(c.began))
		longest = max(longest, after)
		note += fmt.Sprintf("; %v at %d/s", after, before)
	}
	b.report.row(kind, fmt.Sprintf("creates/s are nine tenths again after a kill of one of %d servers", mostReplicas), longest, 10*time.Second, "",
		fmt.Sprintf("the longest of %d%s; %d invoices were created with a key each, none was lost or made twice", len(killed), note, stored))
	return nil
}

// killInTurn kills each server and starts it again, and returns the times of the kills.
func (r *replicas) killInTurn(ctx context.Context) (killed []time.Time, err error) {
	for i := range r.servers {
		if !wait.Sleep(ctx, killCycle-killPause, nil) {
			return killed, ctx.Err()
		}
		was := r.servers[i]
		killed = append(killed, time.Now())
		if err := was.cmd.Process.Kill(); err != nil {
			return killed, err
		}
		r.replace(i, nil)
		_ = was.stop() // it was killed
		if !wait.Sleep(ctx, killPause, nil) {
			return killed, ctx.Err()
		}
		s, err := startService(ctx, r.conf)
		if err != nil {
			return killed, err
		}
		r.replace(i, s)
	}
	return killed, nil
}

// recovery returns the median rate before a moment, and how long after it a window begins with
// nine tenths of that; killCycle if none does.
func recovery(rates []int, at time.Duration) (before int, after time.Duration) {
	first := int(at / rateStep)
	window := int(rateWindow / rateStep)
	steady := slices.Sorted(slices.Values(rates[max(0, first-5*window):max(0, first-window)]))
	before = steady[len(steady)/2]
	for i := first; i < min(len(rates), first+int(killCycle/rateStep)); i++ {
		if 10*rates[i] >= 9*before {
			return before, time.Duration(i-first) * rateStep
		}
	}
	return before, killCycle
}
