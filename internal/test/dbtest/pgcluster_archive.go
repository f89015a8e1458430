package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// archivePoll is the interval of checks whether a WAL file has been archived.
const archivePoll = 10 * time.Millisecond

// BaseBackup is a copy of a cluster's files that was made while its server ran.
type BaseBackup struct {
	of  *Cluster
	dir string
}

// archive is the folder of the archived WAL.
func (c *Cluster) archive() string { return filepath.Join(c.dir, "archive") }

// archiving returns the settings of Options.Archive. A file in the archive is complete.
func (c *Cluster) archiving() []string {
	const command = "'archive_command=mkdir -p %[1]s && cp %%p %[1]s/%%f.part && mv %[1]s/%%f.part %[1]s/%%f'"
	return []string{"archive_mode=on", fmt.Sprintf(command, c.archive())}
}

// BaseBackup copies the files of a cluster with Options.Archive, using pg_basebackup. Stop removes the copy.
func (c *Cluster) BaseBackup(ctx context.Context) (BaseBackup, error) {
	b := BaseBackup{of: c, dir: filepath.Join(c.dir, "backup-"+rand.Text())}
	out, err := c.server.command(ctx, "pg_basebackup", "--pgdata", b.dir, "--dbname", c.DSN("postgres"),
		"--wal-method=fetch", "--checkpoint=fast", "--no-sync").CombinedOutput()
	if err != nil {
		return b, fmt.Errorf("pg_basebackup to %s: %w\n%s", b.dir, err, out)
	}
	return b, nil
}

// RestorePoint gives this moment a name, up to which RecoverTo can recover, and returns once the WAL
// until then is archived. Later commits are not in the archive until the next call.
func (c *Cluster) RestorePoint(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // a failure has no consequences
	var file string
	if _, err := conn.Exec(ctx, "SELECT pg_create_restore_point($1)", name); err != nil {
		return fmt.Errorf("name a moment: %w", err)
	}
	if err := conn.QueryRow(ctx, "SELECT pg_walfile_name(pg_switch_wal())").Scan(&file); err != nil {
		return fmt.Errorf("end the file of the WAL: %w", err)
	}
	retry := time.NewTicker(archivePoll)
	defer retry.Stop()
	for {
		if _, err := os.Stat(filepath.Join(c.archive(), file)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s is archived: %w\n%s", file, ctx.Err(), tail(c.log()))
		}
	}
}

// RecoverTo starts a cluster that is the backup with the archived WAL up to a target, such as
// "recovery_target_name=NAME" or "recovery_target_lsn=0/3000000"; empty means the end of the archive. It returns
// once the cluster takes writes. The setting stays, as it does for an operator who does not remove it. The cluster of the
// backup may have been killed, but not stopped with Stop. The caller ends the new one with Stop.
func (b BaseBackup) RecoverTo(ctx context.Context, target string) (*Cluster, error) {
	settings := []string{fmt.Sprintf("'restore_command=cp %s/%%f %%p'", b.of.archive())}
	if target != "" {
		settings = append(settings, "'"+target+"'", "recovery_target_action=promote")
	}
	c, err := newCluster(ctx, Options{Fsync: b.of.fsync, Settings: settings})
	if err != nil {
		return nil, err
	}
	if err := c.recoverFrom(ctx, b); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// recoverFrom makes the data directory a copy of the backup, and starts the server, which reads the archive.
func (c *Cluster) recoverFrom(ctx context.Context, b BaseBackup) error {
	const script = `cp -R "$1" "$2" && chmod 700 "$2" && touch "$2/recovery.signal"`
	if out, err := c.server.system("sh", "-c", script, "copy", b.dir, c.data()).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the backup to %s: %w\n%s", c.dir, err, out)
	}
	if err := c.launchOnFreePort(ctx); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the recovered cluster: %w\n%s", err, tail(c.log()))
	}
	defer conn.Close(ctx) //nolint:errcheck // a failure has no consequences
	for reading := true; reading; {
		if err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery() FROM pg_sleep(0.01)").Scan(&reading); err != nil {
			return fmt.Errorf("wait for the end of the recovery: %w\n%s", err, tail(c.log()))
		}
	}
	return nil
}
