package access_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// memory is a store of requests.
type memory struct {
	entries []access.LoggedRequest
	batches int
	err     error
	cleaned int64         // rows that CleanRequests can still delete
	takes   time.Duration // how long an insert takes
}

func (m *memory) InsertRequests(ctx context.Context, entries []access.LoggedRequest) error {
	if m.takes > 0 && !clock.Sleep(ctx, m.takes, nil) {
		return ctx.Err()
	}
	if m.err != nil {
		return m.err
	}
	m.batches++
	m.entries = append(m.entries, entries...)
	return nil
}

func (m *memory) TrimRequests(_ context.Context, merchantID string, keep, limit int) error {
	var kept []access.LoggedRequest
	of := m.count(merchantID)
	for _, e := range m.entries {
		if e.MerchantID == merchantID && of > keep && limit > 0 {
			of, limit = of-1, limit-1
			continue
		}
		kept = append(kept, e)
	}
	m.entries = kept
	return m.err
}

func (m *memory) CleanRequests(_ context.Context, _ string, limit int) (int64, error) {
	n := min(m.cleaned, int64(limit))
	m.cleaned -= n
	return n, m.err
}

func (m *memory) count(merchantID string) (n int) {
	for _, e := range m.entries {
		if e.MerchantID == merchantID {
			n++
		}
	}
	return n
}

func newLog(m *memory, dropped *int) *access.Log {
	return access.NewRequestLog(access.RequestLogConfig{
		Store: m, IDs: invoice.NewIDs(time.Now, rand.Reader), Now: time.Now, Dropped: func(n int) { *dropped += n }, Logger: slog.New(slog.DiscardHandler),
	})
}

// run runs a log. stop ends it, and waits until it has ended.
func run(t *testing.T, l *access.Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	return func() { cancel(); <-ended }
}

// TestBounds adds requests of several owners between flushes. Every lost request is counted. A batch
// and the entries per owner are bounded, and the newest are kept.
func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, dropped, added := new(memory), 0, 0
		l := newLog(m, &dropped)
		newest := make(map[string]string)
		for range rapid.IntRange(1, 40).Draw(t, "flushes") {
			for owner := range rapid.IntRange(0, 8).Draw(t, "owners") {
				name := fmt.Sprint("m", owner)
				for range rapid.IntRange(1, 2*access.MaxPending).Draw(t, "requests") {
					added++
					newest[name] = fmt.Sprint("req_", added)
					l.Add(access.LoggedRequest{MerchantID: name, RequestID: newest[name]})
				}
			}
			before := len(m.entries)
			l.Flush(t.Context())
			if n := len(m.entries) - before; n > access.MaxBatch {
				t.Fatalf("a batch has %d requests", n)
			}
		}
		for range 3 { // the number of pending ones fits
			l.Flush(t.Context())
		}
		last := make(map[string]string)
		for _, e := range m.entries {
			last[e.MerchantID] = e.RequestID
		}
		for owner, want := range newest {
			if n := m.count(owner); n > access.MaxKept+access.MaxUncounted {
				t.Fatalf("%d requests of %s are kept", n, owner)
			}
			if last[owner] != want {
				t.Fatalf("the last request of %s is %s, want %s", owner, last[owner], want)
			}
		}
		if len(newest) > 0 && dropped > added {
			t.Fatalf("%d of %d were dropped", dropped, added)
		}
	})
}

// TestTexts adds texts that no database takes, that are too long, and that hold a key.
func TestTexts(t *testing.T) {
	t.Parallel()
	m, dropped := new(memory), 0
	l := newLog(m, &dropped)
	l.Add(access.LoggedRequest{Path: "/api/" + strings.Repeat("é", 300), Detail: "a\x00b\xffc qk_live_0123456789abcdef"})
	l.Flush(t.Context())
	e := m.entries[0]
	if want := "/api/" + strings.Repeat("é", 194) + "…"; e.Path != want || e.Detail != "a�b�c qk_REDACTED" || !strings.HasPrefix(e.ID, access.Prefix) {
		t.Errorf("kept %+v", e)
	}
}

