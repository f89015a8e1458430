package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/server"
)

func newConfig(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "config COMMAND", GroupID: groupService,
		Short: "check and show the configuration",
		Long:  "Checks and shows the configuration.",
	}, newConfigCheck(env), newConfigShow(env), newConfigApply(env))
}

func newConfigCheck(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check --config FILE [--database]",
		Short: "check the configuration",
		Long: `Checks the configuration, with the secrets that it refers to, and names every wrong
setting. It contacts no nodes, and the database only with --database. Then it compares
the configuration with what the database remembers of earlier ones, names every change
and what follows from it, and changes nothing. It exits with 1 if the service would
refuse the configuration, and with --database if there is no database yet.`,
		Example: `  quittance config check --config quittance.yaml
  quittance config check --config new.yaml --database`,
		Args: noArgs,
	}
	path := requiredConfigFlag(cmd)
	database := cmd.Flags().Bool("database", false, "compare with what the database remembers")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, _ []string) error {
		for _, warning := range cfg.Warnings {
			fmt.Fprintf(env.stdout, "warning: %s\n", warning)
		}
		_, err := fmt.Fprintf(env.stdout, "%s is usable: %s, %s\n", *path, count(len(cfg.Merchants), "merchant"), count(len(cfg.Chains), "chain"))
		if err != nil || !*database {
			return err
		}
		changes, err := differences(ctx, cfg)
		if err != nil {
			return err
		}
		return cmp.Or(printChanges(env, changes), chain.RefuseChanges(changes))
	})
	return cmd
}

// differences returns how a configuration differs from the earlier ones in the database.
func differences(ctx context.Context, cfg config.Config) ([]chain.ConfigChange, error) {
	changes, err := admin.Differences(ctx, admin.Config{Database: cfg.Database, Chains: chainsOf(cfg)})
	if err != nil {
		return nil, err
	}
	merchants, err := admin.MerchantDifferences(ctx, merchantsConfig(cfg))
	return append(changes, merchants...), err
}

// printChanges prints how a configuration differs from the earlier ones in the database.
func printChanges(env environment, changes []chain.ConfigChange) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(env.stdout, "Nothing differs from what the database remembers.")
		return err
	}
	for _, c := range changes {
		if _, err := fmt.Fprintf(env.stdout, "%s: %s\n", c.Kind, c); err != nil {
			return err
		}
	}
	return nil
}

func newConfigShow(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show --config FILE",
		Short: "show the settings in effect",
		Long: `Shows the settings in effect: those of the configuration, and the defaults of those
that it leaves out. It shows no secret, but where each is read from. Of the URL of a
database or node that the file spells out, it leaves out the parts that may hold one.`,
		Example: "  quittance config show --config quittance.yaml",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON instead of YAML")
	cmd.RunE = func(*cobra.Command, []string) error {
		if _, err := loadConfig(*path); err != nil {
			return err
		}
		text, err := config.Show(*path, config.System)
		if err == nil && *asJSON {
			text, err = yaml.YAMLToJSON(text)
		}
		if err != nil {
			return err
		}
		_, err = env.stdout.Write(text)
		return err
	}
	return cmd
}

func newConfigApply(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply --config FILE --yes",
		Short: "make the configuration the newest revision",
		Long: `Makes the configuration of chains, tokens, contracts and merchants the newest revision, as the
start of a replica does. Replicas that run another one stop their work until they are
restarted. A SQLite database has one service; stop it before.

It is needed only if replicas with the wrong configuration run, and the start with the
right one is refused because it was in force before. Without --yes the changes are
shown, and nothing is changed.`,
		Example: "  quittance config apply --config quittance.yaml --yes",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	yes := cmd.Flags().Bool("yes", false, "do it; without it, the changes are shown")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, _ []string) error {
		changes, err := differences(ctx, cfg)
		if err != nil {
			return err
		}
		if err := cmp.Or(printChanges(env, changes), chain.RefuseChanges(changes)); err != nil {
			return err
		}
		if !*yes {
			return errNothingChanged
		}
		return server.ApplyConfiguration(ctx, serverConfig(cfg, nil, slog.New(slog.DiscardHandler), nil))
	})
	return cmd
}
