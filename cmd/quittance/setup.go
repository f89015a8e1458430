package main

import (
	"cmp"
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/config"
)

func newSetup(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "setup --config FILE", GroupID: groupService,
		Short: "make a link to the page that sets up a new service",
		Long: `Makes a link to the page that sets up a running service: it checks the database, the
chains and their contracts, and leads to the first merchant, its webhook endpoint, its
key and the first paid invoice. The link signs the operator in once, within 10 minutes.
Whoever has the link is the operator. The session belongs to a new key, called setup,
which is not shown; revoking it ends the session.`,
		Example: "  quittance setup --config quittance.yaml",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: url, expiresAt")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, _ []string) error {
		ctx = asCommand(ctx)
		var link access.Link
		err := admin.WithManagers(ctx, merchantsConfig(cfg), func(m admin.Managers) (err error) {
			link, err = m.Keys.SetupLink(ctx)
			return err
		})
		if err != nil {
			return err
		}
		page := cmp.Or(cfg.DashboardURL, cfg.LocalAPI().URL) + "/dashboard/sign-in?" + url.Values{"link": {link.Token}, "next": {"/dashboard/operator/setup"}}.Encode()
		return printSignIn(env, page, link.ExpiresAt, *asJSON)
	})
	return cmd
}
