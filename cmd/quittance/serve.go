package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/tracing/otlp"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
)

func newServe(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve --config FILE", GroupID: groupService,
		Short: "run the service on your database and your chains",
		Long: `Runs the service on the database, merchants, providers and chains that the
configuration names, until it is stopped by Ctrl-C or SIGTERM. FILE is YAML, or
JSON. docs/configuration.md explains every setting.

With --isolated it runs on a copy of the database, to test a backup. It opens one loopback
address and no other door, sends nothing out except reads from nodes, and refuses requests
that would change something. Every page, every response and the log say that it is a copy.
docs/recovery.md explains the test.`,
		Example: `  quittance serve --config quittance.yaml
  quittance serve --config restored.yaml --isolated`,
		Args: noArgs, SuggestFor: []string{"run", "start", "server"},
	}
	path := requiredConfigFlag(cmd)
	verbose := cmd.Flags().Bool("verbose", false, "log at level debug, whatever log.level says")
	isolated := cmd.Flags().Bool("isolated", false, "run on a copy of the database, unnoticed by others")
	isCopy := cmd.Flags().Bool("copy", false, "with --isolated: the database is a copy, though not one by quittance backup")
	listen := cmd.Flags().String("listen", isolatedListen, "loopback `ADDRESS` of the isolated copy; port 0 chooses a free one")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, _ []string) error {
		if *isolated {
			if err := config.CheckLoopback(*listen); err != nil {
				return usageError{fmt.Errorf("--listen %w", err)}
			}
			cfg.Addresses = []config.Address{{Listen: *listen, Doors: []string{config.PublicDoor, config.APIDoor, config.OperatorDoor}}}
		} else if *isCopy || cmd.Flags().Changed("listen") {
			return usageError{errors.New("--listen and --copy are for --isolated; without it the setting listen says where the service listens")}
		}
		return runServe(ctx, env, cfg, serveOptions{verbose: *verbose, isolated: *isolated, isCopy: *isCopy})
	})
	return cmd
}

// configFlag adds the flag --config.
func configFlag(cmd *cobra.Command) *string {
	path := cmd.Flags().String("config", "", "the service's configuration `FILE`")
	cobra.CheckErr(cmd.MarkFlagFilename("config", "yaml", "yml", "json"))
	return path
}

// requiredConfigFlag adds the flag --config, which must be given.
func requiredConfigFlag(cmd *cobra.Command) *string {
	path := configFlag(cmd)
	cobra.CheckErr(cmd.MarkFlagRequired("config"))
	return path
}

// loadConfig reads the configuration at the path of --config.
func loadConfig(path string) (config.Config, error) {
	if path == "" {
		return config.Config{}, usageError{errors.New("--config is empty; want a file")}
	}
	return config.Load(path, config.System)
}

// withConfig returns the function of a command that reads the configuration at the path of --config first.
func withConfig(path *string, run func(ctx context.Context, cfg config.Config, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := loadConfig(*path)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cfg, args)
	}
}

// isolatedListen is the default address of an isolated copy.
const isolatedListen = "127.0.0.1:8090"

// serveOptions are the flags of serve.
type serveOptions struct{ verbose, isolated, isCopy bool }

func runServe(ctx context.Context, env environment, cfg config.Config, options serveOptions) error {
	if options.verbose {
		cfg.Log.Level = slog.LevelDebug
	}
	logger := env.serviceLogger(cfg.Log)
	for _, warning := range cfg.Warnings {
		logger.Warn("configuration", "warning", warning)
	}
	limitMemory(os.DirFS("/"), os.Getenv("GOMEMLIMIT"), logger)
	defer server.KeepHeap()()
	var tracer trace.Tracer
	if !options.isolated { // traces leave the process
		var stopTraces func()
		var err error
		if tracer, stopTraces, err = otlp.Start(ctx, otlp.Config{Version: readBuild().Version, Logger: logger}); err != nil {
			return err
		}
		defer stopTraces()
	}
	addresses := addressesOf(cfg)
	listeners, err := server.ListenAll(ctx, addresses)
	if err != nil {
		return err
	}
	for i, l := range listeners {
		logger.Info("listening", "address", l.Addr().String(), "doors", addresses[i].Doors)
	}
	defer ignoreHangups(logger)()
	log.SetFlags(0)
	log.SetOutput(server.NetLog(logger, slog.LevelWarn)) // http.Transport logs there
	run := serverConfig(cfg, listeners, logger, tracer)
	run.Isolated, run.IsCopy = options.isolated, options.isCopy
	if err := server.Run(ctx, run); err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}

