package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
)

func newSecrets(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "secrets COMMAND", GroupID: groupService,
		Short: "manage the webhook secrets that the service has made",
		Long:  "Manages the webhook secrets that the service has made.",
	}, newSecretsReseal(env))
}

func newSecretsReseal(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reseal --config FILE",
		Short: "encrypt webhook secrets under a new master key",
		Long: `Encrypts under the master key all webhook secrets made by the service that are
still encrypted under an older one. Do this after a new master key was
configured, with the one before under oldMasterKeys, and all services were
restarted; then the old key can be removed. The service may be running.`,
		Args: noArgs,
	}
	path := requiredConfigFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: resealed, keyId")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runSecretsReseal(cmd.Context(), env, *path, *asJSON)
	}
	return cmd
}

func runSecretsReseal(ctx context.Context, env environment, path string, asJSON bool) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	if cfg.Keyring == nil {
		return fmt.Errorf("%s names no master key; want masterKeyFile or masterKeyEnv", path)
	}
	n, err := admin.Reseal(asCommand(ctx), cfg.Database, cfg.Keyring)
	if err != nil {
		return fmt.Errorf("%s resealed, then: %w", are(n, "secret"), err)
	}
	if asJSON {
		return env.writeJSON(struct {
			Resealed int    `json:"resealed"`
			KeyID    string `json:"keyId"`
		}{n, cfg.Keyring.KeyID()})
	}
	_, err = fmt.Fprintf(env.stdout, "%s resealed. All are under the master key with the id %s.\n", are(n, "secret"), cfg.Keyring.KeyID())
	return err
}
