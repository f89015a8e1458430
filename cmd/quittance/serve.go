package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/deliver"
	"github.com/quittance/quittance/internal/server"
)

const serveHelp = `Usage: quittance serve --config FILE

Runs the service on the database, merchants, providers and chains that the
configuration names, until it is stopped by Ctrl-C or SIGTERM. FILE is YAML, or
JSON. docs/configuration.md explains every setting.

Flags:
  --config FILE    the configuration
  --check          check the configuration and stop
  --verbose        log more
`

func runServe(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	path := flags.String("config", "", "")
	check := flags.Bool("check", false, "")
	verbose := flags.Bool("verbose", false, "")
	if err := parse(env, flags, serveHelp, args); err != nil {
		return ended(err)
	}
	if *path == "" {
		return usageError{errors.New("serve needs --config FILE")}
	}
	cfg, err := config.Load(*path, config.System)
	if err != nil {
		return err
	}
	if *check {
		_, err := fmt.Fprintf(env.stdout, "%s is usable: %d merchants, %d chains\n", *path, len(cfg.Merchants), len(cfg.Chains))
		return err
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	logger := env.logger(level)
	return server.Run(ctx, serverConfig(cfg, logger, func(baseURL string) {
		logger.Info("ready", "url", baseURL)
	}))
}

// serverConfig is the configuration as the server takes it.
func serverConfig(cfg config.Config, logger *slog.Logger, ready func(string)) server.Config {
	out := server.Config{
		Listen: cfg.Listen, Database: cfg.Database,
		Merchants: server.Merchants{Endpoints: make(map[string]deliver.Endpoint)},
		Now:       time.Now, Rand: rand.Reader, Logger: logger, Ready: ready,
	}
	for _, m := range cfg.Merchants {
		out.Merchants.Endpoints[m.ID] = deliver.Endpoint{URL: m.WebhookURL, Secret: m.WebhookSecret}
	}
	for _, p := range cfg.Providers {
		out.Providers = append(out.Providers, api.Provider(p))
	}
	for _, c := range cfg.Chains {
		out.Chains = append(out.Chains, server.Chain{Chain: c.Chain, OperatorKey: c.OperatorKey})
	}
	return out
}
