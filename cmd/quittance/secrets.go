package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/webhooks"
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
		Use:   "replace --config FILE --yes",
		Short: "give endpoints a new webhook secret after the master key was lost",
		Long: `Gives a new webhook secret to every endpoint with one that cannot be decrypted, because
the master key was lost. First configure a new master key, and stop all services. Keys
that are not lost stay under oldMasterKeys; what they decrypt is not replaced.

Without --yes it only lists the master keys that are missing and what would be replaced.
Read the list: a key that was merely left out of oldMasterKeys is missing, too.

With --out, the new secrets are written to a new file that only its owner may read, as a
JSON object for each endpoint and line: merchantId, url, secret, headersRemoved. Hand each
to its merchant. Without --out, each merchant replaces the secret once more, in the
dashboard or through the API. Until one of both, the receiver refuses what it is sent,
and it is sent again for 24 hours. A secret is in the file before it is in force, so no
secret is lost if the command is interrupted. Run it again then, with another file: if an
endpoint has several lines, the last one counts.

Custom headers of endpoints that cannot be decrypted are removed. Checkpoints of the
audit log whose signatures cannot be verified any more are signed again.`,
		Example: "  openssl rand -hex 32 > master.key      # masterKeyFile names it\n  quittance secrets replace --config quittance.yaml\n" +
			"  quittance secrets replace --config quittance.yaml --out secrets.jsonl --yes",
		Args: noArgs,
	}
	path := requiredConfigFlag(cmd)
	yes := cmd.Flags().Bool("yes", false, "do it; without it, the command only says what it would do")
	asJSON := jsonFlag(cmd, "write JSON: keyId, lostKeyIds, endpoints, unverifiedCheckpoints")
	cmd.Flags().StringVar(&out, "out", "", "file to write the new secrets to; it must not exist")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, _ []string) error {
		if cfg.Keyring == nil {
			return fmt.Errorf("%s names no master key; make one with openssl rand -hex 32, and name its file as masterKeyFile", *path)
		}
		if *yes {
			return runSecretsReplace(asCommand(ctx), env, cfg, out, *asJSON)
		}
		return previewReplace(ctx, env, cfg, *asJSON)
	})
	return cmd
}

// replacedEndpoint is an endpoint in the output of secrets replace.
type replacedEndpoint struct {
	MerchantID     string `json:"merchantId"`
	URL            string `json:"url"`
	Secret         string `json:"secret,omitempty"` // only in the file
	NewSecret      bool   `json:"newSecret"`
	HeadersRemoved bool   `json:"headersRemoved"`
}

// replacedSecrets is the JSON output of secrets replace.
type replacedSecrets struct {
	KeyID                 string             `json:"keyId"`
	LostKeyIDs            []string           `json:"lostKeyIds"`
	Endpoints             []replacedEndpoint `json:"endpoints"`
	UnverifiedCheckpoints int                `json:"unverifiedCheckpoints"`
}

// previewReplace prints what secrets replace would do. It returns errNothingChanged if there is something to do.
func previewReplace(ctx context.Context, env environment, cfg config.Config, asJSON bool) error {
	lost, unverified, err := admin.LostSecrets(ctx, cfg.Database, cfg.Keyring)
	if err != nil {
		return err
	}
	is := replacedSecrets{KeyID: cfg.Keyring.KeyID(), LostKeyIDs: lostKeyIDs(lost), Endpoints: make([]replacedEndpoint, len(lost)), UnverifiedCheckpoints: unverified}
	var text strings.Builder
	for i, l := range lost {
		is.Endpoints[i] = replacedEndpoint{l.MerchantID, l.URL, "", l.ActiveSecret, l.Headers}
		fmt.Fprintf(&text, "  %s  %s  %s\n", l.MerchantID, access.WithoutQuery(l.URL), describeLost(l))
	}
	switch {
	case asJSON:
		err = env.writeJSON(is)
	case len(lost) == 0 && unverified == 0:
		_, err = fmt.Fprintln(env.stdout, "The configured master keys decrypt every secret. There is nothing to replace.")
	default:
		if len(lost) > 0 {
			_, err = fmt.Fprintf(env.stdout, "These endpoints have something that only the master keys with the ids %s can decrypt:\n%s"+
				"If you still have such a key, name it under oldMasterKeys: then nothing of it is replaced.\n", strings.Join(is.LostKeyIDs, ", "), &text)
		}
		if unverified > 0 {
			_, more := fmt.Fprintf(env.stdout, "%s would be signed again without a check.\n", count(unverified, "checkpoint of the audit log"))
			err = errors.Join(err, more)
		}
	}
	if err == nil && len(lost)+unverified > 0 {
		err = errNothingChanged
	}
	return err
}

