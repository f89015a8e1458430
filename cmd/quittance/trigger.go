package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/trigger"
)

// triggerTimeout is how long an event may take unless --timeout says otherwise.
const triggerTimeout = time.Minute

const triggerHelp = `Usage: quittance trigger TYPE [flags]

Makes an event happen in a world that quittance dev runs, in earnest: an invoice
is created, paid by a transaction on the chain, paid back, or left to expire.
It waits until the event is recorded, shows it, and says where to look on.

TYPE is invoice.created, payment.received, invoice.paid, payment.refunded or
invoice.expired.

Flags:
  --url URL         the service (default http://127.0.0.1:8080)
  --timeout TIME    how long to wait for it (default 1m); with slow blocks it takes
                    several of them
`

func runTrigger(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("trigger", flag.ContinueOnError)
	url := serviceFlag(flags)
	limit := flags.Duration("timeout", triggerTimeout, "")
	words, err := parseWords(env, flags, triggerHelp, args)
	switch {
	case err != nil:
		return ended(err)
	case len(words) != 1:
		return usageError{errors.New("trigger needs the type of one event; " + triggerTypes())}
	case !slices.Contains(trigger.Types, client.EventType(words[0])):
		return usageError{fmt.Errorf("%q cannot be triggered; %s", words[0], triggerTypes())}
	}
	api, err := openClient(*url)
	if err != nil {
		return err
	}
	world, err := dev.Ask(ctx, *url)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	e, err := trigger.Run(ctx, trigger.Config{World: world, API: api, Out: env.stdout, Now: time.Now}, client.EventType(words[0]))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, `
%s

Look on:

  quittance events show %s%s
  curl -s '%s/api/invoices/%s'
`, e.Event, e.ID(), urlFlag(*url), api.URL(""), e.InvoiceID)
	return err
}

// triggerTypes says which types there are.
func triggerTypes() string {
	names := make([]string, len(trigger.Types))
	for i, typ := range trigger.Types {
		names[i] = string(typ)
	}
	return "there is " + strings.Join(names, ", ")
}

// urlFlag is the flag that a command needs to ask the same service.
func urlFlag(url string) string {
	if url == defaultURL {
		return ""
	}
	return " --url " + url
}
