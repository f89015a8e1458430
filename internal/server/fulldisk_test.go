package server

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// smallDisk is a PostgreSQL server with a disk that can be filled.
type smallDisk struct {
	t    *testing.T
	url  string
	fill string // a file on its separate disk; empty without one
}

// newSmallDisk starts a server on a disk in memory. If the system permits no mount, the server refuses
// temporary files instead.
func newSmallDisk(t *testing.T) smallDisk {
	t.Helper()
	dir, err := os.MkdirTemp("", "quittance-disk-") //nolint:usetesting // the user of the server must be able to enter it
	expect.OK(t, err)
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	d := smallDisk{t: t}
	opts := dbtest.Options{Settings: []string{"min_wal_size=32MB", "max_wal_size=64MB"}}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=200m,mode=1777"); err == nil {
		opts.Dir, d.fill = dir, filepath.Join(dir, "fill")
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	} else if !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
	cluster, err := dbtest.StartCluster(t.Context(), opts)
	expect.OK(t, err)
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	d.url = cluster.DSN("postgres")
	return d
}

// full fills the disk, or makes room.
func (d smallDisk) full(is bool) {
	d.t.Helper()
	var err error
	switch {
	case d.fill == "":
		d.limitFiles(map[bool]string{true: "0", false: "-1"}[is])
	case is:
		var file *os.File
		if file, err = os.Create(d.fill); err != nil {
			break
		}
		for chunk := make([]byte, 1<<16); err == nil && len(chunk) > 0; {
			if _, err = file.Write(chunk); errors.Is(err, syscall.ENOSPC) {
				chunk, err = chunk[:len(chunk)/2], nil
			}
		}
		err = errors.Join(err, file.Close())
	default:
		err = os.Remove(d.fill)
	}
	expect.OK(d.t, err)
}

func (d smallDisk) limitFiles(to string) {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.url)
	expect.OK(d.t, err)
	for _, statement := range []string{"ALTER SYSTEM SET temp_file_limit = " + to, "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(d.t.Context(), statement); err != nil {
			d.t.Fatal(err)
		}
	}
	expect.OK(d.t, conn.Close(d.t.Context()))
}

// TestExtraFullDiskOfPostgres fills PostgreSQL's disk. The next reading of the clock, after 5 seconds at most, shows it
// to load balancers and to the alert.
func TestExtraFullDiskOfPostgres(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	c, _ := scripted(t, "house", 7)
	base := startServer(t, Config{Database: disk.url, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}}).url
	await(t, base, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	disk.full(true)
	await(t, base, "a full disk", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && h.Database != databaseOK
	})
	metricsOf(t, base, "quittance_database_up 0", "quittance_ready 0")
	disk.full(false)
	await(t, base, "room", func(status int, h health) bool { return status == http.StatusOK && h.Database == databaseOK })
	metricsOf(t, base, "quittance_database_up 1")
}
