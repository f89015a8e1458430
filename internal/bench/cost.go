package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// costPair and costClients are how many clients create invoices at the same time. One client alone would leave the
	// CPUs idle between the steps of a create, and what they take to wake up is no cost of a service that works.
	costPair, costClients = 2, 32
	// blockPause is the time that the service has for an empty block.
	blockPause = 40 * time.Millisecond
	// costFew and costBlock are how many payments a block has, and costBlocks how many such blocks there are of each, after
	// costWarm that have the statements planned.
	costFew, costBlock, costBlocks, costWarm = 20, 200, 8, 6
	// costExpiring is how many invoices expire at the same moment.
	costExpiring = 5000
	// costPoll is the interval at which PostgreSQL is asked whether work has ended.
	costPoll = 50 * time.Millisecond
	// heldTurns is how many transactions insert events alone.
	heldTurns = 200
)

// costRun is a service whose costs are measured.
type costRun struct {
	*world

	url      string
	conn     *pgx.Conn // of the measurement
	proxy    *storetest.Proxy
	receiver *process
	made     int64 // creates
	paid     int64 // payments
	idle     usage // in a second
}

// startCost starts a service on a fresh database, through a proxy if its statements are counted.
func (b *bench) startCost(ctx context.Context, kind, name string, counted, delivers bool) (_ *costRun, err error) {
	r := new(costRun)
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	if r.url, err = b.url(ctx, kind, name); err != nil {
		return r, err
	}
	if r.conn, err = pgx.Connect(ctx, r.url); err != nil {
		return r, err
	}
	conf := serverConfig{Database: r.url, Profile: b.profileOf(name)}
	if counted {
		if r.proxy, conf.Database, err = storetest.StartProxy(ctx, r.url, 0); err != nil {
			return r, err
		}
	}
	if delivers {
		var port string
		if r.receiver, port, err = startProcess(ctx, "sink", struct{}{}); err != nil {
			return r, err
		}
		conf.Webhook = poster.Endpoint{URL: "http://127.0.0.1:" + port, Secret: deliverSecret}
	}
	if r.world, err = b.start(ctx, conf); err != nil {
		return r, err
	}
	r.merchants = lifeClients
	return r, r.waitReady(ctx)
}

// profileOf returns where a server writes its profile; empty if profiles are not asked for.
func (b *bench) profileOf(name string) string {
	if b.profile == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s.pprof", b.profile, name)
}

func (r *costRun) stop() (err error) {
	if r.world != nil {
		err = r.world.stop()
	}
	if r.receiver != nil {
		err = errors.Join(err, r.receiver.stop())
	}
	if r.proxy != nil {
		err = errors.Join(err, r.proxy.Close())
	}
	if r.conn != nil {
		err = errors.Join(err, r.conn.Close(context.Background()))
	}
	return err
}

// spent returns what fn uses, more than a service without work.
func (r *costRun) spent(ctx context.Context, fn func() error) (usage, error) {
	before, err := r.usage(ctx)
	if err != nil {
		return usage{}, err
	}
	if err := fn(); err != nil {
		return usage{}, err
	}
	after, err := r.usage(ctx)
	if err != nil {
		return usage{}, err
	}
	return after.plus(before, -1).above(r.idle), nil
}

// rest measures a service without work.
func (r *costRun) rest(ctx context.Context, during time.Duration) error {
	used, err := r.spent(ctx, func() error { return r.pause(ctx, during) })
	r.idle = used.per(during.Seconds())
	return err
}

// pause waits for a time.
func (r *costRun) pause(ctx context.Context, during time.Duration) error {
	if !wait.Sleep(ctx, during, nil) {
		return ctx.Err()
	}
	return nil
}

// creates are invoices that were created, and what that took.
type creates struct {
	usage

	made, transactions float64
}

// batch is how many invoices a transaction created.
func (c creates) batch() float64 { return c.made / c.transactions }

// creating measures creates by fn.
func (r *costRun) creating(ctx context.Context, fn func(ctx context.Context) error) (c creates, err error) {
	last, err := r.number(ctx, "SELECT coalesce(max(seq), 0) FROM events")
	if err != nil {
		return c, err
	}
	first := r.made
	if c.usage, err = r.spent(ctx, func() error { return fn(ctx) }); err != nil {
		return c, err
	}
	n, err := r.number(ctx, fmt.Sprintf("SELECT count(DISTINCT xmin::text) FROM events WHERE type = 'invoice.created' AND seq > %d", last))
	c.made, c.transactions = float64(r.made-first), float64(n)
	return c, err
}

// number returns the number that a query selects.
func (r *costRun) number(ctx context.Context, query string) (n int64, err error) {
	err = r.conn.QueryRow(ctx, query).Scan(&n)
	return n, err
}

// together creates invoices with clients that each wait for an answer, for a time.
func (r *costRun) together(clients int, during time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		began, first := time.Now(), r.made
		made, err := create(ctx, r.world, clients, func(int64) bool { return time.Since(began) < during })
		r.made = first + made
		return err
	}
}

// until waits until a query selects a number.
func (r *costRun) until(ctx context.Context, query string, want int64) error {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	for {
		n, err := r.number(ctx, query)
		if err != nil || n == want {
			return err
		}
		if !wait.Sleep(ctx, costPoll, nil) {
			return fmt.Errorf("%s: %d, want %d: %w", query, n, want, ctx.Err())
		}
	}
}

// untilDelivered waits until all events are delivered.
func (r *costRun) untilDelivered(ctx context.Context) error {
	return r.until(ctx, "SELECT count(*) FROM deliveries", 0)
}

// prepare has the planner know the tables, and the statements prepared.
func (r *costRun) prepare(ctx context.Context) error {
	if err := r.together(connections/4, 2*time.Second)(ctx); err != nil {
		return err
	}
	if _, err := r.conn.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return err
	}
	return r.untilDelivered(ctx)
}

// finalBlocks is how many blocks after its own make a payment final.
func finalBlocks() int {
	local, _ := chain.Lookup(chain.Local)
	return int(local.Finality.Depth)
}

// held returns how long the lock of events is held for one event and for connections of them,
// with the sync: as long as a transaction that does nothing else takes, the fastest tenth of them,
// which wait for no other program.
func (b *bench) held(ctx context.Context, kind string) (one, many time.Duration, err error) {
	s, _, err := b.openStore(ctx, kind, "held")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	merchants := merchantNames("m", connections)
	if err := addMerchants(ctx, s, merchants); err != nil {
		return 0, 0, err
	}
	var took [2][]time.Duration
	for range heldTurns {
		for i, n := range []int{1, connections} {
			began := time.Now()
			if _, err := scheduleFor(ctx, s, merchants[:n], began, func([]store.Event) {}); err != nil {
				return 0, 0, err
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	return exactQuantile(took[0], 0.1), exactQuantile(took[1], 0.1), nil
}
