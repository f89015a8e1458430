package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
)

func newMigrate(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate --to URL --config FILE", GroupID: groupService,
		Short: "move the SQLite database to PostgreSQL",
		Long: `Copies the service's SQLite database into an empty PostgreSQL database, while the service
is stopped. Every table is compared by its number of rows, a hash of its rows and the sum
of its amounts, all in one transaction: after an error the target is as empty as before.

Afterwards no service starts on the file. Set database in the configuration to the target,
and start the service. Nothing is different for merchants, payers and event followers.`,
		Example: `  quittance migrate --config quittance.yaml --to postgres://quittance@db1:5432/quittance
  quittance migrate --config quittance.yaml --to-file /etc/quittance/database`,
		Args: noArgs,
	}
	path := requiredConfigFlag(cmd)
	to := cmd.Flags().String("to", "", "`URL` of the empty database; a password may be in PGPASSWORD or ~/.pgpass")
	toFile := cmd.Flags().String("to-file", "", "`FILE` with the URL, as in the setting database.urlFile")
	cmd.MarkFlagsMutuallyExclusive("to", "to-file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target, setting := *to, "database: {urlFile: FILE}, of a file that holds the URL of the target"
		if *toFile != "" {
			text, err := config.ReadFile(*toFile)
			if err != nil {
				return fmt.Errorf("read the URL of the target: %w", err)
			}
			target, setting = strings.TrimSpace(string(text)), fmt.Sprintf("database: {urlFile: %s}", *toFile)
		}
		if target == "" {
			return usageError{errors.New("--to URL or --to-file FILE is needed, which names an empty PostgreSQL database")}
		}
		cfg, err := loadConfig(*path)
		if err != nil {
			return err
		}
		rows := int64(0)
		moved, err := db.Move(cmd.Context(), cfg.Database, target, time.Now(), func(t db.MovedTable) {
			rows += t.Rows
			amount := ""
			if t.Amount != "" {
				amount = ", amounts " + t.Amount
			}
			fmt.Fprintf(env.stdout, "%s: %s%s\n", t.Name, count(int(t.Rows), "row"), amount)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.stdout, `Moved and compared %s of %s.
Now set in %s
  %s
and start the service. Keep %s until it works; no service starts on it any more.
`, count(int(rows), "row"), count(len(moved), "table"), *path, setting, strings.TrimPrefix(cfg.Database, "sqlite:"))
		return err
	}
	return cmd
}
