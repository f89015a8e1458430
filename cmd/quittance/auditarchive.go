package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/admin"
)

func newAuditArchive(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "archive --config FILE --before TIME --out FILE",
		Short: "move old entries of the log to a file",
		Long: `Writes the entries of the audit log that are older than TIME to a new file, one as
JSON on each line, and deletes them. A checkpoint that is signed with the master
key stays in the database, so that the rest can be verified: audit verify goes on
from it, or begins with the files that are given with --archive. Keep the files.

TIME is one such as 2026-01-31T10:00:00Z, or how long ago, such as 2160h. The
entries of the last 24 hours stay. The service may be running.`,
		Example: "  quittance audit archive --config quittance.yaml --before 2160h --out audit-2026-1.jsonl",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	var before *int64
	cmd.Flags().Func("before", "archive entries older than `TIME`", moment(&before))
	out := cmd.Flags().String("out", "", "write to the new `FILE`")
	asJSON := jsonFlag(cmd, "write JSON: entries, head, sha256")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if before == nil || *out == "" {
			return usageError{errors.New("--before and --out are required")}
		}
		return runAuditArchive(cmd.Context(), env, *path, time.Unix(*before, 0), *out, *asJSON)
	}
	return cmd
}

func runAuditArchive(ctx context.Context, env environment, path string, before time.Time, out string, asJSON bool) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	if cfg.Keyring == nil {
		return fmt.Errorf("%s names no master key to sign the checkpoint with; want masterKeyFile or masterKeyEnv", path)
	}
	made, n, err := admin.ArchiveAudit(asCommand(ctx), cfg.Database, cfg.Keyring, before, out)
	if err != nil {
		return err
	}
	if asJSON {
		return env.writeJSON(struct {
			Entries int64  `json:"entries"`
			Head    string `json:"head"`
			SHA256  string `json:"sha256"`
		}{n, made.Head.String(), fmt.Sprintf("%x", made.Archive)})
	}
	_, err = fmt.Fprintf(env.stdout, "%d entries were moved to %s. The last of them is\n\n  %s\n", n, out, made.Head)
	return err
}
