package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/dev"
)

func newDemo(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", GroupID: groupTry,
		Short: "watch six real invoices live, on a chain in this process",
		Long: `Starts the service on SQLite with an embedded EVM chain and a merchant's
webhook receiver, all in this process and in a temporary folder, and plays the
life of six invoices: paid by a plain transfer, paid through the registry
contract, expired, paid and refunded, paid in two parts to a deposit address,
from which it is swept to the merchant, and paid by a program (x402). It exits
0 only if everything was observed.`,
		Args: noArgs,
	}
	verbose := cmd.Flags().Bool("verbose", false, "show the service's log as well")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), env, *verbose) }
	return cmd
}

func runDemo(ctx context.Context, env environment, verbose bool) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal was closed
	defer stop()
	level := slog.LevelError
	if verbose {
		level = slog.LevelDebug
	}
	return dev.RunDemo(ctx, dev.DemoConfig{
		Out: env.stdout, Color: env.color, Now: time.Now, Rand: rand.Reader, Logger: env.logger(level),
	})
}
