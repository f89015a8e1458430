package main

import (
	"cmp"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
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
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(*path)
		if err != nil {
			return err
		}
		ctx := asCommand(cmd.Context())
		var link access.Link
		err = admin.WithKeys(ctx, merchantsConfig(cfg), func(m *access.KeyManager) (err error) {
			link, err = m.SetupLink(ctx)
			return err
		})
		if err != nil {
			return err
		}
		page := cmp.Or(cfg.DashboardURL, cfg.LocalAPI().URL) + "/dashboard/sign-in?" + url.Values{"link": {link.Token}, "next": {"/dashboard/operator/setup"}}.Encode()
		return printSignIn(env, page, link.ExpiresAt, *asJSON)
	}
	return cmd
}
