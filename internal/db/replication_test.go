package db_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestExtraUnreplicatedCommitStaysInvisible cancels a commit that waits for a synchronous standby. Its rows must be
// invisible until a standby has them, because a failover would lose them.
func TestExtraUnreplicatedCommitStaysInvisible(t *testing.T) {
	t.Parallel()
	cluster, err := dbtest.StartCluster(t.Context(), dbtest.Options{Fsync: true})
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, cluster.Stop()) })
	s := dbtest.Open(t, cluster.DSN("postgres"))
	rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
	admin, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
	rowtest.Must(t, err)
	defer admin.Close(context.Background()) //nolint:errcheck // a failure has no consequences
	standbys := func(names string) {
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
			_, err := admin.Exec(t.Context(), statement)
			rowtest.Must(t, err)
		}
	}
	waiting := func() (n int) {
		rowtest.Must(t, admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.02) WHERE wait_event = 'SyncRep'").Scan(&n))
		return n
	}
	standbys("nobody")
	// Until the server has loaded its configuration, commits do not wait for a standby.
	id := "inv_0"
	for waited, n := false, 1; !waited; n++ {
		id = fmt.Sprintf("inv_%d", n)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Update(ctx, func(tx *db.Tx) error { return add(t.Context(), tx, id) }) }()
		for !waited && len(ended) == 0 {
			waited = waiting() > 0
		}
		cancel()
		switch err := <-ended; {
		case waited && err == nil:
			t.Error("the transaction is reported as committed")
		case !waited:
			rowtest.Must(t, err)
		}
	}
	for begun := time.Now(); time.Since(begun) < time.Second; {
		if has(t, s, id) || waiting() == 0 {
			t.Fatal("the invoice is visible, and no standby has it")
		}
	}
	standbys("")
	for visible := false; !visible; {
		visible = has(t, s, id)
	}
}
