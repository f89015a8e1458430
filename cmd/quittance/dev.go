package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/dev"
)

const devHelp = `Usage: quittance dev [flags]

Runs the service on SQLite with an embedded EVM chain, a test token, the
registry, a merchant and a rich payer, until it is stopped by Ctrl-C or SIGTERM.
The database and the chain are kept and found again at the next start.

Flags:
  --listen ADDR        where the API listens; a loopback address (default 127.0.0.1:8080)
  --data DIR           where the database and the chain are kept (default .quittance)
  --block-time TIME    time between blocks (default 1s)
  --webhook-url URL    where merchants' events are posted (default: nowhere)
  --info FILE          once ready, write the world's addresses, keys and secrets there, as JSON
`

func runDev(ctx context.Context, env environment, args []string) error {
	cfg := dev.Config{Now: time.Now, Rand: rand.Reader, Logger: env.logger(slog.LevelWarn)}
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:8080", "")
	flags.StringVar(&cfg.Dir, "data", ".quittance", "")
	flags.DurationVar(&cfg.BlockTime, "block-time", time.Second, "")
	flags.StringVar(&cfg.WebhookURL, "webhook-url", "", "")
	info := flags.String("info", "", "")
	if err := parse(env, flags, devHelp, args); err != nil {
		return ended(err)
	}
	if err := cfg.Check(); err != nil {
		return usageError{err}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var unwritten error // the info file's; the world ends on it
	err := dev.Run(ctx, cfg, func(w *dev.World) {
		if *info != "" {
			if unwritten = w.Info.Write(*info); unwritten != nil {
				stop()
				return
			}
		}
		printDev(env.stdout, w.Info, cfg)
	})
	if err = errors.Join(unwritten, err); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, "Stopped. The next start goes on from here.")
	return err
}

// printDev shows how to use the world, ready to be pasted.
func printDev(out io.Writer, i dev.Info, cfg dev.Config) {
	webhooks := cfg.WebhookURL
	if webhooks == "" {
		webhooks = "nowhere (start with --webhook-url URL to receive events)"
	}
	fmt.Fprintf(out, `Quittance is ready.

  API         %[1]s
  chain       %[2]s, id %[3]d, JSON-RPC at %[4]s
  token       %[5]s (test USDC, 6 decimals)
  registry    %[6]s
  merchant    %[7]s, settles at %[8]s
  webhooks    %[9]s
  secret      %[10]s
  payer       %[11]s
  data        %[12]s

Create an invoice over 4.90 USDC that expires in an hour:

  curl -s %[1]s/api/invoices -H 'Content-Type: application/json' -d '{"merchantId":"%[7]s","merchantAddress":"%[8]s","amount":"4900000","currency":"USDC","chainKey":"%[2]s","expiresAt":'$(($(date +%%s)+3600))'}'

Pay it with Foundry's cast: send the transferAmount of the answer, here in AMOUNT:

  cast send --rpc-url %[4]s --private-key %[13]s %[5]s 'transfer(address,uint256)' %[8]s $AMOUNT

Or open its page, %[1]s/checkout/ID, and press the button. Then look:

  curl -s '%[1]s/api/invoices?status=paid'
  curl -s '%[1]s/api/payments?include=pending'

Stop with Ctrl-C.
`, i.BaseURL, i.Chain.ChainKey, i.Chain.ChainID, i.Chain.RPCURL, i.Chain.Token, i.Chain.Registry,
		i.Merchant.ID, i.Merchant.Address, webhooks, i.Merchant.WebhookSecret, i.Payer.Address, cfg.Dir, i.Payer.PrivateKey)
}
