package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/dev"
)

func newClock(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "clock COMMAND", GroupID: groupTry,
		Short: "the test clock of quittance dev",
		Long: `Advances the time of a world that quittance dev runs, so that what would take
hours happens now. It never goes back.`,
	},
		newClockAdvance(env), newClockShow(env))
}

func newClockAdvance(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "advance DURATION",
		Short: "advance the world's clock",
		Long: `Advances the time of a world that quittance dev runs: invoices expire, retries of
webhooks fall due, keys expire, and blocks are dated by the new time. DURATION is 1s to 30d.
Webhooks stay signed by real time, so that your receiver accepts them.`,
		Example: "  quittance clock advance 1h",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("clock advance needs a duration, such as 90s, 1h or 30d")
			}
			_, err := parseAdvance(args[0])
			return err
		},
	}
	url := cmd.Flags().String("url", defaultURL, "`URL` of the world")
	asJSON := jsonFlag(cmd, "write JSON: now, in Unix seconds, and aheadSeconds")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		by, err := parseAdvance(args[0])
		if err != nil {
			return usageError{err}
		}
		return runClock(cmd.Context(), env, *url, *asJSON, func(ctx context.Context) (dev.ClockInfo, error) { return dev.Advance(ctx, *url, by) })
	}
	return cmd
}

func newClockShow(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "show the world's clock",
		Long:  "Shows the time of a world that quittance dev runs, and by how much it has been advanced.",
		Args:  noArgs,
	}
	url := cmd.Flags().String("url", defaultURL, "`URL` of the world")
	asJSON := jsonFlag(cmd, "write JSON: now, in Unix seconds, and aheadSeconds")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runClock(cmd.Context(), env, *url, *asJSON, func(ctx context.Context) (dev.ClockInfo, error) { return dev.Clock(ctx, *url) })
	}
	return cmd
}

func runClock(ctx context.Context, env environment, url string, asJSON bool, do func(context.Context) (dev.ClockInfo, error)) error {
	if _, err := dev.Ask(ctx, url); err != nil {
		return noService(err)
	}
	c, err := do(ctx)
	switch {
	case err != nil:
		return noService(err)
	case asJSON:
		return env.writeJSON(c)
	}
	_, err = fmt.Fprintf(env.stdout, "It is %s in the world, %s ahead of real time.\n", timeOfDay(c.Now), time.Duration(c.AheadSeconds)*time.Second)
	return err
}

// parseAdvance parses a duration, which may be in days.
func parseAdvance(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < dev.MinAdvance || d > dev.MaxAdvance || d%time.Second != 0 {
		return 0, fmt.Errorf("%q is not a duration of 1s to 30d in whole seconds, such as 90s, 1h or 30d", text)
	}
	return d, nil
}
