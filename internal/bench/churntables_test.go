package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vacuumLog is an excerpt of a log of PostgreSQL 15.
const vacuumLog = `2026-11-23 16:50:00.000 UTC [1] LOG:  automatic vacuum of table "churn_1.public.leased": index scans: 1
	tuples: 900 removed, 12 remain, 0 are dead but not yet removable
	WAL usage: 210 records, 3 full page images, 31042 bytes
	system usage: CPU: user: 0.01 s, system: 0.02 s, elapsed: 0.20 s
2026-11-23 16:50:00.100 UTC [1] LOG:  automatic analyze of table "churn_1.public.leased"
	system usage: CPU: user: 9.00 s, system: 9.00 s, elapsed: 9.00 s
2026-11-23 16:50:01.000 UTC [1] LOG:  automatic vacuum of table "churn_1.public.attempts_1000000": index scans: 0
	system usage: CPU: user: 0.10 s, system: 0.00 s, elapsed: 1.50 s
2026-11-23 16:50:02.000 UTC [1] LOG:  automatic aggressive vacuum of table "churn_1.public.attempts_default": index scans: 0
	WAL usage: 1 records, 0 full page images, 58 bytes
	system usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.50 s
2026-11-23 16:50:02.000 UTC [1] LOG:  automatic vacuum of table "churn_1.pg_catalog.pg_class": index scans: 0
`

func TestParseVacuums(t *testing.T) {
	t.Parallel()
	want := map[string]vacuums{
		"leased":   {1, 200 * time.Millisecond, 30 * time.Millisecond, 31042},
		"attempts": {2, 2 * time.Second, 100 * time.Millisecond, 58},
	}
	if diff := cmp.Diff(want, parseVacuums(vacuumLog), cmp.AllowUnexported(vacuums{})); diff != "" {
		t.Error(diff)
	}
}
