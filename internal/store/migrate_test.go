package store_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestNewerSchema checks that a schema of a newer program is refused with both versions,
// and that an open store keeps working.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	for name, url := range storetest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := url(t)
			s := storetest.Open(t, at)
			must(t, s.SetVersion(t.Context(), 9999))
			insert(t, s, sample("inv_1", "m")) // the open store works
			_, err := store.Open(t.Context(), at)
			for _, want := range []string{"9999", "newer quittance", "up to"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("it opens with %v; want an error that says %q", err, want)
				}
			}
		})
	}
}
