package db_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestNewerSchema checks that a schema of a newer program is refused with both versions,
// and that an open store keeps working.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	for name, url := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := url(t)
			s := dbtest.Open(t, at)
			rowtest.Must(t, s.SetVersion(t.Context(), 9999))
			rowtest.Insert(t, s, rowtest.Sample("inv_1", "m")) // the open store works
			_, err := db.Open(t.Context(), at)
			for _, want := range []string{"9999", "newer quittance", "up to"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("it opens with %v; want an error that says %q", err, want)
				}
			}
		})
	}
}
