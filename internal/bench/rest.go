package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/store"
)

// restWarmUp is for how long events are committed before their CPU time counts:
// until every endpoint is known to be healthy.
const restWarmUp = 2 * time.Second

// measureRest measures the CPU time of an event at a low, steady rate: that of this process,
// which also inserts the events, and that of PostgreSQL. The receiver is another process and
// does not count. The ceiling is the same inserts alone plus the same signed posts alone, at
// the same rate.
func (b *bench) measureRest(ctx context.Context, kind string) (err error) {
	sink, port, err := startProcess(ctx, "sink", struct{}{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.stop()) }()
	s, _, err := b.openStore(ctx, kind, "rest")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	merchants := merchantNames("m", deliverMerchants)
	if err := addMerchants(ctx, s, merchants); err != nil {
		return err
	}
	posts, err := b.restOfPosts(ctx, kind, merchants, port)
	if err != nil {
		return err
	}
	c := newReceivers("")
	d := newDeliverer(s, c.client(), func(id string) string { return sinkURL(id, port) })
	var idle, event restCost
	var p99 time.Duration
	err = d.while(ctx, func(ctx context.Context) error {
		if _, missing, err := c.trickle(ctx, s, d, merchants, isolationRate, restWarmUp); err != nil || missing > 0 {
			return errors.Join(err, missed(missing))
		}
		if event, err = b.restCost(ctx, kind, "rest-"+kind, func() (int, error) {
			took, missing, err := c.trickle(ctx, s, d, merchants, isolationRate, b.trickle)
			p99 = quantile(took, 0.99)
			return len(took), errors.Join(err, missed(missing))
		}); err != nil {
			return err
		}
		idle, err = b.restCost(ctx, kind, "", func() (int, error) {
			return int(b.trickle.Seconds()), paced(ctx, 1, b.trickle, func(int) error { return nil })
		})
		return err
	})
	if err != nil {
		return err
	}
	inserts, err := b.restOfInserts(ctx, kind, s, merchants)
	if err != nil {
		return err
	}
	b.report.row(kind, fmt.Sprintf("CPU per event at a steady %d/s", isolationRate), event.total(), posts.total()+inserts.total(),
		fmt.Sprintf("%.2f", float64(posts.total()+inserts.total())/float64(event.total())),
		fmt.Sprintf("of the database %v; p99 from commit to 2xx %v; ceiling: posts alone %v and inserts alone %v (of the database %v), at the same rate; idle %v a second",
			event.database, p99, posts.total(), inserts.total(), inserts.database, idle.total()))
	return nil
}

// restOfPosts measures signed posts alone at the steady rate.
func (b *bench) restOfPosts(ctx context.Context, kind string, merchants []string, port string) (restCost, error) {
	client := newClient()
	defer client.CloseIdleConnections()
	body := []byte(eventBody)
	post := func(during time.Duration) (n int, err error) {
		return int(during.Seconds() * isolationRate), paced(ctx, isolationRate, during, func(i int) error {
			return signedPost(ctx, client, sinkURL(merchants[i%len(merchants)], port), body)
		})
	}
	if _, err := post(restWarmUp); err != nil {
		return restCost{}, err
	}
	return b.restCost(ctx, kind, "", func() (int, error) { return post(b.trickle) })
}

// restOfInserts measures inserts alone at the steady rate, one event each.
func (b *bench) restOfInserts(ctx context.Context, kind string, s *store.Store, merchants []string) (restCost, error) {
	return b.restCost(ctx, kind, "", func() (int, error) {
		return int(b.trickle.Seconds() * isolationRate), paced(ctx, isolationRate, b.trickle, func(i int) error {
			_, err := scheduleFor(ctx, s, merchants[i%len(merchants):][:1], time.Now(), func([]store.Event) {})
			return err
		})
	})
}

// paced calls fn sequentially at a rate for a time.
func paced(ctx context.Context, rate int, during time.Duration, fn func(i int) error) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := range int(during.Seconds() * float64(rate)) {
		if err := fn(i); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// restCost is the CPU time of one event, of this process and of PostgreSQL.
type restCost struct{ own, database time.Duration }

func (c restCost) total() time.Duration { return c.own + c.database }

// restCost measures the CPU time while fn runs, which returns how many events it
// handled. It writes a profile if it has a name and profiles are asked for.
func (b *bench) restCost(ctx context.Context, kind, profile string, fn func() (int, error)) (c restCost, err error) {
	database, err := b.serverCPU(ctx, kind)
	if err != nil {
		return c, err
	}
	stopProfile := func() error { return nil }
	if profile != "" {
		if stopProfile, err = b.profiled(profile); err != nil {
			return c, err
		}
	}
	own := ownCPU()
	n, err := fn()
	own = ownCPU() - own
	if err := errors.Join(err, stopProfile()); err != nil {
		return c, err
	}
	after, err := b.serverCPU(ctx, kind)
	if err != nil {
		return c, err
	}
	each := func(cpu time.Duration) time.Duration { return (cpu / time.Duration(n)).Round(time.Microsecond) }
	return restCost{each(own), each(after - database)}, nil
}

// serverCPU returns the CPU time that PostgreSQL's processes have taken; 0 for
// SQLite.
func (b *bench) serverCPU(ctx context.Context, kind string) (cpu time.Duration, err error) {
	if kind == "sqlite" {
		return 0, nil
	}
	db, err := sql.Open("pgx", b.cluster.DSN("postgres"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var backend int
	if err := db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	return cpuOfChildren(statOf(strconv.Itoa(backend)).parent)
}

// cpuOfChildren returns the CPU time of a process and of its children.
func cpuOfChildren(server string) (cpu time.Duration, err error) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range all {
		switch s := statOf(entry.Name()); {
		case entry.Name() == server:
			cpu += s.own + s.ended
		case s.parent == server:
			cpu += s.own
		}
	}
	return cpu, nil
}

// processStat has the parent of a process, and the CPU time of the process and of its ended
// children.
type processStat struct {
	parent     string
	own, ended time.Duration
}

// statOf returns the zero value for a process that has ended.
func statOf(pid string) (s processStat) {
	const tick = 10 * time.Millisecond
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return s
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 15 {
		return s
	}
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // the kernel's own number
		return time.Duration(n) * tick
	}
	return processStat{fields[1], ticks(11) + ticks(12), ticks(13) + ticks(14)}
}
