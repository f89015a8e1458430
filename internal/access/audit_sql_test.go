package access_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// appendAudit appends n entries, one in each transaction.
func appendAudit(t *testing.T, s *db.DB, n int, merchantID string) {
	t.Helper()
	for i := range n {
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return access.AppendAudit(ctx, tx, rowtest.AuditEntry(i+1, merchantID))
		})
	}
}

func TestAuditRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		if head, err := access.VerifyAudit(t.Context(), s); err != nil || head != (access.Head{}) {
			t.Errorf("an empty log: %s, %v", head, err)
		}
		var want []access.Entry
		var head access.Head
		other := rowtest.AuditEntry(2, "")
		other.Origin = access.Origin{Actor: access.ActorConfig}
		other.Action, other.Object, other.Before, other.After = access.ActionRegistryAdd, "", "", ""
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			want, head = nil, access.Head{}
			for _, e := range []access.Entry{rowtest.AuditEntry(1, "m"), other, rowtest.AuditEntry(3, "n")} {
				e = e.Following(head)
				want, head = append([]access.Entry{e}, want...), access.Head{Seq: e.Seq, Hash: e.Hash}
			}
			return access.AppendAudit(ctx, tx, rowtest.AuditEntry(1, "m"), other, rowtest.AuditEntry(3, "n"))
		})
		for _, c := range []struct {
			filter access.AuditFilter
			want   []access.Entry
		}{
			{access.AuditFilter{Limit: 9}, want},
			{access.AuditFilter{Limit: 2}, want[:2]},
			{access.AuditFilter{Limit: 9, Before: 3}, want[1:]},
			{access.AuditFilter{Limit: 9, MerchantID: "m"}, want[2:]},
			{access.AuditFilter{Limit: 9, MerchantID: "m", Before: 1}, nil},
			{access.AuditFilter{Limit: 9, Action: access.ActionRegistryAdd}, want[1:2]},
			{access.AuditFilter{Limit: 9, MerchantID: "n", Action: access.ActionRegistryAdd}, nil},
			{access.AuditFilter{Limit: 9, Since: time.Unix(1002, 0)}, want[:2]},
			{access.AuditFilter{Limit: 9, Since: time.Unix(1002, 0), Before: 3, Action: access.ActionRegistryAdd}, want[1:2]},
		} {
			got, err := access.NewReader(s).AuditEntries(t.Context(), c.filter)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%+v: %v (-want +got):\n%s", c.filter, err, diff)
			}
		}
		if got, err := access.VerifyAudit(t.Context(), s, head, access.Head{Seq: 1, Hash: want[2].Hash}); err != nil || got != head {
			t.Errorf("verified up to %s, %v; want %s", got, err, head)
		}
	})
}

// TestAuditRollsBack checks that the entry of a failed transaction leaves no gap in the numbers.
func TestAuditRollsBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		failure := errors.New("too late")
		err := s.Update(t.Context(), func(tx *db.Tx) error {
			return errors.Join(access.AppendAudit(t.Context(), tx, rowtest.AuditEntry(1, "m")), failure)
		})
		if !errors.Is(err, failure) {
			t.Fatal(err)
		}
		appendAudit(t, s, 1, "m")
		if head, err := access.VerifyAudit(t.Context(), s); err != nil || head.Seq != 1 {
			t.Errorf("verified up to %s, %v", head, err)
		}
	})
}

// TestConcurrentAudit appends entries from several goroutines, more than are read at a time.
func TestConcurrentAudit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const writers, each = 8, 70
		errs := make([]error, writers)
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for n := range each {
					errs[w] = errors.Join(errs[w], s.Update(t.Context(), func(tx *db.Tx) error {
						return access.AppendAudit(t.Context(), tx, rowtest.AuditEntry(n, fmt.Sprint("m", w)))
					}))
				}
			})
		}
		group.Wait()
		rowtest.Must(t, errors.Join(errs...))
		if head, err := access.VerifyAudit(t.Context(), s); err != nil || head.Seq != writers*each {
			t.Errorf("verified up to %s, %v; want %d entries", head, err, writers*each)
		}
	})
}

