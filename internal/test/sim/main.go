package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// options are the flags.
type options struct {
	seed    uint64
	seeds   string
	forTime time.Duration
	workers int
	trace   string
	without string
	child   bool
	pg      bool
	shrink  bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "run one `seed`")
	flag.StringVar(&o.seeds, "seeds", "", "run the seeds `A..B`")
	flag.DurationVar(&o.forTime, "for", 0, "run seeds for this `time`")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many processes run seeds")
	flag.StringVar(&o.trace, "trace", "", "write what happens to a `FILE`")
	flag.StringVar(&o.without, "without", "", "leave out faults, such as 1,4")
	flag.BoolVar(&o.pg, "postgres", false, "run one to three replicas of the service on PostgreSQL")
	flag.BoolVar(&o.shrink, "shrink", true, "look for the faults that a failure needs")
	flag.BoolVar(&o.child, "child", false, "run the seeds in this process")
	testing.Init()
	flag.Parse()
	asTest(func(b bubbles) int {
		if err := run(o, b, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	})
}

func run(o options, b bubbles, out io.Writer) error {
	first, last := o.seed, o.seed
	b.postgres = o.pg
	if o.seeds != "" {
		a, b, _ := strings.Cut(o.seeds, "..")
		var err error
		if first, err = strconv.ParseUint(a, 10, 64); err != nil {
			return err
		}
		if last, err = strconv.ParseUint(b, 10, 64); err != nil {
			return err
		}
	} else if o.forTime > 0 {
		first, last = uint64(time.Now().Unix())<<20, 1<<62
	}
	if !o.child && (o.seeds != "" || o.forTime > 0) {
		return runWorkers(o, first, last, out)
	}
	return runSeeds(o, b, first, last, out)
}

// runSeeds runs seeds in this process.
func runSeeds(o options, b bubbles, first, last uint64, out io.Writer) error {
	debug.SetGCPercent(800)
	folder, err := os.MkdirTemp("/dev/shm", "quittance-sim-") // in memory, on Linux
	if err != nil {
		if folder, err = os.MkdirTemp("", "quittance-sim-"); err != nil {
			return err
		}
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := makeTemplate(context.Background(), folder); err != nil {
		return err
	}
	for i := range int64(3) {
		newChain(i)
	}
	failed := 0
	for seed := first; seed <= last; seed++ {
		r, err := tracedSeed(o, b, seed, filepath.Join(folder, "world"))
		if err != nil {
			return err
		}
		if len(r.failures) > 0 {
			failed++
			r.print(out)
			if o.shrink {
				shrink(b, seed, filepath.Join(folder, "world"), r, out)
			}
		}
		fmt.Fprintf(out, "seed %d %s\n", seed, r.summary())
	}
	if failed > 0 {
		return fmt.Errorf("%d seeds failed", failed)
	}
	return nil
}

// tracedSeed runs a seed, with a trace if the options want one.
func tracedSeed(o options, b bubbles, seed uint64, folder string) (result, error) {
	var log *trace
	if o.trace != "" {
		file, err := os.Create(o.trace)
		if err != nil {
			return result{}, err
		}
		defer func() { _ = file.Close() }()
		buffer := bufio.NewWriter(file)
		defer func() { _ = buffer.Flush() }()
		log = &trace{to: buffer}
	}
	return runSeed(b, seed, folder, log, parseIDs(o.without)), nil
}

// result is what became of a seed.
type result struct {
	seed     uint64
	failures []string
	faults   []fault
	hit      map[int]int
	world    time.Duration
	took     time.Duration
	orders   int
	blocks   int
}

func (r result) summary() string {
	verdict := "ok"
	if len(r.failures) > 0 {
		verdict = "FAILED"
	}
	return fmt.Sprintf("%s: %s of the world in %s, %d blocks, %d orders", verdict, r.world.Truncate(time.Second), r.took.Truncate(time.Millisecond), r.blocks, r.orders)
}

// print prints the first contradictions and the faults.
func (r result) print(out io.Writer) {
	fmt.Fprintf(out, "seed %d fails:\n", r.seed)
	for _, f := range r.failures[:min(5, len(r.failures))] {
		fmt.Fprintf(out, "  %s\n", f)
	}
	for _, f := range r.faults {
		if n := r.hit[f.id]; n > 0 {
			fmt.Fprintf(out, "  fault %s; hit %d requests\n", f, n)
		}
	}
}

// runSeed runs a world in a bubble.
func runSeed(b bubbles, seed uint64, folder string, log *trace, off map[int]bool) (r result) {
	began := time.Now()
	ok := b.t.Run("world", func(t *testing.T) { // its end drops the database
		b := bubbles{t: t, postgres: b.postgres}
		database := b.database(seed)
		defer database.close()
		b.run(func() {
			if log != nil {
				log.began = time.Now()
			}
			w := newWorld(seed, log, off, database)
			start := time.Now()
			r.failures = w.run(folder)
			r.faults, r.hit, r.orders, r.world = w.plan.faults, w.plan.hit, len(w.orders), time.Since(start)
			for _, c := range w.chains {
				r.blocks += int(c.made)
			}
		})
	})
	if !ok {
		b.t.FailNow() // it prints why
	}
	r.seed, r.took = seed, time.Since(began)
	return r
}

func parseIDs(text string) map[int]bool {
	off := map[int]bool{}
	for _, part := range strings.Split(text, ",") {
		if n, err := strconv.Atoi(part); err == nil {
			off[n] = true
		}
	}
	return off
}

// shrink looks for a small set of faults with which the seed still fails, and prints it.
func shrink(b bubbles, seed uint64, folder string, r result, out io.Writer) {
	var needed []int
	for _, f := range r.faults {
		if r.hit[f.id] > 0 {
			needed = append(needed, f.id)
		}
	}
	fails := func(keep []int) bool {
		off := map[int]bool{}
		for _, f := range r.faults {
			off[f.id] = !slices.Contains(keep, f.id)
		}
		return len(runSeed(b, seed, folder, nil, off).failures) > 0
	}
	for size := len(needed); size >= 1; size /= 2 {
		for at := 0; at+size <= len(needed); {
			if fewer := slices.Concat(needed[:at], needed[at+size:]); fails(fewer) {
				needed = fewer
			} else {
				at += size
			}
		}
	}
	fmt.Fprintf(out, "  seed %d needs %d of %d faults: %v\n", seed, len(needed), len(r.faults), needed)
}

// bubbles runs functions in bubbles, where time passes only while every goroutine waits. Package testing/synctest
// ties them to a test, so the whole program is one.
type bubbles struct {
	t        *testing.T
	postgres bool // worlds have several replicas on PostgreSQL
}

// run runs f in a bubble. It returns when f and all goroutines that f started have ended.
func (b bubbles) run(f func()) {
	synctest.Test(b.t, func(*testing.T) { f() })
}

// asTest runs the program as a test that is not in a test binary, and exits with its result.
func asTest(program func(bubbles) (code int)) {
	for name, value := range map[string]string{"test.timeout": "0", "test.cpu": "1"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "sim", F: func(t *testing.T) {
			os.Exit(program(bubbles{t: t})) //nolint:revive // the package would print PASS
		},
	}}, nil, nil)
}
