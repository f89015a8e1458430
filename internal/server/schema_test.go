package server

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestServiceLeavesTheSchema starts a service on a new database and stops it. The database then has the schema of
// internal/db/schema and no other part.
func TestServiceLeavesTheSchema(t *testing.T) {
	t.Parallel()
	for name, empty := range dbtest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reference := dbtest.MigratedDatabases()[name](t)
			dbtest.Open(t, reference)
			database := empty(t)
			c, _, _ := scriptedChain(t, "house", 7)
			s := startServer(t, Config{Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
			await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
			s.end(t)
			if diff := cmp.Diff(dbtest.Schema(t, reference), dbtest.Schema(t, database)); diff != "" {
				t.Errorf("the schema before (-) and after a service ran (+):\n%s", diff)
			}
		})
	}
}
