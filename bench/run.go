package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/test/dbtest"
)

// partNames are the names of parts.
const partNames = "creates,deliveries,backfill,bursts,lists,memory"

// parts are the parts that can be measured.
var parts = []part{
	{name: "creates", measure: measureCreates},
	{name: "deliveries", measure: measureDeliveries},
	{name: "backfill", measure: measureBackfill},
	{name: "bursts", measure: measureBursts, turns: true},
	{name: "lists", measure: measureLists, turns: true},
	{name: "memory", measure: measureMemory, turns: true},
}

// part is measured on each database.
type part struct {
	name    string
	measure func(ctx context.Context, r *measurement) error
	// turns is set if the part compares two servers in turns, which takes long. It is measured in one round.
	turns bool
}

// bench is one run of all measurements.
type bench struct {
	options

	check, update bool
	results       string // folder

	self    string // the path of this program
	dir     string // for databases
	made    int    // number of databases so far
	cluster *dbtest.Cluster
	nodes   map[history]*node
}

// options define what is measured, and how much of it. They are written with the results.
type options struct {
	Only      string `json:",omitempty"` // parts
	Databases string
	Rounds    int
	Previous  string `json:",omitempty"` // the bench program of another commit
	Creates   time.Duration
	Events    int
	Blocks    int
	Bursts    int
	Open      int
	Invoices  int
	Queries   int
}

func parseFlags() (*bench, error) {
	b := &bench{nodes: make(map[history]*node)}
	flag.StringVar(&b.Only, "only", "", "measure only these parts, separated by commas: "+partNames)
	flag.StringVar(&b.Databases, "databases", "sqlite,postgres", "the databases to measure on, separated by commas")
	flag.IntVar(&b.Rounds, "rounds", 3, "how often creates, deliveries and backfill are measured")
	flag.StringVar(&b.Previous, "previous", "",
		"`file` of the bench of an earlier commit (go build -C bench -o FILE .), to measure in turns with this one")
	flag.StringVar(&b.results, "results", "results", "`folder` for the file with the results")
	flag.BoolVar(&b.check, "check", false,
		"compare the ratios with "+ratiosFile+", and fail if one lost more than a quarter in two runs of three")
	flag.BoolVar(&b.update, "update", false, "write "+ratiosFile)
	flag.DurationVar(&b.Creates, "creates", 10*time.Second, "how long invoices are created")
	flag.IntVar(&b.Events, "events", 20_000, "how many events are delivered")
	flag.IntVar(&b.Blocks, "blocks", 2000, "how many blocks are back-filled, of 500 transfers each")
	flag.IntVar(&b.Bursts, "bursts", 10, "how many blocks of 500 payments are measured")
	flag.IntVar(&b.Open, "open", 100_000, "with how many open invoices bursts and memory are measured")
	flag.IntVar(&b.Invoices, "invoices", 1_000_000, "with how many invoices lists are measured")
	flag.IntVar(&b.Queries, "queries", 300, "how often each list is requested")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
	}
	if b.check { // a check repeats measurements if necessary
		b.Rounds = 1
	}
	if (b.check || b.update) && b.Only == "" {
		b.Only = checkedParts
	}
	return b, nil
}

// run measures, and prints the figures.
func run(ctx context.Context, out io.Writer) (err error) {
	b, err := parseFlags()
	if err != nil {
		return err
	}
	chosen, err := choose(b.Only)
	if err != nil {
		return err
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "quittance-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if strings.Contains(b.Databases, "postgres") {
		if b.cluster, err = dbtest.StartCluster(ctx, dbtest.Options{Fsync: true}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.cluster.Stop()) }()
	}
	defer func() {
		for _, n := range b.nodes {
			err = errors.Join(err, n.stop())
		}
	}()
	if b.check {
		return check(out, chosen, b.Databases, func(p []part) ([]figure, error) { return b.measureAll(ctx, p) })
	}
	record, err := newRecord(ctx, b)
	if err != nil {
		return err
	}
	figures, err := b.measureAll(ctx, chosen)
	if err := errors.Join(err, writeTable(out, figures)); err != nil {
		return err
	}
	if b.update {
		return update(figures)
	}
	return record.write(out, b.results, figures)
}

// choose returns the parts with these names, or all parts if there are no names.
func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	wanted := strings.Split(only, ",")
	chosen := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !slices.Contains(wanted, p.name) })
	if len(chosen) != len(wanted) {
		return nil, fmt.Errorf("-only is %q; want some of %s", only, partNames)
	}
	return chosen, nil
}

// measureAll measures parts on each database.
func (b *bench) measureAll(ctx context.Context, chosen []part) (all []figure, err error) {
	for _, database := range strings.Split(b.Databases, ",") {
		for _, p := range chosen {
			figures, err := b.measureRounds(ctx, p, database)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", database, p.name, err)
			}
			all = append(all, figures...)
		}
	}
	return all, nil
}

// measureRounds measures a part in rounds. In each round the previous program takes its turn, if there is one.
func (b *bench) measureRounds(ctx context.Context, p part, database string) ([]figure, error) {
	rounds, programs := b.Rounds, []string{b.self}
	if p.turns {
		rounds = 1
	}
	if b.Previous != "" {
		programs = append(programs, b.Previous)
	}
	measured := make(map[string][]figure)
	for range rounds {
		for _, program := range programs {
			fmt.Fprintf(os.Stderr, "%s %s …\n", database, p.name)
			r := &measurement{bench: b, program: program, part: p.name, database: database}
			if err := errors.Join(p.measure(ctx, r), r.dropDatabases(ctx)); err != nil {
				return nil, err
			}
			measured[program] = append(measured[program], r.figures...)
		}
	}
	figures := medians(measured[b.self])
	for _, was := range medians(measured[b.Previous]) {
		for i := range figures {
			if figures[i].What == was.What {
				figures[i].Previous = was.Value
			}
		}
	}
	return figures, nil
}

// measurement is one part of one program on one database.
type measurement struct {
	*bench
	program        string
	part, database string
	created        []string // databases
	figures        []figure
}

// holding returns the node that holds a history. The first call starts it.
func (b *bench) holding(ctx context.Context, h history) (*node, error) {
	if n := b.nodes[h]; n != nil {
		return n, nil
	}
	n, err := startNode(ctx, b.self, h)
	if err == nil {
		b.nodes[h] = n
	}
	return n, err
}
