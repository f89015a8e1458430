package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"time"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/listen"
	"github.com/quittance/quittance/internal/poster"
)

const listenHelp = `Usage: quittance listen [flags]

Prints events as they come, until it is stopped by Ctrl-C or SIGTERM. With
--forward-to it posts each to your receiver as well, signed as the service signs
its deliveries, and prints what the receiver answers. Nothing is posted twice,
whatever the answer; the service's own deliveries go on beside it.

Flags:
  --forward-to URL   post each event there, once
  --secret SECRET    what signs them (default: one that is made, and printed)
  --from-start       begin with the oldest event that is kept, and not from now on
  --merchant ID      only events of this merchant
  --type TYPE        only events of this type, such as invoice.paid
  --invoice ID       only events about this invoice
  --url URL          the service (default http://127.0.0.1:8080)
`

func runListen(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("listen", flag.ContinueOnError)
	cfg := listen.Config{Out: listen.Printer{Out: env.stdout, Notes: env.stdout, Color: env.color}, Now: time.Now}
	url := serviceFlag(flags)
	to := flags.String("forward-to", "", "")
	secret := flags.String("secret", "", "")
	flags.BoolVar(&cfg.FromStart, "from-start", false, "")
	flags.StringVar(&cfg.Filter.MerchantID, "merchant", "", "")
	flags.StringVar((*string)(&cfg.Filter.Type), "type", "", "")
	flags.StringVar(&cfg.Filter.InvoiceID, "invoice", "", "")
	if err := parse(env, flags, listenHelp, args); err != nil {
		return ended(err)
	}
	if *to != "" {
		if err := config.CheckWebhookURL(*to); err != nil {
			return usageError{fmt.Errorf("--forward-to %w", err)}
		}
		made, err := keyring.NewSecret(rand.Reader)
		if err != nil {
			return err
		}
		cfg.To = &poster.Endpoint{URL: *to, Secret: cmp.Or(*secret, made)}
	}
	var err error
	if cfg.API, err = openClient(*url); err != nil {
		return err
	}
	cfg.Ready = func() { printListening(env, *url, cfg) }
	return listen.Run(ctx, cfg)
}

// printListening says what is followed, and what a receiver has to know.
func printListening(env environment, url string, cfg listen.Config) {
	what := "events"
	if cfg.Filter != (client.EventFilter{}) {
		what = "some events"
	}
	fmt.Fprintf(env.stdout, "Listening to %s of %s. Stop with Ctrl-C.\n", what, url)
	if cfg.To != nil {
		fmt.Fprintf(env.stdout, "Forwarding them to %s, signed with the secret\n\n  %s\n\n", cfg.To.URL, cfg.To.Secret)
	}
}
