package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/dev"
)

// triggerTimeout is the default of --timeout.
const triggerTimeout = time.Minute

func newTrigger(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trigger TYPE", GroupID: groupTry,
		Short: "make an event, or a scenario, happen in the world of quittance dev",
		Long: `Makes an event happen in a world that quittance dev runs, in earnest: an invoice
is created, paid by a transaction on the chain, paid back, or left to expire.
It waits until the event is recorded, shows it, and says where to look on.

TYPE is invoice.created, payment.received, invoice.paid, payment.refunded or
invoice.expired.

With --scenario it plays what a receiver must survive instead, with real reorgs, outages
and redeliveries, and shows the events in the order in which they came; --list has the
scenarios. Those in which invoices expire advance the world's clock by a minute.`,
		Example:   "  quittance trigger invoice.paid\n  quittance trigger --scenario reorg",
		ValidArgs: triggerTypes(),
	}
	url := cmd.Flags().String("url", defaultURL, "`URL` of the world")
	name := cmd.Flags().String("scenario", "", "play this `SCENARIO`")
	list := cmd.Flags().Bool("list", false, "list the types and the scenarios")
	limit := cmd.Flags().Duration("timeout", triggerTimeout, "wait for this `TIME` at most; with slow blocks it takes several of them")
	asJSON := jsonFlag(cmd, "write the event as JSON, as the service's GET /api/events does, or the scenario with its events, and the steps to standard error")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("scenario", cobra.FixedCompletions(scenarioCompletions(), cobra.ShellCompDirectiveNoFileComp)))
	cmd.Args = func(cmd *cobra.Command, types []string) error {
		if *list || *name != "" {
			return noArgs(cmd, types)
		}
		known := "there is " + strings.Join(cmd.ValidArgs, ", ")
		if len(types) != 1 {
			return errors.New("trigger needs the type of one event, or --scenario; " + known)
		}
		if !slices.Contains(cmd.ValidArgs, types[0]) {
			return fmt.Errorf("%q cannot be triggered; %s", types[0], known)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, types []string) error {
		switch {
		case *list:
			return listTriggers(env)
		case *name != "":
			return noService(runScenario(cmd.Context(), env, *url, *name, *limit, *asJSON))
		}
		return noService(runTrigger(cmd.Context(), env, *url, apitypes.EventType(types[0]), *limit, *asJSON))
	}
	return cmd
}

// triggerConfig returns the configuration for actions in the development world of a
// service. With asJSON the steps are printed to stderr.
func triggerConfig(ctx context.Context, env environment, url string, asJSON bool) (dev.TriggerConfig, error) {
	api, err := openClient(url, env.key)
	if err != nil {
		return dev.TriggerConfig{}, err
	}
	world, err := dev.Ask(ctx, url)
	if err != nil {
		return dev.TriggerConfig{}, err
	}
	cfg := dev.TriggerConfig{World: world, API: api, Out: env.stdout}
	if asJSON {
		cfg.Out = env.stderr
	}
	return cfg, nil
}

func runTrigger(ctx context.Context, env environment, url string, typ apitypes.EventType, limit time.Duration, asJSON bool) error {
	cfg, err := triggerConfig(ctx, env, url, asJSON)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e, err := dev.Trigger(ctx, cfg, typ)
	if err != nil {
		return err
	}
	if asJSON {
		return env.writeJSON(e)
	}
	_, err = fmt.Fprintf(env.stdout, `
%s

Look on:

  quittance events show %s%s
  curl -s '%s/api/invoices/%s'
`, e.Event, e.ID(), urlFlag(url), cfg.API.URL(""), e.InvoiceID)
	return err
}

// triggerTypes returns the types of events that can be triggered.
func triggerTypes() []string {
	names := make([]string, len(dev.Types))
	for i, typ := range dev.Types {
		names[i] = string(typ)
	}
	return names
}

// urlFlag returns the flag --url for a command about the same service, or "" for the
// default URL.
func urlFlag(url string) string {
	if url == defaultURL {
		return ""
	}
	return " --url " + url
}
