package db

import (
	"context"
	"fmt"
	"strconv"
)

// minGrowth is how many rows of a table must have changed before UpdateStatistics analyzes it again.
const minGrowth = 500

// UpdateStatistics makes PostgreSQL's planner analyze the tables in which more rows were written since
// the last analysis than they had then, and returns their names. SQLite needs no statistics.
//
// While a table is nearly empty every index costs the planner the same, and connections keep the plans
// that it makes then: they read all rows by an index that fits badly. They plan anew after ANALYZE.
// Autovacuum runs it as well, but up to a minute later; until then a new service would create invoices
// at a third of its rate.
func (s *DB) UpdateStatistics(ctx context.Context) ([]string, error) {
	if !s.OnPostgres() {
		return nil, nil
	}
	grown, err := QueryAll(ctx, s, ScanID, `SELECT stat.relid::regclass::text FROM pg_stat_user_tables AS stat JOIN pg_class AS class ON class.oid = stat.relid
		WHERE stat.schemaname = current_schema() AND stat.n_mod_since_analyze >= greatest(`+strconv.Itoa(minGrowth)+`, class.reltuples)
		AND pg_has_role(class.relowner, 'USAGE') ORDER BY 1`)
	if err != nil {
		return nil, fmt.Errorf("find tables that have grown: %w", err)
	}
	for _, table := range grown {
		// Another replica may be analyzing it now.
		if _, err := s.Exec(ctx, "ANALYZE (SKIP_LOCKED) "+table); err != nil {
			return nil, fmt.Errorf("count the rows of table %s: %w", table, err)
		}
	}
	return grown, nil
}
