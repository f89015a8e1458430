package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/dev"
)

// runScenario plays a scenario, and prints its events.
func runScenario(ctx context.Context, env environment, url, name string, limit time.Duration, asJSON bool) error {
	scenario, err := findScenario(name)
	if err != nil {
		return usageError{err}
	}
	cfg, err := triggerConfig(ctx, env, url, asJSON)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	played, err := dev.Play(ctx, cfg, scenario)
	if err != nil {
		return err
	}
	if asJSON {
		return env.writeJSON(played)
	}
	fmt.Fprint(env.stdout, "\nThe events, in the order in which they came:\n\n")
	return env.writeTable(func(table io.Writer) {
		for i, e := range played.Events {
			again := ""
			if e.Redelivered {
				again = "again"
			}
			if e.Redelivered && e.Delivery != nil {
				again += ", as delivery " + e.Delivery.ID
			}
			fmt.Fprintf(table, "  %d\t%s\t%s\t%s\n", i+1, e.Envelope().Type, e.ID(), again)
		}
	})
}

// findScenario returns the scenario with a name.
func findScenario(name string) (dev.Scenario, error) {
	at := slices.IndexFunc(dev.Scenarios, func(s dev.Scenario) bool { return s.Name == name })
	if at < 0 {
		known := keysOf(dev.Scenarios, func(s dev.Scenario) string { return s.Name })
		return dev.Scenario{}, fmt.Errorf("--scenario %q is unknown; there is %s", name, known)
	}
	return dev.Scenarios[at], nil
}

// listTriggers lists the types of events and the scenarios.
func listTriggers(env environment) error {
	return env.writeTable(func(table io.Writer) {
		for _, typ := range dev.Types {
			fmt.Fprintf(table, "%s\tan event\n", typ)
		}
		for _, s := range dev.Scenarios {
			fmt.Fprintf(table, "--scenario %s\t%s\n", s.Name, s.About)
		}
	})
}

// scenarioCompletions returns the scenarios with their descriptions, for shells.
func scenarioCompletions() []cobra.Completion {
	var all []cobra.Completion
	for _, s := range dev.Scenarios {
		all = append(all, cobra.CompletionWithDesc(s.Name, s.About))
	}
	return all
}
