package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// maxListedStorage bounds how many merchants the command lists.
const maxListedStorage = 10_000

func newMerchantStorage(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "storage --config FILE",
		Short: "list what merchants have stored, and their quotas",
		Long: `Lists what the entries of the audit log take that each merchant's keys caused, and
how many invoices it has, with the quotas. The first line has the quotas of merchants without
own ones. Merchants that stored nothing are left out.`,
		Args: noArgs,
	}
	path := requiredConfigFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: an array of merchants")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runMerchantStorage(cmd.Context(), env, *path, *asJSON)
	}
	return cmd
}

func runMerchantStorage(ctx context.Context, env environment, path string, asJSON bool) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	all, err := admin.Read(ctx, cfg.Database, func(store *db.DB) ([]access.Storage, error) {
		return access.ListStorage(ctx, store, "", maxListedStorage)
	})
	if err != nil {
		return err
	}
	if asJSON {
		return env.writeJSON(storageJSON(all))
	}
	return writeTable(env.stdout, func(table io.Writer) {
		fmt.Fprintln(table, "MERCHANT\tAUDIT BYTES\tQUOTA\tINVOICES\tQUOTA")
		for _, s := range all {
			if s.MerchantID == "" {
				fmt.Fprintf(table, "(others)\t\t%d\t\t%d\n", s.AuditQuota, s.InvoiceQuota)
				continue
			}
			fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\n", printable(s.MerchantID), s.AuditBytes, own(s.AuditQuota, s.OwnAudit), s.Invoices, own(s.InvoiceQuota, s.OwnInvoices))
		}
	})
}

// own returns a quota, in parentheses if it is the quota of all merchants.
func own(quota int64, isOwn bool) string {
	if isOwn {
		return fmt.Sprint(quota)
	}
	return fmt.Sprintf("(%d)", quota)
}

// storedJSON is the JSON of the storage of a merchant.
type storedJSON struct {
	MerchantID   string `json:"merchantId"` // empty: the quotas of merchants without own quotas
	AuditBytes   int64  `json:"auditBytes"`
	AuditQuota   int64  `json:"auditQuota"`
	Invoices     int64  `json:"invoices"`
	InvoiceQuota int64  `json:"invoiceQuota"`
}

func storageJSON(all []access.Storage) []storedJSON {
	out := make([]storedJSON, len(all))
	for i, s := range all {
		out[i] = storedJSON{s.MerchantID, s.AuditBytes, s.AuditQuota, s.Invoices, s.InvoiceQuota}
	}
	return out
}

func newMerchantQuotas(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quotas [ID] --config FILE",
		Short: "set how much a merchant may store",
		Long: `Sets the quotas of a merchant or, without an ID, of all merchants without own ones.
A running service applies them at once, and that of invoices within 10 seconds.`,
		Example: "  quittance merchant quotas acme --config quittance.yaml --audit-bytes 4294967296",
		Args:    cobra.MaximumNArgs(1),
	}
	path := requiredConfigFlag(cmd)
	bytes := cmd.Flags().Int64("audit-bytes", 0, "of entries of the audit log that the merchant's keys cause: `N`, or -1 for the quota of all")
	invoices := cmd.Flags().Int64("invoices", 0, "of invoices: `N`, or -1 for the quota of all")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		id := ""
		if len(ids) == 1 {
			if id = ids[0]; !invoice.ValidMerchantID(id) {
				return usageError{fmt.Errorf("%.80q is no id of a merchant", id)}
			}
		}
		if *bytes == 0 && *invoices == 0 || id == "" && min(*bytes, *invoices) < 0 {
			return usageError{errors.New("want --audit-bytes or --invoices; the quotas of all merchants are numbers above 0")}
		}
		cfg, err := loadConfig(*path)
		if err != nil {
			return err
		}
		if err := admin.SetQuotas(asCommand(cmd.Context()), cfg.Database, id, *bytes, *invoices); err != nil {
			return err
		}
		return runMerchantStorage(cmd.Context(), env, *path, false)
	}
	return cmd
}
