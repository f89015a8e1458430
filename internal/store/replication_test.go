package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestUnreplicatedCommitStaysInvisible gives up on a commit that waits for a synchronous
// standby. What it wrote must not be seen before a standby has it, since a failover
// would lose it.
func TestUnreplicatedCommitStaysInvisible(t *testing.T) {
	t.Parallel()
	cluster, err := storetest.StartCluster(t.Context(), storetest.Options{Fsync: true})
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Stop()) })
	s := storetest.Open(t, cluster.DSN("postgres"))
	insert(t, s, sample("inv_0", "m"))
	admin, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
	must(t, err)
	defer admin.Close(context.Background()) //nolint:errcheck // nothing depends on it
	standbys := func(names string) {
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
			_, err := admin.Exec(t.Context(), statement)
			must(t, err)
		}
	}
	waiting := func() (n int) {
		must(t, admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.02) WHERE wait_event = 'SyncRep'").Scan(&n))
		return n
	}
	standbys("nobody")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Update(ctx, func(tx *store.Tx) error { return add(t.Context(), tx, "inv_1") }) }()
	for n := 0; n == 0 && len(ended) == 0; {
		n = waiting()
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the transaction is reported as committed")
	}
	for begun := time.Now(); time.Since(begun) < time.Second; {
		if has(t, s, "inv_1") || waiting() == 0 {
			t.Fatal("the invoice is visible, and no standby has it")
		}
	}
	standbys("")
	for visible := false; !visible; {
		visible = has(t, s, "inv_1")
	}
}
