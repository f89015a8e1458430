package report_test

import (
	"context"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestConfirmedWhileAddedUp adds up a period while a transaction that confirmed a payment in it is not committed.
func TestConfirmedWhileAddedUp(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	b := newBooks(t, s, begin.Add(time.Hour))
	b.pay(begin, "", "base", 5)
	b.attribute(0, "acme")
	p := b.pending(begin.Add(time.Minute), "acme", "base", 7)
	added := make(chan error, 1)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if _, err := ledger.LockCursor(ctx, tx, "base"); err != nil {
			return err
		}
		if err := ledger.ConfirmThrough(ctx, tx, "base", p.BlockNumber, p.ConfirmedAt); err != nil {
			return err
		}
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		go func() {
			_, err := b.rollups().Advance(ctx)
			added <- err
		}()
		awaitWaiting(t, dbtest.SQL(t, url), added)
		return nil
	})
	expect.OK(t, <-added)
	b.want(report.Request{MerchantID: "acme", From: begin, To: b.now, Location: time.UTC})
}

// TestCheckWaitsForNoChain checks sums while another transaction holds a chain's cursor for long.
func TestCheckWaitsForNoChain(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	b := newBooks(t, dbtest.Open(t, url), begin.Add(time.Hour))
	b.pay(begin, "acme", "base", 5)
	rollups := b.rollups()
	b.advance(rollups)
	checked := make(chan error, 1)
	b.write(func(ctx context.Context, tx *db.Tx) error {
		if _, err := ledger.LockCursor(ctx, tx, "base"); err != nil {
			return err
		}
		go func() {
			_, err := rollups.Advance(ctx)
			checked <- err
		}()
		awaitWaiting(t, dbtest.SQL(t, url), checked)
		if len(checked) == 0 {
			t.Error("the check waits for the chain")
		}
		return nil
	})
	expect.OK(t, <-checked)
}

// awaitWaiting waits until a transaction of the database waits for a row, or done has a result, which it leaves there.
func awaitWaiting(t *testing.T, conn *dbtest.DB, done <-chan error) {
	t.Helper()
	for waiting := 0; waiting == 0 && len(done) == 0; {
		err := conn.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		expect.OK(t, err)
	}
}
