package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// recordOperator reads what the operator sees.
func recordOperator(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	*what = "operator: counts"
	_, err := read.CountMerchant(t.Context(), "m", at(10))
	must(t, err)
	*what = "operator: costs"
	_, err = read.DailyCosts(t.Context(), "base", at(10))
	must(t, err)
}

// TestSchemaVersions compares the migrations of a new database with those that the program
// has.
func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		found, known, err := s.SchemaVersions(t.Context())
		if err != nil || found != known || found < 1 {
			t.Errorf("the database has %d, the program %d, %v", found, known, err)
		}
		if p := s.Product(); p != "sqlite" && p != "postgresql" {
			t.Errorf("the database is %q", p)
		}
	})
}

// TestOperatorReads counts what a merchant has, and adds up what transactions cost by day.
func TestOperatorReads(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, now := t.Context(), time.Unix(1_764_000_000, 0)
		for i, expires := range []time.Time{{}, now, now.Add(time.Second)} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.InsertKey(ctx, access.Record{
					ID: "key_" + string(rune('a'+i)), Name: "n", Hint: "qk_live_abc", Hash: [access.HashSize]byte{byte(i)}, MerchantID: "m", Scopes: access.Read, CreatedAt: now.Add(-time.Hour), ExpiresAt: expires,
				})
			})
		}
		got, err := s.CountMerchant(ctx, "m", now)
		must(t, err)
		if want := (store.MerchantCounts{ActiveKeys: 2}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// TestDailyCosts adds up what transactions cost by day.
func TestDailyCosts(t *testing.T) {
	t.Parallel()
	eachWriter(t, 3, func(t *testing.T, s *store.Store, _ *sql.DB) {
		ctx, day := t.Context(), time.Unix(1_763_942_400, 0).UTC()
		for i, gwei := range []int64{5, 7, 100} {
			id := fmt.Sprint("ctx_", i)
			must(t, s.SaveChainTx(ctx, writerLease, chainTx(id, uint64(i)), []string{fmt.Sprint("int_", i)}))
			must(t, s.SetTxStatus(ctx, writerLease, id, store.TxMined, &store.TxCost{Gwei: gwei, At: day.Add(time.Duration(i-1) * 13 * time.Hour)}))
		}
		costs, err := s.DailyCosts(ctx, "base", day.AddDate(0, 0, -1))
		must(t, err)
		want := []store.DailyCost{{Day: day, Gwei: 107}, {Day: day.AddDate(0, 0, -1), Gwei: 5}}
		if diff := cmp.Diff(want, costs); diff != "" {
			t.Errorf("costs by day (-want +got):\n%s", diff)
		}
		if costs, err = s.DailyCosts(ctx, "moon", day); err != nil || len(costs) != 0 {
			t.Errorf("of another chain: %+v, %v", costs, err)
		}
	})
}
