package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/server"
)

const devHelp = `Usage: quittance dev [flags]

Runs the service on SQLite with an embedded EVM chain, a test token, the
registry, a merchant and a rich payer, until it is stopped by Ctrl-C or SIGTERM.
The database and the chain are kept and found again at the next start.

Flags:
  --listen ADDR        where the API listens; a loopback address (default 127.0.0.1:8080)
  --data DIR           where the database and the chain are kept (default .quittance)
  --block-time TIME    time between blocks (default 1s); blocks are dated in whole seconds,
                       so below 1s there is one a second, but for payments: those
                       are final at this pace, up to 2 s ahead of the clock
  --rpc-listen ADDR    where the chain's JSON-RPC listens; a loopback address (default: the
                       port of the last run in this folder, else 8545, else one
                       that is free)
  --webhook-url URL    where merchants' events are posted (default: nowhere)
  --info FILE          once ready, write the world's addresses, keys and secrets there, as JSON
`

func runDev(ctx context.Context, env environment, args []string) error {
	cfg := dev.Config{Now: time.Now, Rand: rand.Reader, Logger: env.logger(slog.LevelWarn)}
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8080", "")
	flags.StringVar(&cfg.Dir, "data", ".quittance", "")
	cfg.BlockTime = time.Second
	flags.Func("block-time", "", func(text string) (err error) {
		if cfg.BlockTime, err = time.ParseDuration(text); err != nil {
			return errors.New("want a number with its unit, such as 500ms, 1s or 2m")
		}
		return nil
	})
	flags.StringVar(&cfg.RPCListen, "rpc-listen", "", "")
	flags.StringVar(&cfg.WebhookURL, "webhook-url", "", "")
	info := flags.String("info", "", "")
	if err := parse(env, flags, devHelp, args); err != nil {
		return ended(err)
	}
	if err := cfg.Check(); err != nil {
		return usageError{err}
	}
	log.SetFlags(0)
	log.SetOutput(server.NetLog(cfg.Logger, slog.LevelWarn)) // http.Transport writes there
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)   // its terminal is gone
	defer stop()
	var untold error // what the world is; it ends on that
	err := dev.Run(ctx, cfg, func(w *dev.World) {
		if *info != "" {
			untold = w.Info.Write(*info)
		}
		if untold == nil {
			untold = printGuide(env.stdout, w.Info, cfg)
		}
		if untold != nil {
			stop()
		}
	})
	if err = errors.Join(untold, err); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, "Stopped. The next start goes on from here.")
	return err
}
