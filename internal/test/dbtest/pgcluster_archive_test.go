package dbtest

import "testing"

// TestExtraRecoverTo recovers a cluster to points in time, after it was killed.
func TestExtraRecoverTo(t *testing.T) {
	t.Parallel()
	c, err := StartCluster(t.Context(), Options{Archive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	conn := connect(t, c.DSN("postgres"))
	run(t, conn, `CREATE TABLE kept (n int)`)
	backup, err := c.BaseBackup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, conn, `INSERT INTO kept VALUES (1)`)
	position := query[string](t, conn, `SELECT pg_current_wal_insert_lsn()::text`)
	run(t, conn, `INSERT INTO kept VALUES (2)`)
	for _, name := range []string{"two", "three"} {
		if err := c.RestorePoint(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		run(t, conn, `INSERT INTO kept VALUES (3)`)
	}
	if err := c.KillNine(); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]int{ // "" is the end of the archive
		"recovery_target_lsn=" + position: 1, "recovery_target_name=two": 2, "recovery_target_name=three": 3, "": 3,
	} {
		t.Run(target, func(t *testing.T) {
			is, err := backup.RecoverTo(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := is.Stop(); err != nil {
					t.Error(err)
				}
			})
			conn := connect(t, is.DSN("postgres"))
			if n := query[int](t, conn, `SELECT count(*) FROM kept`); n != want {
				t.Errorf("%d rows, want %d", n, want)
			}
			run(t, conn, `INSERT INTO kept VALUES (4)`)
		})
	}
}