// TestDatabaseFails drops and counts requests that the database does not take.
func TestDatabaseFails(t *testing.T) {
	t.Parallel()
	m, dropped := &memory{err: errors.New("down")}, 0
	l := newLog(m, &dropped)
	l.Add(access.LoggedRequest{MerchantID: "acme"})
	l.Flush(t.Context())
	if m.err = nil; dropped != 1 {
		t.Errorf("%d were dropped", dropped)
	}
	l.Flush(t.Context())
	for i := range access.MaxOwners + 3 {
		l.Add(access.LoggedRequest{MerchantID: fmt.Sprint(i)})
	}
	if dropped != 4 {
		t.Errorf("with too many owners %d were dropped", dropped)
	}
}

// TestWaitingIsBounded fills the queue of each owner while no batch is written, and later adds requests of others.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	m, dropped := new(memory), 0
	l := newLog(m, &dropped)
	for i := range access.MaxOwners * access.MaxPending {
		l.Add(access.LoggedRequest{MerchantID: fmt.Sprint(i / access.MaxPending)})
	}
	if want := access.MaxOwners*access.MaxPending - access.MaxWaiting; dropped != want {
		t.Errorf("%d were dropped; want %d", dropped, want)
	}
	l.Add(access.LoggedRequest{MerchantID: "0", Status: 400}) // replaces an older one
	for range access.MaxWaiting/access.MaxBatch + 1 {
		l.Flush(t.Context())
	}
	refused := 0
	for _, e := range m.entries {
		refused += e.Status / 400
	}
	if len(m.entries) != access.MaxWaiting || refused != 1 {
		t.Errorf("%d were written, %d of them refused; want %d and 1", len(m.entries), refused, access.MaxWaiting)
	}
	dropped = 0
	if l.Add(access.LoggedRequest{MerchantID: "late"}); dropped != 0 {
		t.Error("one was dropped when no other waited")
	}
}

// TestFailuresStay adds one refused request and then more others than may wait.
func TestFailuresStay(t *testing.T) {
	t.Parallel()
	m, dropped := new(memory), 0
	l := newLog(m, &dropped)
	l.Add(access.LoggedRequest{Status: 400})
	for range 2 * access.MaxPending {
		l.Add(access.LoggedRequest{Status: 200})
	}
	l.Flush(t.Context())
	if len(m.entries) != access.MaxPending || m.entries[0].Status != 400 || dropped != access.MaxPending+1 {
		t.Errorf("%d requests were written, the first is %d; %d were dropped", len(m.entries), m.entries[0].Status, dropped)
	}
}

// TestRun writes at an interval, and the rest at the end.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, dropped := new(memory), 0
		l := newLog(m, &dropped)
		stop := run(t, l)
		l.Add(access.LoggedRequest{})
		time.Sleep(access.Interval + time.Millisecond) //nolint:forbidigo // of virtual time
		synctest.Wait()
		if len(m.entries) != 1 {
			t.Errorf("%d requests were written", len(m.entries))
		}
		const more = access.MaxBatch + access.MaxPending
		for n := range more {
			l.Add(access.LoggedRequest{MerchantID: fmt.Sprint("mer_", n%10)})
		}
		stop()
		if len(m.entries) != 1+more || m.batches != 3 {
			t.Errorf("%d requests were written at the end, in %d batches", len(m.entries), m.batches)
		}
		m.cleaned = 1200
		if err := l.Clean(t.Context(), time.Now()); err != nil || m.cleaned != 0 {
			t.Errorf("%d old requests are left, %v", m.cleaned, err)
		}
	})
}

// TestStopDuringWrite ends the log while a batch is written.
func TestStopDuringWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, dropped := new(memory), 0
		m.takes = time.Second
		l := newLog(m, &dropped)
		stop := run(t, l)
		l.Add(access.LoggedRequest{})
		time.Sleep(access.Interval + time.Millisecond) //nolint:forbidigo // of virtual time
		stop()
		if len(m.entries) != 1 || dropped != 0 {
			t.Errorf("%d requests were written and %d dropped", len(m.entries), dropped)
		}
	})
}

