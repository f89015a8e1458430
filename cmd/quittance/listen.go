package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/webhooks"
)

func newListen(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "listen", GroupID: groupTry,
		Short: "print events as they come, and forward them to your receiver",
		Long: `Prints events as they come, until it is stopped by Ctrl-C or SIGTERM. With
--forward-to it posts each to your receiver as well, signed as the service signs
its deliveries, and prints what the receiver answers. An event is posted once,
whatever the answer; the service makes its own deliveries as usual. When the service
restarts, it continues where it was.

"quittance events redeliver ID" has an event come again, to every terminal that
listens, under the same delivery id. --redeliver has an old event come to this one
alone. Neither needs an endpoint.`,
		Example: "  quittance listen --forward-to http://127.0.0.1:9000/webhooks",
		Args:    noArgs,
	}
	cfg := dev.ListenConfig{Out: dev.Printer{Out: env.stdout, Notes: env.stdout, Color: env.color}, Now: time.Now}
	at := remoteFlags(cmd)
	to := cmd.Flags().String("forward-to", "", "post each event to this `URL`, once")
	secret := cmd.Flags().String("secret", "", "sign them with this `SECRET` (default: the merchant's in the world of quittance dev, else a new one; it is printed)")
	cmd.Flags().BoolVar(&cfg.FromStart, "from-start", false, "begin with the oldest event that is kept, and not from now on")
	cmd.Flags().StringArrayVar(&cfg.Redeliver, "redeliver", nil, "begin with the event of this `ID`, once more; may be repeated")
	filterFlags(cmd, &cfg.Filter.MerchantID, &cfg.Filter.Type, &cfg.Filter.InvoiceID)
	cmd.Flags().BoolVar(&cfg.Out.JSON, "json", false,
		"write a line of JSON for each event, as the service's GET /api/events does, and everything else to standard error")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cfg.Out.JSON {
			cfg.Out.Notes, cfg.Out.Color = env.stderr, false
		}
		return noService(runListen(cmd.Context(), env, cfg, at, *to, *secret))
	}
	return cmd
}

func runListen(ctx context.Context, env environment, cfg dev.ListenConfig, at *remote, to, secret string) error {
	if to != "" {
		if err := config.CheckWebhookURL(to); err != nil {
			return usageError{fmt.Errorf("--forward-to %w", err)}
		}
	}
	var err error
	if cfg.API, err = at.client(env); err != nil {
		return err
	}
	if to != "" {
		if secret == "" {
			if secret, err = listenSecret(ctx, at.url); err != nil {
				return err
			}
		}
		cfg.To = &webhooks.Endpoint{URL: to, Secret: secret}
	}
	cfg.Ready = func() { printListening(cfg.Out.Notes, at.url, cfg) }
	return dev.Listen(ctx, cfg)
}

// listenSecret returns the merchant's webhook secret of the world at a URL, so that a receiver needs only one, and a new
// secret for every other service, and if nothing answers, which the caller finds out.
func listenSecret(ctx context.Context, url string) (string, error) {
	if world, err := dev.Ask(ctx, url); err == nil {
		return world.Merchant.WebhookSecret, nil
	}
	return access.NewSecret(rand.Reader)
}

// printListening prints the followed events, and the signing secret for the receiver.
func printListening(out io.Writer, url string, cfg dev.ListenConfig) {
	what := "events"
	if cfg.Filter != (client.EventFilter{}) {
		what = "some events"
	}
	fmt.Fprintf(out, "Listening to %s of %s. Stop with Ctrl-C.\n", what, url)
	if cfg.To != nil {
		fmt.Fprintf(out, "Forwarding them to %s, signed with the secret\n\n  %s\n\n", cfg.To.URL, cfg.To.Secret)
	}
}
