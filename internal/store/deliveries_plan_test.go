package store

import (
	"path/filepath"
	"strings"
	"testing"
)

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
				if strings.Contains(step, "deliveries") && !strings.HasPrefix(step, "SEARCH") || strings.HasPrefix(step, "SCAN merchants") {
					t.Errorf("%s\nreads all of a table: %s", query, step)
				}
			}
			if text := strings.Join(plan, "\n"); strings.Contains(text, "TEMP B-TREE") {
				t.Errorf("%s\nsorts: %s", query, text)
			}
		}
	}
}
