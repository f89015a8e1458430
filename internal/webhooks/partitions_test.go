package webhooks_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// partitioned is a PostgreSQL database with arbitrary event numbers.
type partitioned struct {
	*db.DB
	t   *testing.T
	url string
	db  *dbtest.DB
}

// day is a time on a day.
func day(n int) time.Time { return time.Date(2026, 1, 1+n, 0, 0, 0, 0, time.UTC) }

func newPartitioned(t *testing.T) partitioned {
	t.Helper()
	url := dbtest.MigratedPostgres(t)
	p := partitioned{dbtest.Open(t, url), t, url, dbtest.SQL(t, url)}
	rowtest.Insert(t, p.DB, rowtest.Sample("inv_1", "m"))
	return p
}

func (p partitioned) exec(statement string, args ...any) {
	p.t.Helper()
	if _, err := p.db.ExecContext(p.t.Context(), statement, args...); err != nil {
		p.t.Fatalf("%v\n%s", err, statement)
	}
}

// add adds an event with an attempt.
func (p partitioned) add(seq int64, at time.Time) {
	p.t.Helper()
	p.exec("INSERT INTO events (id, seq, type, subject, merchant_id, invoice_id, body, created_at) VALUES ($1, $2, 'payment.received', $3, 'm', 'inv_1', '{}', $4)",
		invoice.FirstID(invoice.PrefixEvent, at)+fmt.Sprint(seq), seq, fmt.Sprint(seq), at.Unix())
	p.attempt(seq, 1)
}

func (p partitioned) attempt(seq int64, number int) {
	p.t.Helper()
	p.exec("INSERT INTO attempts (seq, number, started_ms, duration_ms) VALUES ($1, $2, 1, 1)", seq, number)
}

func (p partitioned) maintain(now, before time.Time) {
	p.t.Helper()
	if rows, err := webhooks.NewTables(p.DB).MaintainPartitions(p.t.Context(), now, before); err != nil || !rows.Equal(before.Add(-24*time.Hour)) {
		p.t.Errorf("rows are deleted before %s, %v, want a day before %s", rows, err, before)
	}
}

// wantPartitions compares the partitions, each with its number of rows.
func (p partitioned) wantPartitions(want map[string]int) {
	p.t.Helper()
	rows, err := p.db.QueryContext(p.t.Context(), `SELECT inhrelid::regclass::text, (SELECT count(*) FROM attempts WHERE tableoid = inhrelid) FROM pg_inherits WHERE inhparent = 'attempts'::regclass`)
	rowtest.Must(p.t, err)
	defer func() { rowtest.Must(p.t, rows.Close()) }()
	got := make(map[string]int)
	for rows.Next() {
		var name string
		var n int
		rowtest.Must(p.t, rows.Scan(&name, &n))
		got[name] = n
	}
	rowtest.Must(p.t, rows.Err())
	expect.NoDiff(p.t, cmp.Diff(want, got), "partitions")
}

// TestPartitionsOfAttempts makes partitions ahead, late and not at all, and drops them.
func TestPartitionsOfAttempts(t *testing.T) {
	t.Parallel()
	p := newPartitioned(t)
	p.wantPartitions(map[string]int{"attempts_0": 0, "attempts_default": 0})
	p.add(1, day(0))
	p.maintain(day(0), day(-30))
	p.wantPartitions(map[string]int{"attempts_0": 1, "attempts_default": 0})
	p.add(900_000, day(1))
	p.maintain(day(1), day(-29))
	p.add(1_500_001, day(2))
	p.wantPartitions(map[string]int{"attempts_0": 2, "attempts_1000001": 1, "attempts_default": 0})
	t.Log("nobody made the next partition in time")
	p.add(2_500_000, day(3))
	p.wantPartitions(map[string]int{"attempts_0": 2, "attempts_1000001": 1, "attempts_default": 1})
	p.maintain(day(3), day(-27))
	p.add(2_600_000, day(4))
	p.attempt(2_500_000, 2)
	p.wantPartitions(map[string]int{"attempts_0": 2, "attempts_1000001": 1, "attempts_default": 2, "attempts_2600000": 1})
	t.Log("partition 0 has an event of day 1, and a pending delivery")
	p.exec("INSERT INTO deliveries (seq, merchant_id, due_ms, deadline_ms) VALUES (1, 'm', 1, 1)")
	p.maintain(day(4), day(1))
	p.maintain(day(4), day(2))
	p.wantPartitions(map[string]int{"attempts_0": 2, "attempts_1000001": 1, "attempts_default": 2, "attempts_2600000": 1})
	p.exec("DELETE FROM deliveries")
	p.maintain(day(4), day(1))
	p.wantPartitions(map[string]int{"attempts_0": 2, "attempts_1000001": 1, "attempts_default": 2, "attempts_2600000": 1})
	p.maintain(day(4), day(2))
	p.wantPartitions(map[string]int{"attempts_1000001": 1, "attempts_default": 2, "attempts_2600000": 1})
	t.Log("an event of a dropped partition is sent again")
	p.attempt(1, 2)
	p.wantPartitions(map[string]int{"attempts_1000001": 1, "attempts_default": 3, "attempts_2600000": 1})
	t.Log("the clock jumps back, and ahead: the partition of the newest event stays")
	p.maintain(day(-1000), day(-1030))
	p.maintain(day(1000), day(970))
	p.wantPartitions(map[string]int{"attempts_default": 3, "attempts_2600000": 1})
}

