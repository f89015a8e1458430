package db_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestUsePublicHost changes the public host again and again, also back to one that the service had.
func TestUsePublicHost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		use := func(host string, at int64) []string {
			t.Helper()
			former, err := s.UsePublicHost(t.Context(), host, time.Unix(at, 0))
			expect.OK(t, err)
			return former
		}
		for i, step := range []struct {
			host string
			want []string
		}{{"a.example", nil}, {"a.example", nil}, {"b.example", []string{"a.example"}}, {"c.example", []string{"b.example", "a.example"}}, {"a.example", []string{"c.example", "b.example"}}} {
			if got := use(step.host, int64(i)); !slices.Equal(got, step.want) {
				t.Errorf("step %d: former hosts are %q, want %q", i, got, step.want)
			}
		}
		for i := range db.MaxFormerHosts {
			use(fmt.Sprintf("host%d.example", i), int64(100+i))
		}
		if got := use("now.example", 1000); len(got) != db.MaxFormerHosts || slices.Contains(got, "a.example") {
			t.Errorf("%d former hosts are known: %q", len(got), got)
		}
	})
}
