package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/config"
)

func newSecrets(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "secrets COMMAND", GroupID: groupService,
		Short: "manage the webhook secrets that the service has made",
		Long: `Manages the webhook secrets that the service has made, which are encrypted under the
master key: reseal after the master key was replaced, replace after it was lost.`,
	}, newSecretsReseal(env), newSecretsReplace(env))
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

func newSecretsReplace(env environment) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "replace --config FILE",
		Short: "give endpoints a new webhook secret after the master key was lost",
		Long: `Gives a new webhook secret to every endpoint with one that cannot be decrypted, because
the master key was lost. First configure a new master key, and stop all services. Keys
that are not lost stay under oldMasterKeys; what they decrypt is not replaced.

With --out, the new secrets are written to a new file that only its owner may read, as a
JSON object for each endpoint and line: merchantId, url, secret, headersRemoved. Hand each
to its merchant. Without --out, each merchant replaces the secret once more, in the
dashboard or through the API. Until one of both, the receiver refuses what it is sent,
and it is sent again for 24 hours.

Custom headers of endpoints that cannot be decrypted are removed. Checkpoints of the
audit log whose signatures cannot be verified any more are signed again.`,
		Example: "  openssl rand -hex 32 > master.key      # masterKeyFile names it\n  quittance secrets replace --config quittance.yaml --out secrets.jsonl",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: keyId, endpoints, unverifiedCheckpoints")
	cmd.Flags().StringVar(&out, "out", "", "file to write the new secrets to; it must not exist")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(*path)
		if err != nil {
			return err
		}
		if cfg.Keyring == nil {
			return fmt.Errorf("%s names no master key; make one with openssl rand -hex 32, and name its file as masterKeyFile", *path)
		}
		return runSecretsReplace(asCommand(cmd.Context()), env, cfg, out, *asJSON)
	}
	return cmd
}

// replacedEndpoint is an endpoint in what secrets replace writes.
type replacedEndpoint struct {
	MerchantID     string `json:"merchantId"`
	URL            string `json:"url"`
	Secret         string `json:"secret,omitempty"` // only in the file
	NewSecret      bool   `json:"newSecret"`
	HeadersRemoved bool   `json:"headersRemoved"`
}

func runSecretsReplace(ctx context.Context, env environment, cfg config.Config, out string, asJSON bool) error {
	to := io.Discard
	if out != "" {
		const mode = 0o600
		file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return fmt.Errorf("the new secrets: %w; nothing was replaced", err)
		}
		defer func() { _ = file.Close() }() // Sync has reported what matters
		to = syncedWriter{file}
	}
	replaced, unverified, err := admin.ReplaceSecrets(ctx, cfg.Database, cfg.Keyring)
	endpoints := make([]replacedEndpoint, len(replaced))
	for i, r := range replaced {
		e := replacedEndpoint{r.MerchantID, r.URL, r.Secret, r.Secret != "", r.HeadersRemoved}
		line, encodeErr := json.Marshal(e) //nolint:gosec // the file is for the new secrets
		_, writeErr := to.Write(append(line, '\n'))
		err = errors.Join(err, encodeErr, writeErr)
		e.Secret = ""
		endpoints[i] = e
	}
	if err != nil {
		if out != "" && len(endpoints) == 0 {
			err = errors.Join(err, os.Remove(out))
		}
		return fmt.Errorf("the secrets of %s were replaced, then: %w", count(len(endpoints), "endpoint"), err)
	}
	if asJSON {
		return env.writeJSON(struct {
			KeyID                 string             `json:"keyId"`
			Endpoints             []replacedEndpoint `json:"endpoints"`
			UnverifiedCheckpoints int                `json:"unverifiedCheckpoints"`
		}{cfg.Keyring.KeyID(), endpoints, unverified})
	}
	return writeReplaced(env.stdout, endpoints, unverified, cfg.Keyring.KeyID(), out)
}

// syncedWriter writes to a file that is on disk when Write returns.
type syncedWriter struct{ file *os.File }

func (w syncedWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	return n, errors.Join(err, w.file.Sync())
}

// writeReplaced writes for people what was replaced, and what is to be done now.
func writeReplaced(to io.Writer, endpoints []replacedEndpoint, unverified int, keyID, out string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "The secrets of %s were replaced. The new ones are under the master key with the id %s.\n", count(len(endpoints), "endpoint"), keyID)
	for _, e := range endpoints {
		fmt.Fprintf(&text, "  %s  %s", e.MerchantID, access.WithoutQuery(e.URL))
		if e.HeadersRemoved {
			text.WriteString("  its headers were removed; its merchant sets them again")
		}
		text.WriteString("\n")
	}
	if len(endpoints) > 0 && out != "" {
		fmt.Fprintf(&text, "Hand the secrets in %s to the merchants, and remove the file. Each confirms with a ping once its receiver has it.\n", out)
	} else if len(endpoints) > 0 {
		text.WriteString("Ask the merchants to replace their secrets once more, in the dashboard or with POST /api/merchants/{id}/webhook/secret.\n")
	}
	if unverified > 0 {
		fmt.Fprintf(&text, "%s signed again without a check, because the key of its signature is lost. Compare the log with a head that you stored elsewhere: quittance audit verify --head SEQ:HASH\n", are(unverified, "checkpoint of the audit log"))
	}
	_, err := io.WriteString(to, text.String())
	return err
}
