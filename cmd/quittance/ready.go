package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
)

func newReady(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ready {--config FILE | --url URL}", GroupID: groupService,
		Short: "check whether the service is ready",
		Long: `Checks whether the service is ready, as GET /readyz of the service at the address in
the configuration says. It exits with 0 if it is, else with 1 and the reason. It is the
health check of the container image, which has no shell and no other program. With
--exclude chains, chains that are not read do not count, since the API needs none.`,
		Example: "  quittance ready --config quittance.yaml",
	}
	path := configFlag(cmd)
	url := cmd.Flags().String("url", "", "the service at this `URL`, such as http://127.0.0.1:8080, instead of --config")
	exclude := cmd.Flags().StringSlice("exclude", nil, "do not count these `PARTS`: chains")
	cmd.MarkFlagsOneRequired("config", "url") // for completion; the error of Args is better
	cmd.MarkFlagsMutuallyExclusive("config", "url")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if (*path == "") == (*url == "") {
			return errors.New("ready needs either --config FILE or --url URL")
		}
		return noArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, part := range *exclude {
			if part != "chains" {
				return usageError{fmt.Errorf("--exclude %q; want chains", part)}
			}
		}
		at := admin.Service{URL: *url}
		if *url == "" {
			cfg, err := loadConfig(*path)
			if err != nil {
				return err
			}
			at = serviceAt(cfg.LocalOperator())
		}
		if err := admin.CheckReady(cmd.Context(), at, *exclude...); err != nil {
			return err
		}
		_, err := fmt.Fprintln(env.stdout, "ready")
		return err
	}
	return cmd
}