// lostKeyIDs returns the ids of the master keys that are missing.
func lostKeyIDs(lost []webhooks.Lost) []string {
	ids := []string{}
	for _, l := range lost {
		ids = append(ids, l.KeyIDs...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// describeLost describes what would happen to an endpoint.
func describeLost(l webhooks.Lost) string {
	var all []string
	if l.ActiveSecret {
		all = append(all, "gets a new secret")
	}
	if l.OtherSecrets > 0 {
		all = append(all, "loses "+count(l.OtherSecrets, "staged or former secret"))
	}
	if l.Headers {
		all = append(all, "loses its headers")
	}
	return strings.Join(all, ", ")
}

func runSecretsReplace(ctx context.Context, env environment, cfg config.Config, out string, asJSON bool) error {
	to := io.Discard
	if out != "" {
		const mode = 0o600
		file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return fmt.Errorf("the new secrets: %w; nothing was replaced", err)
		}
		defer func() { _ = file.Close() }() // Sync has reported the errors that matter
		to = syncedWriter{file}
	}
	lost, _, err := admin.LostSecrets(ctx, cfg.Database, cfg.Keyring)
	written := 0
	is := replacedSecrets{KeyID: cfg.Keyring.KeyID(), LostKeyIDs: lostKeyIDs(lost)}
	var replaced []webhooks.Replaced
	if err == nil {
		replaced, is.UnverifiedCheckpoints, err = admin.ReplaceSecrets(ctx, cfg.Database, cfg.Keyring, func(batch []webhooks.Replaced) error {
			written += len(batch)
			return writeSecrets(to, batch)
		})
	}
	is.Endpoints = make([]replacedEndpoint, len(replaced))
	for i, r := range replaced {
		is.Endpoints[i] = replacedEndpoint{r.MerchantID, r.URL, "", r.Secret != "", r.HeadersRemoved}
	}
	if err != nil {
		if out != "" && written == 0 {
			err = errors.Join(err, os.Remove(out))
		}
		return fmt.Errorf("the secrets of %s were replaced, then: %w", count(len(replaced), "endpoint"), err)
	}
	if asJSON {
		return env.writeJSON(is)
	}
	return writeReplaced(env.stdout, is, out)
}

// writeSecrets writes endpoints with their new secrets, each as JSON on a line.
func writeSecrets(to io.Writer, batch []webhooks.Replaced) error {
	if len(batch) == 0 {
		return nil
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, r := range batch {
		if err := encoder.Encode(replacedEndpoint{r.MerchantID, r.URL, r.Secret, r.Secret != "", r.HeadersRemoved}); err != nil { //nolint:gosec // the file is for the new secrets
			return err
		}
	}
	_, err := to.Write(lines.Bytes())
	return err
}

// syncedWriter writes to a file that is on disk when Write returns.
type syncedWriter struct{ file *os.File }

func (w syncedWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	return n, errors.Join(err, w.file.Sync())
}

// writeReplaced describes what was replaced, and the next steps.
func writeReplaced(to io.Writer, is replacedSecrets, out string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "The secrets of %s were replaced. The new ones are under the master key with the id %s.\n", count(len(is.Endpoints), "endpoint"), is.KeyID)
	for _, e := range is.Endpoints {
		fmt.Fprintf(&text, "  %s  %s", e.MerchantID, access.WithoutQuery(e.URL))
		if e.HeadersRemoved {
			text.WriteString("  its headers were removed; its merchant sets them again")
		}
		text.WriteString("\n")
	}
	if len(is.Endpoints) > 0 && out != "" {
		fmt.Fprintf(&text, "Hand the secrets in %s to the merchants, and remove the file. Each confirms with a ping once its receiver has it.\n", out)
	} else if len(is.Endpoints) > 0 {
		text.WriteString("Ask the merchants to replace their secrets once more, in the dashboard or with POST /api/merchants/{id}/webhook/secret.\n")
	}
	if unverified := is.UnverifiedCheckpoints; unverified > 0 {
		fmt.Fprintf(&text, "%s signed again without a check, because the key of its signature is lost. Compare the log with a head that you stored elsewhere: quittance audit verify --head SEQ:HASH\n", are(unverified, "checkpoint of the audit log"))
	}
	_, err := io.WriteString(to, text.String())
	return err
}
