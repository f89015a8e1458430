package main

import (
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/config"
)

func newConfig(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "config COMMAND", GroupID: groupService,
		Short: "check and show the configuration",
		Long:  "Checks and shows the configuration.",
	}, newConfigCheck(env), newConfigShow(env))
}

func newConfigCheck(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check --config FILE",
		Short: "check the configuration",
		Long: `Checks the configuration, with the secrets that it refers to, and names every wrong
setting. It contacts neither nodes nor the database. It exits with 0 if the service can
be started with the configuration, else with 1.`,
		Example: "  quittance config check --config quittance.yaml",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		cfg, err := loadConfig(*path)
		if err != nil {
			return err
		}
		return printCheck(env, *path, cfg)
	}
	return cmd
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
