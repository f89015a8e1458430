package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
)

func newMerchantRetire(env environment) *cobra.Command {
	return newMerchantDecision(env, &cobra.Command{
		Use: "retire ID --config FILE", Short: "make a merchant's id unusable",
		Long: `Retires the id of a merchant that has left. Its keys, sessions and payment links stop
working within a second, and no other company can have the id. Its invoices that
exist can still be paid, and what happens to them is sent to its webhook endpoint.
Remove a merchant of the configuration there first, and restart the service.`,
		Example: "  quittance merchant retire acme --config quittance.yaml",
	}, (*access.MerchantManager).Retire, "%s is retired: its keys, sessions and payment links do not work any more, and the id is not used again.\n")
}

func newMerchantResume(env environment) *cobra.Command {
	return newMerchantDecision(env, &cobra.Command{
		Use: "resume ID --config FILE", Short: "let the same company use its id again",
		Long: `Says that a merchant's id stands for the same company as before, although it was
retired, or was not in the configuration and comes back with other addresses. The
company has its keys, invoices, payment links and customers again. For another
company choose another id.`,
		Example: "  quittance merchant resume acme --config quittance.yaml",
	}, (*access.MerchantManager).Resume, "%s may be used again, by the same company. Start the service with it in the configuration, or create it with quittance merchant create.\n")
}

// newMerchantDecision completes a command that decides who may use a merchant's id.
func newMerchantDecision(env environment, cmd *cobra.Command, do func(*access.MerchantManager, context.Context, access.Principal, string) error, done string) *cobra.Command {
	cmd.Args = oneArg(cmd.Name() + " needs the id of one merchant")
	path := requiredConfigFlag(cmd)
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, ids []string) error {
		if err := db.CheckExists(cfg.Database); err != nil {
			return err
		}
		ctx = asCommand(ctx)
		if err := admin.WithManagers(ctx, merchantsConfig(cfg), func(m admin.Managers) error { return do(m.Merchants, ctx, access.Open(), ids[0]) }); err != nil {
			return fmt.Errorf("merchant %s: %w", ids[0], err)
		}
		_, err := fmt.Fprintf(env.stdout, done, ids[0])
		return err
	})
	return cmd
}
