// Command bench measures the service on this machine and prints a table. Each
// figure that depends on the machine stands beside a ceiling that was measured
// in the same run.
//
// The server runs in a process of its own, so that its memory and its CPU time
// are its own; the load, the databases and the embedded chain share the
// machine with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/quittance/quittance/internal/store/storetest"
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

// report is the table of figures.
type report struct{ w *tabwriter.Writer }

func (r report) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(r.w, "\t")
		}
		fmt.Fprint(r.w, c)
	}
	fmt.Fprintln(r.w)
}

func run(ctx context.Context, out io.Writer) (err error) {
	child := flag.String("child", "", "run as the server of a measurement; set by the bench itself")
	creates := flag.Duration("creates", 10*time.Second, "how long invoices are created, and the ceiling is measured")
	payments := flag.Int("payments", 100, "how many payments the latency is measured with")
	open := flag.Int("open", 100_000, "with how many open invoices the memory is measured; 0 leaves it out")
	flag.Parse()
	if *child != "" {
		return serveChild(ctx, *child)
	}
	dir, err := os.MkdirTemp("", "quittance-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := storetest.StartCluster(ctx, storetest.Options{Fsync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()

	fmt.Fprintf(out, "%s, %s/%s, %d CPUs; server, load, database and chain share them\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	r := report{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	r.row("DATABASE", "WHAT", "FIGURE", "CEILING", "RATIO", "NOTE")
	b := bench{dir: dir, cluster: cluster, creates: *creates, payments: *payments, open: *open, report: r}
	for _, db := range []string{"sqlite", "postgres"} {
		if err := b.database(ctx, db); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", db, err), r.w.Flush())
		}
	}
	return r.w.Flush()
}

// bench is one run of all measurements.
type bench struct {
	dir      string
	cluster  *storetest.Cluster
	creates  time.Duration
	payments int
	open     int
	report   report
}

// url returns the URL of a fresh database.
func (b bench) url(ctx context.Context, kind, name string) (string, error) {
	if kind == "sqlite" {
		return "sqlite:" + b.dir + "/" + name + ".db", nil
	}
	if err := createDatabase(ctx, b.cluster.DSN("postgres"), name); err != nil {
		return "", err
	}
	return b.cluster.DSN(name), nil
}

func (b bench) database(ctx context.Context, kind string) error {
	if err := b.measureCreates(ctx, kind); err != nil {
		return fmt.Errorf("creates: %w", err)
	}
	if err := b.measureLatency(ctx, kind); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	if b.open > 0 {
		if err := b.measureMemory(ctx, kind); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	return nil
}
