package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
)

func newBackup(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup FILE --config FILE", GroupID: groupService,
		Short: "back up the SQLite database, also while the service runs",
		Long: `Writes a copy of the service's SQLite database, as of one moment, to a new file. The
service may be running. The copy was checked and is on disk when the command ends with 0;
otherwise there is no file. It holds webhook secrets only as the database does, encrypted
under the master key, which is backed up apart.

To restore, stop the service, remove quittance.db-wal and quittance.db-shm in the
database's folder if they exist, and put the copy in the database's place. The copy says
that it is one, and the service does not start on it before quittance recover has run.

For PostgreSQL it names the tools that do this.`,
		Example: "  quittance backup --config quittance.yaml /backups/quittance-$(date +%F).db",
		Args:    oneArg("backup needs the one file to write"),
	}
	path := requiredConfigFlag(cmd)
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, args []string) error {
		if err := db.Backup(ctx, cfg.Database, args[0], time.Now()); err != nil {
			return err
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.stdout, "%s holds the database, %d bytes, and was checked.\n", args[0], info.Size())
		return err
	})
	return cmd
}
