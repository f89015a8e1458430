package server

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestAdoptsAgain: a service completes what replicas of an older version wrote when it starts and a day later, since
// they may have run for longer than it took to start it, and not in between.
func TestAdoptsAgain(t *testing.T) {
	t.Parallel()
	url := storetest.Migrated(t)
	now := time.Unix(1_800_000_000, 0)
	db := storetest.Open(t, url)
	clock := func() time.Time { return now }
	s := &Server{cfg: Config{Now: clock, Logger: slog.New(slog.DiscardHandler)}, store: db, settle: settle.New(settle.Config{Store: db, Now: clock})}
	first := now
	for _, step := range []struct {
		after, last time.Duration // since the start, when rows were completed last
	}{
		{0, 0}, {store.AdoptionPeriod - time.Second, 0}, {store.AdoptionPeriod, store.AdoptionPeriod}, {2 * store.AdoptionPeriod, store.AdoptionPeriod},
	} {
		now = first.Add(step.after)
		s.adopt(t.Context())
		var last int64
		if err := storetest.SQL(t, url).QueryRowContext(t.Context(), "SELECT last_at FROM adoptions").Scan(&last); err != nil {
			t.Fatal(err)
		}
		if want := first.Add(step.last).Unix(); last != want {
			t.Errorf("%v after the start, rows were completed last at %d, want %d", step.after, last, want)
		}
	}
}
