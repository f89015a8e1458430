package main

import (
	"context"
	"crypto/rand"
	"flag"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/demo"
)

const demoHelp = `Usage: quittance demo

Starts the service on SQLite with an embedded EVM chain and a merchant's
webhook receiver, all in this process and in a temporary folder, and plays the
life of four invoices: paid by a plain transfer, paid through the registry
contract, expired, and paid and refunded. It exits 0 only if everything was
observed.

Flags:
  --verbose    show the service's log as well
`

func runDemo(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	verbose := flags.Bool("verbose", false, "")
	if err := parse(env, flags, demoHelp, args); err != nil {
		return ended(err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // its terminal is gone
	defer stop()
	level := slog.LevelError
	if *verbose {
		level = slog.LevelDebug
	}
	return demo.Run(ctx, demo.Config{
		Out: env.stdout, Color: env.color, Now: time.Now, Rand: rand.Reader, Logger: env.logger(level),
	})
}
