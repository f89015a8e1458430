package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/config"
)

// profile is the default service of commands, and its key.
type profile struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

// profilePath returns the path of the profile, or "" if the user has no folder for it.
func profilePath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "quittance", "profile.json")
}

// readProfile reads the profile. Without one it is empty. It refuses a file that other
// users can read.
func readProfile(path string) (p profile, err error) {
	info, err := os.Stat(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return profile{}, nil
	}
	if err != nil {
		return profile{}, fmt.Errorf("read the profile: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return profile{}, fmt.Errorf("the profile %s can be read by other users: run chmod 600 %[1]s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return profile{}, fmt.Errorf("read the profile: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return profile{}, fmt.Errorf("the profile %s is broken: run quittance login again", path)
	}
	return p, nil
}

// writeProfile replaces the profile with a new file that only its owner can read.
func writeProfile(path string, p profile) (err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the profile: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the profile's folder: %w", err)
	}
	if err := config.ReplaceFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

func newLogin(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "login [--url URL]", GroupID: groupService,
		Short: "keep the URL of a service and a key for it",
		Long: `Asks for a key, checks that the service accepts it, and keeps it with the URL in a
file that you alone can read. Commands then call that service with that key, unless
--url, --config or the environment variable ` + keyVariable + ` says otherwise. The key is read
from standard input, never from the command line.`,
		Example: "  quittance login --url https://pay.example.com",
		Args:    noArgs,
	}
	at := cmd.Flags().String("url", defaultURL, "`URL` of the service")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return noService(runLogin(cmd.Context(), env, *at)) }
	return cmd
}

func runLogin(ctx context.Context, env environment, at string) error {
	if env.profile == "" {
		return errors.New("there is no folder for the profile: set HOME or XDG_CONFIG_HOME")
	}
	if !isPrivate(at) {
		return usageError{fmt.Errorf("--url %q would send the key unencrypted; want one that begins with https://", at)}
	}
	key, err := askKey(env)
	if err != nil {
		return err
	}
	c, err := openClient(at, key)
	if err != nil {
		return err
	}
	for _, err := range c.Invoices(ctx, client.InvoiceFilter{PageSize: 1}) {
		// A key without the scope for this list is still a key.
		if problem := (*client.Error)(nil); err != nil && (!errors.As(err, &problem) || problem.Code != apitypes.CodeForbidden) {
			return err
		}
		break
	}
	if err := writeProfile(env.profile, profile{URL: at, Key: key}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.stdout, "Commands call %s with this key now. It is in %s.\n", at, env.profile)
	return err
}

// isPrivate reports whether a request to a URL cannot be read on the way.
func isPrivate(at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" {
		return err == nil
	}
	return config.IsLoopback(u.Hostname())
}

// askKey reads a key from standard input. A terminal shows a prompt, but not the key.
func askKey(env environment) (string, error) {
	var text string
	if file, ok := env.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(env.stderr, "Key (qk_…): ")
		typed, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(env.stderr)
		if err != nil {
			return "", fmt.Errorf("read the key: %w", err)
		}
		text = string(typed)
	} else {
		line, err := bufio.NewReader(io.LimitReader(env.stdin, maxKeyLine)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the key: %w", err)
		}
		text = line
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", errors.New("no key was given on standard input")
	}
	return text, nil
}

// maxKeyLine bounds the line with the key, in bytes.
const maxKeyLine = 4096

func newLogout(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "logout", GroupID: groupService,
		Short: "forget what login has kept",
		Long:  "Removes the URL and the key that quittance login has kept. The key stays valid: revoke it with quittance key revoke.",
		Args:  noArgs,
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := os.Remove(env.profile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the profile: %w", err)
		}
		return nil
	}
	return cmd
}