// TestAuditIsAppendOnly tries to change and remove entries.
func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			s := dbtest.Open(t, url)
			appendAudit(t, s, 3, "m")
			statements := []string{
				"UPDATE audit_entries SET after = '' WHERE seq = 1",
				"UPDATE audit_entries SET seq = 9 WHERE seq = 3",
				"DELETE FROM audit_entries WHERE seq = 3",
				"DELETE FROM audit_entries",
				"UPDATE audit_head SET seq = 2",
				"UPDATE audit_head SET hash = '" + strings.Repeat("0", 64) + "'",
				"UPDATE audit_head SET id = 2, seq = 4",
				"DELETE FROM audit_head",
				"INSERT INTO audit_head VALUES (2, 0, '" + strings.Repeat("0", 64) + "')",
				"INSERT INTO audit_entries SELECT 0, at, actor, client, request_id, merchant_id, action, object, before, after, hash, prev_hash FROM audit_entries WHERE seq = 1",
				"INSERT INTO audit_entries SELECT 4, at, '', client, request_id, merchant_id, action, object, before, after, hash, prev_hash FROM audit_entries WHERE seq = 1",
				"INSERT INTO audit_entries SELECT 4, at, actor, client, request_id, merchant_id, action, object, before, after, prev_hash, hash FROM audit_entries WHERE seq = 1",
			}
			if name == "sqlite" {
				const columns = "at, actor, client, request_id, merchant_id, action, object, before, after, prev_hash"
				statements = append(statements, // SQLite runs no delete triggers for replaced rows
					"INSERT OR REPLACE INTO audit_entries SELECT 3, "+columns+", hash FROM audit_entries WHERE seq = 1",
					"INSERT OR REPLACE INTO audit_entries SELECT 3, "+columns+", prev_hash FROM audit_entries WHERE seq = 1",
					"INSERT OR REPLACE INTO audit_entries SELECT 9, "+columns+", hash FROM audit_entries WHERE seq = 3",
					"INSERT OR REPLACE INTO audit_entries (rowid, seq, "+columns+", hash) SELECT rowid, 9, "+columns+", prev_hash FROM audit_entries WHERE seq = 3",
					"INSERT OR REPLACE INTO audit_head SELECT 1, seq, hash FROM audit_entries WHERE seq = 2")
			} else {
				statements = append(statements, "TRUNCATE audit_entries", "TRUNCATE audit_head")
			}
			conn := dbtest.SQL(t, url)
			for _, statement := range statements {
				if _, err := conn.ExecContext(t.Context(), statement); err == nil {
					t.Errorf("nothing refuses %s", statement)
				}
			}
			if head, err := access.VerifyAudit(t.Context(), s); err != nil || head.Seq != 3 {
				t.Errorf("verified up to %s, %v", head, err)
			}
		})
	}
}

// dropAuditTriggers removes the triggers, as a user who may change the schema can.
func dropAuditTriggers(t *testing.T, conn *sql.DB, name string) {
	t.Helper()
	statements := []string{"DROP FUNCTION refuse_audit_change CASCADE"}
	if name == "sqlite" {
		statements = []string{"DROP TRIGGER audit_entries_update", "DROP TRIGGER audit_entries_delete", "DROP TRIGGER audit_entries_insert",
			"DROP TRIGGER audit_head_update", "DROP TRIGGER audit_head_delete", "DROP TRIGGER audit_head_insert"}
	}
	for _, statement := range statements {
		_, err := conn.ExecContext(t.Context(), statement)
		rowtest.Must(t, err)
	}
}

// TestVerifyAuditBelowTheFirst adds entries with numbers below 1. A reader of the log from its first
// entry does not see them.
func TestVerifyAuditBelowTheFirst(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.MigratedDatabases() {
		for _, seq := range []int64{0, -1, math.MinInt64 + 1} {
			t.Run(fmt.Sprint(name, seq), func(t *testing.T) {
				t.Parallel()
				url := fresh(t)
				s := dbtest.Open(t, url)
				appendAudit(t, s, 3, "m")
				conn, err := dbtest.SQL(t, url).Conn(t.Context())
				rowtest.Must(t, err)
				allow := "ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_seq_check"
				if name == "sqlite" {
					allow = "PRAGMA ignore_check_constraints = ON"
				}
				for _, statement := range []string{allow, fmt.Sprintf(`INSERT INTO audit_entries SELECT %d, at, actor, client, request_id, merchant_id, action, object,
					before, after, prev_hash, '%s' FROM audit_entries WHERE seq = 1`, seq, strings.Repeat("a", 64))} {
					_, err := conn.ExecContext(t.Context(), statement)
					rowtest.Must(t, err)
				}
				rowtest.Must(t, conn.Close())
				_, err = access.VerifyAudit(t.Context(), s)
				fault := (*access.FaultError)(nil)
				if !errors.As(err, &fault) || fault.Seq != seq || fault.Damage != access.Added {
					t.Errorf("it says %v; want entry %d to be %s", err, seq, access.Added)
				}
			})
		}
	}
}