// loggedRequest returns the n-th request of a merchant's key.
func loggedRequest(n int, merchantID, keyID string, status int) access.LoggedRequest {
	return access.LoggedRequest{
		ID: fmt.Sprintf("log_%03d", n), MerchantID: merchantID, KeyID: keyID, At: time.UnixMilli(int64(1000 * n)).UTC(), Method: "POST", Route: "/api/invoices",
		Path: "/api/invoices", Status: status, Duration: 12 * time.Millisecond, Client: "192.0.2.1", RequestID: "req_1",
	}
}

// TestRequests stores requests, lists them by their filters, and deletes old ones.
func TestRequests(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx := t.Context()
		yes, no := true, false
		all := []access.LoggedRequest{
			loggedRequest(1, "acme", "key_a", 201), loggedRequest(2, "acme", "key_b", 400), loggedRequest(3, "globex", "key_g", 503), loggedRequest(4, "", "", 304), loggedRequest(5, "acme", "key_a", 500),
		}
		all[0].Idempotent, all[2].Idempotent = &yes, &no
		all[1].Code, all[1].Detail = "invalid_field", "amount must be $1 or “two” ?1."
		rowtest.Must(t, access.NewTables(s).InsertRequests(ctx, all))
		list := func(f access.RequestFilter) []access.LoggedRequest {
			t.Helper()
			f.Limit = 9
			got, err := access.NewReader(s).Requests(ctx, f)
			rowtest.Must(t, err)
			return got
		}
		for _, c := range []struct {
			filter access.RequestFilter
			want   []access.LoggedRequest
		}{
			{access.RequestFilter{}, []access.LoggedRequest{all[4], all[3], all[2], all[1], all[0]}},
			{access.RequestFilter{Before: "log_003"}, []access.LoggedRequest{all[1], all[0]}},
			{access.RequestFilter{MerchantID: "acme"}, []access.LoggedRequest{all[4], all[1], all[0]}},
			{access.RequestFilter{MerchantID: "acme", KeyID: "key_g"}, nil},
			{access.RequestFilter{KeyID: "key_a", Status: access.Failed}, []access.LoggedRequest{all[4]}},
			{access.RequestFilter{Status: access.Failed}, []access.LoggedRequest{all[4], all[2], all[1]}},
			{access.RequestFilter{Status: access.ClientErrors}, []access.LoggedRequest{all[1]}},
			{access.RequestFilter{Status: access.ServerErrors}, []access.LoggedRequest{all[4], all[2]}},
			{access.RequestFilter{Status: access.Succeeded}, []access.LoggedRequest{all[0]}},
		} {
			expect.NoDiff(t, cmp.Diff(c.want, list(c.filter)), "%+v", c.filter)
		}
		rowtest.Must(t, access.NewTables(s).TrimRequests(ctx, "acme", 1, 1))
		expect.NoDiff(t, cmp.Diff([]access.LoggedRequest{all[4], all[3], all[2], all[0]}, list(access.RequestFilter{})), "after one of acme was deleted")
		rowtest.Must(t, access.NewTables(s).TrimRequests(ctx, "acme", 1, 500))
		if n, err := access.NewTables(s).CleanRequests(ctx, "log_005", 1); n != 1 || err != nil {
			t.Errorf("%d were deleted, %v", n, err)
		}
		expect.NoDiff(t, cmp.Diff([]access.LoggedRequest{all[4], all[3]}, list(access.RequestFilter{})), "at the end")
	})
}

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
		if head, err := access.VerifyAudit(t.Context(), s, access.AuditSources{}); err != nil || head != (access.Head{}) {
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
		if got, err := access.VerifyAudit(t.Context(), s, access.AuditSources{Heads: []access.Head{head, {Seq: 1, Hash: want[2].Hash}}}); err != nil || got != head {
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
		if head, err := access.VerifyAudit(t.Context(), s, access.AuditSources{}); err != nil || head.Seq != 1 {
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
		if head, err := access.VerifyAudit(t.Context(), s, access.AuditSources{}); err != nil || head.Seq != writers*each {
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
			if head, err := access.VerifyAudit(t.Context(), s, access.AuditSources{}); err != nil || head.Seq != 3 {
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
				_, err = access.VerifyAudit(t.Context(), s, access.AuditSources{})
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
					head, err := access.VerifyAudit(t.Context(), s, access.AuditSources{})
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
					_, err = access.VerifyAudit(t.Context(), s, access.AuditSources{Heads: []access.Head{head}})
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
