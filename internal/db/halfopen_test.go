package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// recoveryLimit is the time within which the store must work after it lost its connections.
const recoveryLimit = 20 * time.Second

// lossy opens a store with connections that can be cut.
func lossy(t *testing.T) (*db.DB, *dbtest.Proxy, string) {
	t.Helper()
	direct := dbtest.MigratedPostgres(t)
	proxy, through, err := dbtest.StartProxy(t.Context(), direct, 0)
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, proxy.Close()) })
	return dbtest.Open(t, through), proxy, direct
}

// awaitLockWaiter waits until a session of the database waits for a lock.
func awaitLockWaiter(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, conn.Close(t.Context())) }()
	for waiting := 0; waiting == 0; {
		rowtest.Must(t, conn.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity, pg_sleep(0.01) WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting))
	}
}

// TestExtraHalfOpen cuts all connections of a pool: idle ones, one in a transaction that holds a lock, and one that
// waits for that lock. The next transaction must succeed in time, without a deadline.
func TestExtraHalfOpen(t *testing.T) {
	t.Parallel()
	for _, how := range []dbtest.Loss{dbtest.Swallowed, dbtest.Dropped} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := lossy(t)
			ctx := context.WithoutCancel(t.Context()) // like a worker's context, without a deadline
			rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error {
				_, err := ledger.InsertChain(ctx, tx, "a", invoice.Header{}, nil)
				return err
			}))
			locked, lost := make(chan struct{}), make(chan struct{})
			held, waited := make(chan error, 1), make(chan error, 1)
			lock := func(s *db.DB, then func()) error {
				return s.Update(ctx, func(tx *db.Tx) error {
					if _, err := ledger.LockCursor(ctx, tx, "a"); err != nil {
						return err
					}
					then()
					return access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: "a", MerchantID: "m"}}, invoice.Unix(1))
				})
			}
			go func() { held <- lock(s, func() { close(locked); <-lost }) }()
			<-locked
			go func() { waited <- lock(s, func() {}) }()
			awaitLockWaiter(t, direct)
			n, err := proxy.Lose(how)
			rowtest.Must(t, err)
			begun := time.Now()
			close(lost)
			if n < 2 {
				t.Errorf("%d connections were lost; the test wants several", n)
			}
			for name, ended := range map[string]chan error{"held the lock": held, "waited for it": waited} {
				if err := <-ended; !db.Unavailable(err) {
					t.Errorf("the transaction that %s ended with %v", name, err)
				}
			}
			if err := lock(s, func() {}); err != nil {
				t.Errorf("the next transaction: %v", err)
			}
			took := time.Since(begun)
			t.Logf("%s: works again after %s", how, took.Round(10*time.Millisecond))
			if took > recoveryLimit {
				t.Errorf("it took %s; want at most %s", took, recoveryLimit)
			}
		})
	}
}
