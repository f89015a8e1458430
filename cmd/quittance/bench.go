package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/seed"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// seedBlockTime is the time between two blocks of the chain that seeded payments are on.
	seedBlockTime = 2 * time.Second
	// seedOpen is the part of the invoices that is open, unless --open changes it.
	seedOpen = 50
	// seedLine is how often bench seed prints a line if it cannot draw a bar.
	seedLine = 10 * time.Second
	// seedBar is the width of the bar in characters, and seedDraw how often it is drawn.
	seedBar, seedDraw = 30, 200 * time.Millisecond
)

func newBench(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "bench COMMAND", GroupID: groupOther,
		Short: "prepare measurements",
		Long:  "Prepares measurements of a service on the hardware that will run it.",
	}, newBenchSeed(env))
}

func newBenchSeed(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "seed --database URL [--invoices N]",
		Short: "fill an empty database with invoices of a year",
		Long: `Fills an empty database with what a service would have after a year: invoices of many
merchants, of which the largest has a fifth, with their payments, refunds, events and
deliveries, as of the present. Events and attempts are those of the last 30 days, which a
service keeps by default. Nothing of it is on a real chain: the payments are on the chain
"local".

It refuses a database that is not empty, and one that a service uses. On PostgreSQL all
rows are written in one transaction: if it is interrupted, the database is empty as
before. A SQLite database that was not finished must be removed. All indexes are created
after the rows.`,
		Example: `  createdb load && quittance bench seed --database postgres:///load --invoices 10000000 --merchants 10000
  quittance bench seed --database sqlite:load.db --invoices 100000`,
		Args: noArgs,
	}
	cfg := seed.Config{BlockTime: seedBlockTime, KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention}
	flags := cmd.Flags()
	url := flags.String("database", "", "`URL` of the database, sqlite:PATH or postgres://…; PGPASSWORD may hold the password")
	cobra.CheckErr(cmd.MarkFlagRequired("database"))
	flags.IntVar(&cfg.Invoices, "invoices", 1_000_000, fmt.Sprintf("make `N` invoices, 1 to %d", seed.MaxInvoices))
	flags.IntVar(&cfg.Merchants, "merchants", 1000, fmt.Sprintf("of `N` merchants, 1 to %d", seed.MaxMerchants))
	open := flags.Int("open", -1, "have the newest `N` invoices open (default: one of 50)")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "make other rows with another `NUMBER`; the same makes the same rows, with the same --until")
	flags.Func("until", "`TIME` of the newest invoice, such as 2026-01-31T10:00:00Z (default: now)", func(text string) (err error) {
		cfg.Until, err = time.Parse(time.RFC3339, text)
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cfg.Open = *open; *open == -1 {
			cfg.Open = cfg.Invoices / seedOpen
		}
		if cfg.Until.IsZero() {
			cfg.Until = time.Now()
		}
		return runBenchSeed(cmd.Context(), env, *url, cfg)
	}
	return cmd
}

func runBenchSeed(ctx context.Context, env environment, url string, cfg seed.Config) (err error) {
	maker, err := seed.New(cfg)
	if err != nil {
		return usageError{err}
	}
	unlock, err := db.LockService(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s, err := db.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p := &seedProgress{out: env.stdout, bar: env.width > 0, invoices: cfg.Invoices, now: time.Now, began: time.Now()}
	err = ledger.LoadInvoices(ctx, s, maker.Batches(), p.report)
	p.end()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, "Made %s of %s in %s.\n", count(cfg.Invoices, "invoice"), count(cfg.Merchants, "merchant"), time.Since(p.began).Round(time.Second))
	return err
}

// seedProgress shows the progress of a load: a bar on a terminal, and lines elsewhere.
type seedProgress struct {
	out      io.Writer
	bar      bool
	invoices int // to be written
	now      func() time.Time
	began    time.Time
	shown    time.Time   // when the last line was shown
	step     db.LoadStep // of that line
}

// report shows how far a load is, unless it did so a moment ago.
func (p *seedProgress) report(l db.LoadProgress) {
	if l.Step == db.LoadInvoices {
		l.Of = p.invoices
	}
	every, now := seedLine, p.now()
	if p.bar {
		every = seedDraw
	}
	if now.Sub(p.shown) < every && l.Step == p.step && l.Done < l.Of {
		return
	}
	p.shown, p.step = now, l.Step
	text := fmt.Sprintf("%s, %s", l.Step, now.Sub(p.began).Round(time.Second))
	if l.Of > 0 {
		text = fmt.Sprintf("%s: %d of %d, %s", l.Step, l.Done, l.Of, now.Sub(p.began).Round(time.Second))
	}
	if p.bar {
		fmt.Fprintf(p.out, "\r\x1b[K[%-*s] %s", seedBar, strings.Repeat("#", seedBar*l.Done/max(l.Of, 1)), text)
	} else {
		fmt.Fprintln(p.out, text)
	}
}

// end ends the line of the bar.
func (p *seedProgress) end() {
	if p.bar && p.step != "" {
		fmt.Fprintln(p.out)
	}
}
