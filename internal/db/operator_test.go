package db_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/web/api"
)

// TestSchemaVersions compares the migrations of a new database with the program's.
func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		found, known, err := s.SchemaVersions(t.Context())
		if err != nil || found != known || found < 1 {
			t.Errorf("the database has %d, the program %d, %v", found, known, err)
		}
		if p := s.Product(); p != "sqlite" && p != "postgresql" {
			t.Errorf("the database is %q", p)
		}
	})
}

// TestOperatorReads counts a merchant's objects, and adds up the costs of transactions by day.
func TestOperatorReads(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx, now := t.Context(), time.Unix(1_764_000_000, 0)
		for i, expires := range []time.Time{{}, now, now.Add(time.Second)} {
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				return access.InsertKey(ctx, tx, access.Record{
					ID: "key_" + string(rune('a'+i)), Name: "n", Hint: "qk_live_abc", Hash: [access.HashSize]byte{byte(i)}, MerchantID: "m", Scopes: access.Read, CreatedAt: now.Add(-time.Hour), ExpiresAt: expires,
				})
			})
		}
		got, err := api.CountMerchant(ctx, s, "m", now)
		rowtest.Must(t, err)
		if want := (api.MerchantCounts{ActiveKeys: 2}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// TestDailyCosts adds up the costs of transactions by day.
func TestDailyCosts(t *testing.T) {
	t.Parallel()
	rowtest.EachWriter(t, 3, func(t *testing.T, s *db.DB, _ *sql.DB) {
		ctx, day := t.Context(), time.Unix(1_763_942_400, 0).UTC()
		for i, gwei := range []int64{5, 7, 100} {
			id := fmt.Sprint("ctx_", i)
			rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx(id, uint64(i)), []string{fmt.Sprint("int_", i)}))
			rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, id, txmgr.TxMined, &ledger.TxCost{Gwei: gwei, At: day.Add(time.Duration(i-1) * 13 * time.Hour)}))
		}
		costs, err := txmgr.DailyCosts(ctx, s, "base", day.AddDate(0, 0, -1))
		rowtest.Must(t, err)
		want := []txmgr.DailyCost{{Day: day, Gwei: 107}, {Day: day.AddDate(0, 0, -1), Gwei: 5}}
		expect.NoDiff(t, cmp.Diff(want, costs), "costs by day")
		if costs, err = txmgr.DailyCosts(ctx, s, "moon", day); err != nil || len(costs) != 0 {
			t.Errorf("of another chain: %+v, %v", costs, err)
		}
	})
}