// TestVerifyAudit changes a log of 5 entries after its triggers were removed.
func TestVerifyAudit(t *testing.T) {
	t.Parallel()
	const rewrite = "rewrite" // compute all hashes again
	cases := map[string]struct {
		statements []string
		seq        int64
		damage     access.Damage
	}{
		"field":          {[]string{"UPDATE audit_entries SET after = '{}' WHERE seq = 3"}, 3, access.Changed},
		"time":           {[]string{"UPDATE audit_entries SET at = at + 1 WHERE seq = 1"}, 1, access.Changed},
		"merchant":       {[]string{"UPDATE audit_entries SET merchant_id = NULL WHERE seq = 2"}, 2, access.Changed},
		"hash":           {[]string{"UPDATE audit_entries SET hash = '" + strings.Repeat("a", 64) + "' WHERE seq = 4"}, 4, access.Changed},
		"no hash":        {[]string{"UPDATE audit_entries SET hash = '" + strings.Repeat("x", 64) + "' WHERE seq = 4"}, 4, access.Changed},
		"previous hash":  {[]string{"UPDATE audit_entries SET prev_hash = hash WHERE seq = 4"}, 4, access.Changed},
		"one of all":     {[]string{"UPDATE audit_entries SET actor = 'key_2'"}, 1, access.Changed},
		"shifted text":   {[]string{"UPDATE audit_entries SET actor = actor || client, client = '' WHERE seq = 3"}, 3, access.Changed},
		"first removed":  {[]string{"DELETE FROM audit_entries WHERE seq = 1"}, 1, access.Removed},
		"middle removed": {[]string{"DELETE FROM audit_entries WHERE seq IN (3, 4)"}, 3, access.Removed},
		"gap closed":     {[]string{"DELETE FROM audit_entries WHERE seq = 3", "UPDATE audit_entries SET seq = 3 WHERE seq = 4", "UPDATE audit_entries SET seq = 4 WHERE seq = 5"}, 3, access.Reordered},
		"swapped":        {[]string{"UPDATE audit_entries SET seq = 9 WHERE seq = 2", "UPDATE audit_entries SET seq = 2 WHERE seq = 4", "UPDATE audit_entries SET seq = 4 WHERE seq = 9"}, 2, access.Reordered},
		"last removed":   {[]string{"DELETE FROM audit_entries WHERE seq = 5"}, 5, access.Truncated},
		"all removed":    {[]string{"DELETE FROM audit_entries"}, 1, access.Truncated},
		"head moved":     {[]string{"UPDATE audit_head SET seq = 4, hash = (SELECT hash FROM audit_entries WHERE seq = 4)"}, 5, access.Added},
		"head's hash":    {[]string{"UPDATE audit_head SET hash = '" + strings.Repeat("a", 64) + "'"}, 5, access.Rewritten},
		"tail removed with the head": {[]string{"DELETE FROM audit_entries WHERE seq > 3",
			"UPDATE audit_head SET seq = 3, hash = (SELECT hash FROM audit_entries WHERE seq = 3)"}, 4, access.Truncated},
		"one hash computed again": {[]string{"UPDATE audit_entries SET object = 'x' WHERE seq = 2", rewrite + " 2"}, 2, access.Changed},
		"all computed again":      {[]string{"UPDATE audit_entries SET object = 'x' WHERE seq = 2", rewrite}, 5, access.Rewritten},
	}
	for name, fresh := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, c := range cases {
				t.Run(what, func(t *testing.T) {
					url := fresh(t)
					s := dbtest.Open(t, url)
					appendAudit(t, s, 5, "m")
					head, err := access.VerifyAudit(t.Context(), s)
					rowtest.Must(t, err)
					conn := dbtest.SQL(t, url)
					dropAuditTriggers(t, conn, name)
					for _, statement := range c.statements {
						if rest, ok := strings.CutPrefix(statement, rewrite); ok {
							rehash(t, s, conn, strings.TrimSpace(rest) != "")
							continue
						}
						_, err := conn.ExecContext(t.Context(), statement)
						rowtest.Must(t, err)
					}
					_, err = access.VerifyAudit(t.Context(), s, head)
					fault := (*access.FaultError)(nil)
					if !errors.As(err, &fault) || fault.Seq != c.seq || fault.Damage != c.damage {
						t.Errorf("it says %v; want entry %d to be %s", err, c.seq, c.damage)
					}
				})
			}
		})
	}
}

// rehash computes hashes again: the hash of entry 2, or all of them and the head.
func rehash(t *testing.T, s *db.DB, conn *sql.DB, second bool) {
	t.Helper()
	entries, err := access.NewReader(s).AuditEntries(t.Context(), access.AuditFilter{Limit: 9})
	rowtest.Must(t, err)
	var head access.Head
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i].Following(head)
		head = access.Head{Seq: e.Seq, Hash: e.Hash}
		if second && e.Seq != 2 {
			continue
		}
		_, err := conn.ExecContext(t.Context(), fmt.Sprintf("UPDATE audit_entries SET prev_hash = '%s', hash = '%s' WHERE seq = %d", e.Prev, e.Hash, e.Seq))
		rowtest.Must(t, err)
	}
	if !second {
		_, err := conn.ExecContext(t.Context(), fmt.Sprintf("UPDATE audit_head SET hash = '%s'", head.Hash))
		rowtest.Must(t, err)
	}
}
