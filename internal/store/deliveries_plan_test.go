package store

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// LeaseInTransaction lets tests lease and not commit yet.
func (tx *Tx) LeaseInTransaction(ctx context.Context, r LeaseRequest) error {
	_, err := tx.leaseDeliveries(ctx, r)
	return err
}

// Leasing reads indexes alone: a merchant's queue of any length costs the
// others nothing.
func TestLeaseDeliveriesUsesIndexes(t *testing.T) {
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "quittance.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	const inFlight, byID = "INDEX deliveries_in_flight (merchant_id=? AND lease_ms>?)", "sqlite_autoindex_deliveries_1 (id=?)"
	expected := map[Lane][]string{
		FirstLane: {"INDEX deliveries_first (merchant_id", inFlight, byID},
		RetryLane: {"INDEX deliveries_retry (merchant_id", inFlight, byID},
	}
	for _, lane := range []Lane{FirstLane, RetryLane} {
		r := LeaseRequest{Lane: lane}
		for query, parameters := range map[string]int{r.turnsBehind(): 4, r.turnsUpTo(): 4, r.leaseText(3): 8} {
			plan, err := collect(t.Context(), &s.queries, func(row scanner) (detail string, err error) {
				var ignored int
				err = row.Scan(&ignored, &ignored, &ignored, &detail)
				return detail, err
			}, "EXPLAIN QUERY PLAN "+query, make([]any, parameters)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range plan {
				if !strings.Contains(step, "deliveries") && !strings.HasPrefix(step, "SCAN merchants") {
					continue
				}
				if !strings.HasPrefix(step, "SEARCH") || !slices.ContainsFunc(expected[lane], func(index string) bool {
					return strings.Contains(step, index)
				}) {
					t.Errorf("%s\nlooks up rows otherwise than by %v: %s", query, expected[lane], step)
				}
			}
			if text := strings.Join(plan, "\n"); strings.Contains(text, "TEMP B-TREE") {
				t.Errorf("%s\nsorts: %s", query, text)
			}
		}
	}
}
