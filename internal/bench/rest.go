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

// measureRest measures what CPU time an event takes at a steady rate that is far
// from a burst: of this process, which also inserts the events and receives
// them, and of PostgreSQL.
func (b *bench) measureRest(ctx context.Context, kind string) error {
	database, err := b.serverCPU(ctx, kind)
	if err != nil {
		return err
	}
	own := ownCPU()
	took, missing, err := b.isolation(ctx, kind, "rest", deliverMerchants, sickness{})
	if err := errors.Join(err, missed(missing)); err != nil {
		return err
	}
	own = ownCPU() - own
	after, err := b.serverCPU(ctx, kind)
	if err != nil {
		return err
	}
	each := func(cpu time.Duration) time.Duration { return (cpu / time.Duration(len(took))).Round(time.Microsecond) }
	b.report.row(kind, fmt.Sprintf("CPU per event at a steady %d/s", isolationRate), each(own+after-database), "", "",
		fmt.Sprintf("of the database %v; inserting and receiving events included; p99 from commit to 2xx %v", each(after-database), quantile(took, 0.99)))
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
