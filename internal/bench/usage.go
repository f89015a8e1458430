package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/bench/costmodel"
)

// usage is what has been used since some earlier moment.
type usage struct {
	cpu        costmodel.CPU // of the bench, the receiver and the chain; of the service; of PostgreSQL
	others     time.Duration // CPU time of everything else on the machine
	wal, disk  float64       // bytes; of the disk those of tables and indexes
	turns      float64       // round trips to PostgreSQL
	statements float64
	commits    float64 // among the statements
	took       time.Duration
}

// plus returns u and so many times v.
func (u usage) plus(v usage, times float64) usage {
	add := func(a, b time.Duration) time.Duration { return a + time.Duration(times*float64(b)) }
	return usage{
		costmodel.CPU{Client: add(u.cpu.Client, v.cpu.Client), Service: add(u.cpu.Service, v.cpu.Service), Database: add(u.cpu.Database, v.cpu.Database)},
		add(u.others, v.others), u.wal + times*v.wal, u.disk + times*v.disk,
		u.turns + times*v.turns, u.statements + times*v.statements, u.commits + times*v.commits, add(u.took, v.took),
	}
}

// per returns an n-th.
func (u usage) per(n float64) usage { return usage{}.plus(u, 1/n) }

// above returns what was used more than without work, of which a second is given.
func (u usage) above(idle usage) usage {
	more := u.plus(idle, -u.took.Seconds())
	more.took, more.others = u.took, u.others
	return more
}

// free returns how many CPUs other programs left.
func (u usage) free(cpus int) float64 {
	return max(0.1, float64(cpus)-max(0, u.others.Seconds())/u.took.Seconds())
}

// total is the CPU time of everything.
func (u usage) total() time.Duration { return u.cpu.Client + u.cpu.Served() }

// counts writes what does not depend on the machine.
func (u usage) counts() string {
	return fmt.Sprintf("%.2f round trips, %.2f statements, %.2f commits", max(0, u.turns), max(0, u.statements), max(0, u.commits))
}

// usage reads what the process of the service, this one, the receiver and PostgreSQL have used.
func (r *costRun) usage(ctx context.Context) (u usage, err error) {
	if u.cpu.Database, err = cpuOfChildren(statOf(strconv.Itoa(int(r.conn.PgConn().PID()))).parent); err != nil {
		return u, err
	}
	if u.cpu.Service, err = r.server.cpu(); err != nil {
		return u, err
	}
	u.cpu.Client = ownCPU()
	if r.receiver != nil {
		received, err := r.receiver.cpu()
		if err != nil {
			return u, err
		}
		u.cpu.Client += received
	}
	all, err := machineCPU()
	if err != nil {
		return u, err
	}
	u.others = all - u.cpu.Client - u.cpu.Served()
	u.took = time.Since(processBegan)
	if r.proxy != nil {
		all, commits := r.proxy.Statements()
		u.turns, u.statements, u.commits = float64(r.proxy.Turns()), float64(all), float64(commits)
	}
	err = r.conn.QueryRow(ctx, `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8,
		(SELECT sum(pg_total_relation_size(oid))::float8 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)`).Scan(&u.wal, &u.disk)
	return u, err
}

// processBegan is what times are counted from.
var processBegan = time.Now()

// machineCPU returns the CPU time that the machine has spent on anything.
func machineCPU() (time.Duration, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var user, nice, system, idle, waiting, interrupts, soft, stolen int64
	line, _, _ := strings.Cut(string(raw), "\n")
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &interrupts, &soft, &stolen); err != nil {
		return 0, fmt.Errorf("read /proc/stat: %w", err)
	}
	return time.Duration(user+nice+system+interrupts+soft+stolen) * clockTick, nil
}

// syncTimes returns how long writes of a page with their syncs to disk take.
func syncTimes(dir string) (took []time.Duration, err error) {
	const pages, page = 200, 8 << 10
	file, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is removed with its folder
	if _, err := file.Write(make([]byte, pages*page)); err != nil {
		return nil, err
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	for i := range pages {
		began := time.Now()
		if _, err := file.WriteAt(make([]byte, page), int64(i*page)); err != nil {
			return nil, err
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