// TestPartitionWithFutureDate checks that an event created while a clock was ahead keeps only the partition that ends
// with it, and that one created while a clock was behind does not drop a partition of young events.
func TestPartitionWithFutureDate(t *testing.T) {
	t.Parallel()
	p := newPartitioned(t)
	p.maintain(day(0), day(-30))
	p.add(1, day(0))
	p.add(2, day(400)) // the last of its partition
	p.add(900_000, day(400))
	p.maintain(day(1), day(-29))
	p.add(1_000_001, day(1))
	p.add(1_600_000, day(1))
	p.maintain(day(2), day(-28))
	p.add(2_000_001, day(50))
	p.add(2_000_002, day(-900))
	p.maintain(day(50), day(20))
	p.maintain(day(51), day(21))
	p.add(3_700_000, day(51))
	p.maintain(day(51), day(21))
	p.wantPartitions(map[string]int{"attempts_0": 3, "attempts_2000001": 2, "attempts_3800000": 0, "attempts_default": 1})
	p.maintain(day(410), day(401))
	p.wantPartitions(map[string]int{"attempts_3800000": 0, "attempts_default": 1})
}

// TestPartitionsArePruned checks that the attempts of an event are read from one partition.
func TestPartitionsArePruned(t *testing.T) {
	t.Parallel()
	p := newPartitioned(t)
	p.add(900_000, day(1))
	p.maintain(day(1), day(-29))
	rows, err := p.db.QueryContext(t.Context(), "EXPLAIN SELECT number FROM attempts WHERE seq = 5 ORDER BY number")
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, rows.Close()) }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		rowtest.Must(t, rows.Scan(&line))
		plan.WriteString(line + "\n")
	}
	rowtest.Must(t, rows.Err())
	if text := plan.String(); !strings.Contains(text, "attempts_0") || strings.Contains(text, "attempts_1000001") || strings.Contains(text, "attempts_default") {
		t.Errorf("the plan is\n%s", text)
	}
}

// TestPartitionsOfSeveralReplicas maintains partitions in several replicas while attempts are written.
func TestPartitionsOfSeveralReplicas(t *testing.T) {
	t.Parallel()
	p := newPartitioned(t)
	p.add(1, day(0))
	p.add(1_900_000, day(40))
	p.add(4_000_000, day(41))
	other := dbtest.Open(t, p.url)
	const rounds = 10
	var group sync.WaitGroup
	for _, s := range []*db.DB{p.DB, other} {
		group.Go(func() {
			for range rounds {
				if _, err := webhooks.NewTables(s).MaintainPartitions(t.Context(), day(41), day(11)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Go(func() {
		for i := range 5 * rounds {
			p.attempt(4_000_000, 2+i)
		}
	})
	group.Wait()
	p.maintain(day(41), day(11))
	p.wantPartitions(map[string]int{"attempts_4100000": 0, "attempts_default": 2 + 5*rounds})
}

// TestPartitionsAndLocks checks that making a partition gives up while another transaction locks the
// events, and that no part of it is left if it is killed while it waits.
func TestPartitionsAndLocks(t *testing.T) {
	t.Parallel()
	p := newPartitioned(t)
	p.add(900_000, day(1))
	without := map[string]int{"attempts_0": 1, "attempts_default": 0}
	lock, err := p.db.BeginTx(t.Context(), nil)
	rowtest.Must(t, err)
	_, err = lock.ExecContext(t.Context(), "LOCK TABLE events IN ROW EXCLUSIVE MODE")
	rowtest.Must(t, err)
	p.maintain(day(1), day(-29))
	p.wantPartitions(without)
	killed := make(chan error)
	go func() {
		_, err := webhooks.NewTables(p.DB).MaintainPartitions(t.Context(), day(1), day(-29))
		killed <- err
	}()
	for n := 0; n == 0; {
		rowtest.Must(t, p.db.QueryRowContext(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%ATTACH PARTITION%'`).Scan(&n))
	}
	if err := <-killed; err == nil {
		t.Error("the call that was killed succeeds")
	}
	rowtest.Must(t, lock.Rollback())
	p.wantPartitions(without)
	p.maintain(day(1), day(-29))
	p.wantPartitions(map[string]int{"attempts_0": 1, "attempts_default": 0, "attempts_1000001": 0})
}
