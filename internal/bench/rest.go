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
)

// restWarmUp is for how long events are committed before their CPU time counts:
// until every endpoint is known to be healthy.
const restWarmUp = 2 * time.Second

// measureRest measures what CPU time an event takes at a steady rate that is far
// from a burst: of this process, which also inserts the events, and of
// PostgreSQL. The receiver is a process of its own and does not count.
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
	c := newClinic("")
	d := newDeliverer(s, c.client(), func(id string) string { return sinkURL(id, port) })
	return d.while(ctx, func(ctx context.Context) error {
		if _, missing, err := c.trickle(ctx, s, d, merchants, isolationRate, restWarmUp); err != nil || missing > 0 {
			return errors.Join(err, missed(missing))
		}
		return b.restCPU(ctx, kind, func() ([]time.Duration, error) {
			took, missing, err := c.trickle(ctx, s, d, merchants, isolationRate, b.trickle)
			return took, errors.Join(err, missed(missing))
		})
	})
}

// restCPU measures the CPU time while events are committed, which returns how
// long each took.
func (b *bench) restCPU(ctx context.Context, kind string, trickle func() ([]time.Duration, error)) error {
	database, err := b.serverCPU(ctx, kind)
	if err != nil {
		return err
	}
	stopProfile, err := b.profiled("rest-" + kind)
	if err != nil {
		return err
	}
	own := ownCPU()
	took, err := trickle()
	own = ownCPU() - own
	if err := errors.Join(err, stopProfile()); err != nil {
		return err
	}
	after, err := b.serverCPU(ctx, kind)
	if err != nil {
		return err
	}
	each := func(cpu time.Duration) time.Duration { return (cpu / time.Duration(len(took))).Round(time.Microsecond) }
	b.report.row(kind, fmt.Sprintf("CPU per event at a steady %d/s", isolationRate), each(own+after-database), "", "",
		fmt.Sprintf("of the database %v; inserting events included; p99 from commit to 2xx %v", each(after-database), quantile(took, 0.99)))
	return nil
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
	server := statOf(strconv.Itoa(backend)).parent
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

// processStat is what Linux knows of a process: its parent, and the CPU time of
// its own and of its children that have ended.
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
