// Command bench measures the service on this machine and prints a table. Each figure
// that depends on the machine has a ceiling that was measured in the same run.
//
// The server runs in a process of its own, so that its memory and its CPU time
// are its own; the load, the databases and the embedded chain share the
// machine with it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
	"github.com/quittance/quittance/internal/times"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// partNames are the names of the groups and of the parts in them.
const partNames = "service (creates, links, replicas, cost, latency, readers, memory, limit, churn, price, doors, flood, exports, lists, grown, expiry, contention, pages, dashboard), chain (stored, burst, calls, backfill, singles, million, deposits, settle, dust, attribution), " +
	"deliver (deliveries, rest, hole, dead, switching, recovery, hostile, claims)"

// part is something that is measured on each database.
type part struct {
	name, group string
	measure     func(ctx context.Context, kind string) error
}

// repeatedParts are measured in rounds. The others take long, or have rounds of their own.
var repeatedParts = []string{"creates", "links", "replicas", "burst", "backfill", "expiry", "contention", "attribution"}

func run(ctx context.Context, out io.Writer) (err error) {
	b := bench{nodes: make(map[history]*node), report: newReport()}
	serverRole := flag.String("server", "", "run as the server of a measurement; set by the bench itself")
	nodeRole := flag.String("node", "", "run as the node of a measurement; set by the bench itself")
	settings := flag.String("postgres", "", "settings of PostgreSQL besides its defaults, as name=value, separated by spaces")
	only := flag.String("only", "", "measure these alone, separated by commas: "+partNames)
	databases := flag.String("databases", "sqlite,postgres", "the databases to measure on")
	check := flag.Bool("check", false, "compare the ratios with those of "+ratiosFile+", and fail if one lost more than a quarter in two runs of three")
	update := flag.Bool("update", false, "write the ratios of "+ratiosFile)
	b.addFlags()
	attackerRole := flag.String("attacker", "", "run as the attacker of a measurement; set by the bench itself")
	sinkRole := flag.String("sink", "", "run as the receiver of a measurement; set by the bench itself")
	visitorsRole := flag.String("visitors", "", "run as the visitors of a measurement; set by the bench itself")
	flag.Parse()
	switch {
	case *visitorsRole != "":
		return serveVisitors(ctx, *visitorsRole)
	case *sinkRole != "":
		return serveSink(ctx)
	case *attackerRole != "":
		return serveAttack(ctx, *attackerRole)
	case *serverRole != "":
		return serveChild(ctx, *serverRole)
	case *nodeRole != "":
		return serveNode(ctx, *nodeRole)
	}
	if *check || *update {
		*only, b.rounds = cmp.Or(*only, checkedParts), 1
	}
	parts, err := b.parts(*only)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "quittance-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if strings.Contains(*databases, "postgres") {
		if b.cluster, err = storetest.StartCluster(ctx, storetest.Options{Fsync: true, Settings: strings.Fields(*settings)}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.cluster.Stop()) }()
	}
	defer func() { err = errors.Join(err, b.stopNodes()) }()
	fmt.Fprintf(out, "%s, %s, %s/%s, %d CPUs; server, load, database and chain share them\n\n",
		times.Format(time.Now(), time.UTC, time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	measure := b.measureAll
	switch {
	case *check:
		measure = b.check
	case *update:
		measure = b.update
	}
	return errors.Join(measure(ctx, *databases, parts), b.report.write(out))
}

// bench is one run of all measurements.
type bench struct {
	dir        string
	rounds     int
	round      int
	databases  []string // of the part that is measured
	cluster    *storetest.Cluster
	creates    time.Duration
	payments   int
	open       int
	blocks     int
	million    int
	closed     int
	churn      time.Duration
	churnKeep  time.Duration
	churnRate  int
	profile    string
	events     int
	trickle    time.Duration
	retries    int
	waiting    int
	exported   int
	listed     int
	expiring   int
	bursting   int
	pages      int
	board      int
	boardTurns int
	snapshot   time.Duration
	turn       time.Duration
	report     *report
	nodes      map[history]*node
}

// parts returns the selected parts, or all if none is selected.
func (b *bench) parts(only string) ([]part, error) {
	all := []part{
		{"creates", "service", b.measureCreates},
		{"links", "service", b.measureLinks},
		{"replicas", "service", b.measureReplicas},
		{"cost", "service", b.measureCost},
		{"latency", "service", b.measureLatency},
		{"readers", "service", b.measureReaders},
		{"memory", "service", b.measureMemory},
		{"limit", "service", b.measureLimit},
		{"churn", "service", b.measureChurn},
		{"stored", "chain", b.measureStored},
		{"burst", "chain", b.measureBurst},
		{"calls", "chain", b.measureCalls},
		{"backfill", "chain", b.measureBackfill},
		{"singles", "chain", b.measureSingles},
		{"million", "chain", b.measureMillion},
		{"expiry", "service", b.measureExpiry},
		{"contention", "service", b.measureContention},
		{"deposits", "chain", b.measureDeposits},
		{"settle", "chain", b.measureSettle},
		{"dust", "chain", b.measureDust},
		{"price", "service", b.measurePrice},
		{"attribution", "chain", b.measureAttribution},
		{"doors", "service", b.measureDoors},
		{"flood", "service", b.measureFlood},
		{"exports", "service", b.measureExports},
		{"lists", "service", b.measureLists},
		{"grown", "service", b.measureGrown},
		{"pages", "service", b.measurePages},
		{"dashboard", "service", b.measureDashboard},
		{"deliveries", "deliver", b.measureDeliver},
		{"rest", "deliver", b.measureRest},
		{"hole", "deliver", b.measureHole},
		{"dead", "deliver", b.measureDead},
		{"switching", "deliver", b.measureSwitching},
		{"recovery", "deliver", b.measureRecovery},
		{"hostile", "deliver", b.measureHostile},
		{"claims", "deliver", b.measureClaims},
	}
	if only == "" {
		return all, nil
	}
	var chosen []part
	for _, name := range strings.Split(only, ",") {
		before := len(chosen)
		for _, p := range all {
			if p.name == name || p.group == name {
				chosen = append(chosen, p)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("-only names %q; want one of %s", name, partNames)
		}
	}
	return chosen, nil
}

// url returns the URL of a fresh database, which is removed when the part has been measured.
func (b *bench) url(ctx context.Context, kind, name string) (string, error) {
	name = fmt.Sprintf("%s_%d", name, b.round)
	b.databases = append(b.databases, name)
	if kind == "sqlite" {
		return "sqlite:" + b.dir + "/" + name + ".db", nil
	}
	if err := createDatabase(ctx, b.cluster.DSN("postgres"), name); err != nil {
		return "", err
	}
	return b.cluster.DSN(name), nil
}

// dropDatabases removes the databases of a part.
func (b *bench) dropDatabases(ctx context.Context, kind string) (err error) {
	for _, name := range b.databases {
		if kind == "sqlite" {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if failed := os.Remove(b.dir + "/" + name + ".db" + suffix); !errors.Is(failed, os.ErrNotExist) {
					err = errors.Join(err, failed)
				}
			}
			continue
		}
		err = errors.Join(err, execute(ctx, b.cluster.DSN("postgres"), "DROP DATABASE "+name+" WITH (FORCE)"))
	}
	b.databases = nil
	return err
}

// openStore opens a fresh database and returns its URL with it.
func (b *bench) openStore(ctx context.Context, kind, name string) (*store.Store, string, error) {
	url, err := b.url(ctx, kind, name)
	if err != nil {
		return nil, "", err
	}
	s, err := store.Open(ctx, url)
	return s, url, err
}

// addFlags adds the flags of how much is measured.
func (b *bench) addFlags() {
	flag.IntVar(&b.rounds, "rounds", 3, "how often some are measured, of which the medians are printed: lists, on the same databases, "+strings.Join(repeatedParts, ", "))
	flag.DurationVar(&b.creates, "creates", 10*time.Second, "how long invoices are created, and the ceiling is measured")
	flag.IntVar(&b.payments, "payments", 100, "how many payments the latency, and the facilitator, are measured with")
	flag.IntVar(&b.open, "open", 100_000, "with how many open invoices the memory is measured; 0 leaves it out")
	flag.IntVar(&b.blocks, "blocks", 2000, "how many blocks are back-filled, of 500 logs each")
	flag.IntVar(&b.million, "million", 1_000_000, "with how many watched addresses, and an open invoice for each, the memory is measured, and with how many open invoices attribution; 0 leaves both out")
	flag.IntVar(&b.closed, "million-closed", 0, "how many closed invoices the database has besides, which takes 4 KB of disk each")
	flag.DurationVar(&b.churn, "churn", 10*time.Minute, "how long invoices are created, paid, expired and forgotten while PostgreSQL's tables are measured, which takes 2 MB of disk a second at 500, and 1 GB; 0 leaves it out")
	flag.DurationVar(&b.churnKeep, "churn-keep", 0, "for how long events are kept meanwhile; an eighth of the time by default")
	flag.IntVar(&b.churnRate, "churn-rate", 500, "how many invoices are created in a second meanwhile")
	flag.StringVar(&b.profile, "profile", "", "a folder for profiles of CPU time")
	flag.IntVar(&b.events, "events", 20_000, "how many events the throughput of deliveries is measured with")
	flag.DurationVar(&b.trickle, "trickle", 20*time.Second, "how long events are committed whose latency is measured")
	flag.IntVar(&b.retries, "retries", 300_000, "how many retries fall due at once")
	flag.IntVar(&b.waiting, "waiting", 1_000_000, "how many deliveries wait while leasing is measured, on PostgreSQL; 0 leaves it out")
	flag.IntVar(&b.exported, "exported", 1_000_000, "how many payments are exported as CSV")
	flag.IntVar(&b.listed, "listed", 1_000_000, "with how many invoices lists, and creates with as many, are measured")
	flag.IntVar(&b.expiring, "expiring", 100_000, "how many invoices expire in the same second")
	flag.IntVar(&b.bursting, "bursting", 50_000, "how many deliveries fall due at once while invoices are created")
	flag.IntVar(&b.pages, "pages", 10_000, "how many checkout pages are open")
	flag.IntVar(&b.board, "dashboard", 1_000_000, "with how many invoices the dashboard is measured")
	flag.IntVar(&b.boardTurns, "dashboard-turns", 100, "how often each page and act of the dashboard is measured")
	flag.DurationVar(&b.snapshot, "snapshot", 40*time.Second, "how long leases are measured, without and with a snapshot open")
	flag.DurationVar(&b.turn, "turn", 5*time.Second, "how long normal traffic is measured at a time with and without an attack")
}
