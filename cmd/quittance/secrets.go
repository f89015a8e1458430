package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/config"
)

const sealingHelp = `Usage: quittance secrets COMMAND

Commands:
  reseal    encrypt webhook secrets under a new master key

Run "quittance secrets COMMAND --help" for what a command takes.
`

// runSecrets is secrets without one of its commands: it lists them.
func runSecrets(_ context.Context, env environment, args []string) error {
	return listCommands(env, "secrets", sealingHelp, args)
}

const resealHelp = `Usage: quittance secrets reseal --config FILE

Encrypts under the master key what is encrypted under those that it replaces, of
the webhook secrets that the service has made. Do this after a new master key
was configured, with the one before under oldMasterKeys, and all services were
started anew; then the old key can go. The service may run meanwhile.

Flags:
  --config FILE    the service's configuration
`

func runSecretsReseal(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("secrets reseal", flag.ContinueOnError)
	path := flags.String("config", "", "")
	if err := parse(env, flags, resealHelp, args); err != nil {
		return ended(err)
	}
	if *path == "" {
		return usageError{errors.New("secrets reseal needs --config FILE")}
	}
	cfg, err := config.Load(*path, config.System)
	if err != nil {
		return err
	}
	if cfg.Keyring == nil {
		return fmt.Errorf("%s names no master key; want masterKeyFile or masterKeyEnv", *path)
	}
	n, err := admin.Reseal(ctx, cfg.Database, cfg.Keyring)
	if err != nil {
		return fmt.Errorf("%s sealed anew, then: %w", are(n, "secret"), err)
	}
	_, err = fmt.Fprintf(env.stdout, "%s sealed anew. All are under the master key with the id %s.\n", are(n, "secret"), cfg.Keyring.KeyID())
	return err
}
