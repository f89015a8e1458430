package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/config"
)

func newDashboard(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "dashboard COMMAND", GroupID: groupService,
		Short: "make links that sign people in at the dashboard",
	}, newDashboardOpen(env), newDashboardLink(env))
}

func newDashboardOpen(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "open",
		Short: "make a link that signs you in at the dashboard",
		Long: `Makes a link that signs you in at the dashboard once, with what your key allows, and
prints it. It expires after 10 minutes. Whoever has the link signs in as you.`,
		Example: "  quittance dashboard open --browser",
		Args:    noArgs,
	}
	at := remoteFlags(cmd)
	keyFile := keyFileFlag(cmd)
	browser := cmd.Flags().Bool("browser", false, "open the link in the browser, too")
	asJSON := jsonFlag(cmd, "write JSON: url, expiresAt")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		link, err := printSignInLink(cmd.Context(), env, at, *keyFile, "", *asJSON)
		if err == nil && *browser {
			err = openBrowser(cmd.Context(), link)
		}
		return err
	}
	return cmd
}

func newDashboardLink(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link KEY_ID",
		Short: "make a link that signs the holder of a key in at the dashboard",
		Long: `Makes a link that signs the holder of a key in at the dashboard once, with what that
key allows, and prints it. It expires after 10 minutes. Your own key needs keys:write
and all scopes of that key.`,
		Example: "  quittance dashboard link --config quittance.yaml key_…",
		Args:    oneKey,
	}
	at := remoteFlags(cmd)
	keyFile := keyFileFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: url, expiresAt")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		_, err := printSignInLink(cmd.Context(), env, at, *keyFile, ids[0], *asJSON)
		return err
	}
	return cmd
}

// keyFileFlag adds the flag that names a file with the key.
func keyFileFlag(cmd *cobra.Command) *string {
	path := cmd.Flags().String("key-file", "", "your key is in this `FILE`, instead of in "+keyVariable)
	cobra.CheckErr(cmd.MarkFlagFilename("key-file"))
	return path
}

// printSignInLink makes a link for the holder of a key, or of the caller's key if keyID is empty, and
// prints and returns it.
func printSignInLink(ctx context.Context, env environment, at *remote, keyFile, keyID string, asJSON bool) (string, error) {
	if keyFile != "" {
		text, err := config.ReadFile(keyFile)
		if err != nil {
			return "", usageError{fmt.Errorf("--key-file: %w", err)}
		}
		env.key = strings.TrimSpace(string(text))
	}
	c, err := at.client(env)
	if err != nil {
		return "", err
	}
	link, expiresAt, err := c.CreateSignInLink(ctx, keyID)
	if problem := (*client.Error)(nil); errors.As(err, &problem) && problem.Code == "not_found" {
		return "", noKey(err)
	}
	if err != nil {
		return "", noService(err)
	}
	return link, printSignIn(env, link, expiresAt, asJSON)
}

// printSignIn prints a link that signs in once.
func printSignIn(env environment, link string, expiresAt time.Time, asJSON bool) error {
	if asJSON {
		return env.writeJSON(map[string]any{"url": link, "expiresAt": expiresAt.Unix()})
	}
	_, printed := fmt.Fprintln(env.stdout, link)
	_, noted := fmt.Fprintf(env.stderr, "It signs in once, until %s.\n", clock.Format(expiresAt, env.zone, "15:04"))
	return errors.Join(printed, noted)
}

// openBrowser opens a page in the user's browser.
func openBrowser(ctx context.Context, page string) error {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	if err := exec.CommandContext(ctx, name, page).Run(); err != nil {
		return fmt.Errorf("open the browser: %w; open the link yourself", err)
	}
	return nil
}
