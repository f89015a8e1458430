package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

// asCommand returns a context for changes that the audit log ascribes to the user who runs
// the command.
func asCommand(ctx context.Context) context.Context {
	name := fmt.Sprint("uid ", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return access.WithOrigin(ctx, access.Origin{Actor: access.ActorCommand + name})
}

func newAudit(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "audit COMMAND", GroupID: groupService,
		Short: "list and verify the log of changes",
		Long:  "Lists and verifies the log of the changes that somebody asked for.",
	}, newAuditList(env), newAuditVerify(env), newAuditArchive(env))
}

// maxAuditList bounds the entries that audit list writes.
const maxAuditList = 10_000

func newAuditList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --config FILE",
		Short: "list who changed what",
		Long: `Lists the entries of the audit log, newest first.

TIME is one such as 2026-01-31T10:00:00Z, or how long ago, such as 90m.`,
		Example: "  quittance audit list --config quittance.yaml --merchant acme --since 24h",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	var f access.AuditFilter
	var since *int64
	cmd.Flags().StringVar(&f.MerchantID, "merchant", "", "only entries of the merchant with this `ID`")
	cmd.Flags().StringVar((*string)(&f.Action), "action", "", "only entries of this `KIND`, such as endpoint.update")
	cmd.Flags().Func("since", "only entries since `TIME`", moment(&since))
	cmd.Flags().IntVar(&f.Limit, "limit", 50, fmt.Sprintf("list at most `N` entries, 1 to %d", maxAuditList))
	asJSON := jsonFlag(cmd, "write JSON, as the service's GET /api/audit does")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.Limit < 1 || f.Limit > maxAuditList {
			return usageError{fmt.Errorf("--limit is %d; want 1 to %d", f.Limit, maxAuditList)}
		}
		if since != nil {
			f.Since = time.Unix(*since, 0)
		}
		return runAuditList(cmd.Context(), env, *path, f, *asJSON)
	}
	return cmd
}

func runAuditList(ctx context.Context, env environment, path string, f access.AuditFilter, asJSON bool) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	found, err := admin.Read(ctx, cfg.Database, func(store *db.DB) ([]access.Entry, error) {
		return access.NewReader(store).AuditEntries(ctx, f)
	})
	if err != nil {
		return err
	}
	entries := make([]apitypes.AuditEntry, len(found))
	for i, e := range found {
		entries[i] = apiconv.AuditEntry(e)
	}
	if asJSON {
		return env.writeJSON(apitypes.AuditList{Entries: entries})
	}
	return printAudit(env.stdout, entries)
}

// printAudit writes a line for each entry, and one for its change.
func printAudit(out io.Writer, entries []apitypes.AuditEntry) error {
	const header = "SEQ\tAT\tACTOR\tFROM\tACTION\tOBJECT\tMERCHANT"
	return tableOf(out, "entries", entries, header, func(e apitypes.AuditEntry) []any {
		return []any{
			e.Seq, timeOfDay(e.At), printable(e.Actor), orDash(e.Client), printable(e.Action),
			orDash(printable(e.Object)), orDash(e.MerchantID),
		}
	})
}

func newAuditVerify(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify --config FILE [--head SEQ:HASH] [--archive FILE]",
		Short: "check that no entry of the log was changed or removed",
		Long: `Reads the whole audit log, checks the hash of each entry, and prints the head: the
number and the hash of the newest entry. If an entry was changed, removed or
reordered, it says which one and fails.

A log that was archived is verified from its newest checkpoint, whose signature is
checked with the master key, or from its first entry if all archives are given.

Somebody who can write to the database could compute all hashes again, or remove
the newest entries. Store the head in another place, and give it with --head
later: then that is found, too.`,
		Example: "  quittance audit verify --config quittance.yaml --head 1042:5f0c…",
		Args:    noArgs,
	}
	path := requiredConfigFlag(cmd)
	var heads []access.Head
	cmd.Flags().Func("head", "a head that was printed before, `SEQ:HASH`; may be repeated", func(text string) error {
		head, err := access.ParseHead(text)
		heads = append(heads, head)
		return err
	})
	archives := cmd.Flags().StringArray("archive", nil, "a `FILE` that audit archive wrote; may be repeated, the oldest first")
	asJSON := jsonFlag(cmd, "write JSON: head, and fault with seq, damage and detail")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runAuditVerify(cmd.Context(), env, *path, *archives, heads, *asJSON)
	}
	return cmd
}

func runAuditVerify(ctx context.Context, env environment, path string, archives []string, heads []access.Head, asJSON bool) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	head, err := admin.VerifyAudit(ctx, cfg.Database, cfg.Keyring, archives, heads...)
	fault := (*access.FaultError)(nil)
	if err != nil && !errors.As(err, &fault) {
		return err
	}
	if asJSON {
		return errors.Join(env.writeJSON(auditResult{head.String(), fault}), err)
	}
	if err == nil {
		_, err = fmt.Fprintf(env.stdout, "The audit log is intact. Its head is\n\n  %s\n", head)
	}
	return err
}

// auditResult is the JSON of audit verify.
type auditResult struct {
	Head  string             `json:"head"` // of the entries that were verified
	Fault *access.FaultError `json:"fault,omitempty"`
}