// ignoreHangups logs each SIGHUP instead of ending the process, until the returned
// function is called.
func ignoreHangups(logger *slog.Logger) (stop func()) {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangups:
				logger.Warn("SIGHUP changes nothing: the configuration is read at the start alone; restart to apply another")
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(done)
	}
}

// addressesOf converts the addresses of the doors for the server.
func addressesOf(cfg config.Config) []server.Address {
	all := make([]server.Address, len(cfg.Addresses))
	for i, a := range cfg.Addresses {
		all[i] = server.Address{Listen: a.Listen, HTTPS: a.HTTPS}
		for _, door := range a.Doors {
			all[i].Doors = append(all[i].Doors, webpage.Door(door))
		}
	}
	return all
}

// serverConfig converts the configuration for the server.
func serverConfig(cfg config.Config, listeners []*server.Listener, logger *slog.Logger, tracer trace.Tracer) server.Config {
	out := server.Config{
		Listeners: listeners, PublicURL: cfg.PublicURL, DashboardURL: cfg.DashboardURL, OIDC: cfg.OIDC, Proxies: cfg.Proxies, Hosts: cfg.Hosts, StopDelay: cfg.StopDelay, Database: cfg.Database, ReadOnly: cfg.ReadOnly, WebhookAllow: cfg.WebhookAllow, WebhookCA: cfg.WebhookCA, WebhookProxy: cfg.WebhookProxy,
		Access: server.Access{Mode: access.Live, OperatorKey: cfg.OperatorKey}, AllowListDelay: cfg.AllowListDelay,
		Keyring: cfg.Keyring, KeepEvents: cfg.KeepEvents, KeepAttempts: cfg.KeepAttempts,
		Merchants: server.Merchants{Configured: cfg.Merchants},
		Build:     server.Build{Version: readBuild().Version, Commit: readBuild().Commit}, Tracer: tracer,
		Now: time.Now, Rand: rand.Reader, Logger: logger,
		Ready: func(baseURL string) { logger.Info("ready", "url", baseURL) },
	}
	out.PerOwner, out.PerAddress = cfg.PerOwner, cfg.PerAddress
	if t := cfg.TLS; t != nil {
		out.TLS = &server.TLS{CertificateFile: t.CertificateFile, KeyFile: t.KeyFile, ACME: (*server.ACME)(t.ACME)}
	}
	if c := cfg.Screening; c != nil {
		out.Screening = &server.Screening{URL: c.URL, Secret: c.Secret, Closed: c.Mode == config.ScreeningClosed, Patience: c.Patience}
	}
	if m := cfg.SMTP; m != nil {
		out.SMTP = &mailer.SMTP{Host: m.Host, Port: m.Port, Encryption: mailer.Encryption(m.TLS), Roots: m.Roots, User: m.User, Password: m.Password, From: m.From, Now: time.Now}
	}
	for _, p := range cfg.Providers {
		out.Providers = append(out.Providers, api.Provider(p))
	}
	for _, c := range cfg.Chains {
		out.Chains = append(out.Chains, server.Chain{Chain: c.Chain, OperatorKey: c.OperatorKey, Gasless: (*ledger.AuthorizationBudget)(c.Gasless),
			PollInterval: c.Latency, IdleInterval: c.IdleInterval})
	}
	return out
}
