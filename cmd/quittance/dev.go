package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/web/dashboard"
)

func newDev(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", GroupID: groupTry,
		Short: "keep such a world running, to develop against",
		Long: `Runs the service on SQLite with an embedded EVM chain, a test token, the
registry, a merchant and a rich payer, until it is stopped by Ctrl-C or SIGTERM.
The database and the chain are kept and found again at the next start.`,
		Example: `  quittance dev --webhook-url http://127.0.0.1:9000/webhooks
  quittance dev --info quittance.json`,
		Args: noArgs,
	}
	cfg := dev.Config{Program: env.program, Build: server.Build{Version: readBuild().Version, Commit: readBuild().Commit}, Player: func(info dev.Info) dashboard.Player { return dev.Player{World: info} }, Now: time.Now, Rand: rand.Reader, Logger: env.logger(slog.LevelWarn), BlockTime: time.Second}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8080", "`ADDR` where the API listens; a loopback address")
	flags.StringVar(&cfg.Dir, "data", ".quittance", "`DIR` where the database and the chain are kept")
	flags.Func("block-time", "`TIME` between blocks (default 1s); blocks are dated in whole seconds, so below 1s "+
		"there is one a second, except for payments: those are final at this pace, up to 2 s ahead of the clock", func(text string) (err error) {
		if cfg.BlockTime, err = time.ParseDuration(text); err != nil {
			return errors.New("want a number with its unit, such as 500ms, 1s or 2m")
		}
		return nil
	})
	flags.StringVar(&cfg.RPCListen, "rpc-listen", "", "`ADDR` where the chain's JSON-RPC listens; a loopback address "+
		"(default: the port of the last run in this folder, else 8545, else one that is free)")
	flags.StringVar(&cfg.WebhookURL, "webhook-url", "", "`URL` where merchants' events are posted (default: nowhere)")
	info := flags.String("info", "", "once ready, write the world's addresses, keys and secrets to `FILE`, as JSON")
	cobra.CheckErr(cmd.MarkFlagDirname("data"))
	cobra.CheckErr(cmd.MarkFlagFilename("info", "json"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runDev(cmd.Context(), env, cfg, *info) }
	return cmd
}

func runDev(ctx context.Context, env environment, cfg dev.Config, info string) error {
	if err := cfg.Check(); err != nil {
		return usageError{err}
	}
	log.SetFlags(0)
	log.SetOutput(server.NetLog(cfg.Logger, slog.LevelWarn)) // http.Transport logs there
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)   // the terminal was closed
	defer stop()
	var reportErr error // from writing the Info or the guide; it stops the world
	err := dev.Run(ctx, cfg, func(w *dev.World) {
		if info != "" {
			reportErr = w.Info.Write(info)
		}
		if reportErr == nil {
			reportErr = printGuide(env.stdout, w)
		}
		if reportErr != nil {
			stop()
		}
	})
	if err = errors.Join(reportErr, err); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, "Stopped. The next start continues from here.")
	return err
}
