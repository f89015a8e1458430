package db_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// served counts the reads of a store with a standby, by server and reason.
type served struct {
	mu    sync.Mutex
	reads map[string]int
}

func (s *served) add(server, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[server+" "+reason]++
}

func (s *served) count(which string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[which]
}

// pair is a primary, a standby and a store that has both.
type pair struct {
	primary, standby *dbtest.Cluster
	served           *served
	log              *logtest.Buffer
}

// startPair starts a primary and a standby. Commits do not wait for the standby.
func startPair(t *testing.T) *pair {
	t.Helper()
	primary := startCluster(t)
	dbtest.Open(t, primary.DSN("postgres")) // with the schema
	standby, err := dbtest.StartReplica(t.Context(), primary)
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, standby.Stop()) })
	return &pair{primary, standby, &served{reads: make(map[string]int)}, new(logtest.Buffer)}
}

func startCluster(t *testing.T) *dbtest.Cluster {
	t.Helper()
	c, err := dbtest.StartCluster(t.Context(), dbtest.Options{Fsync: true})
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, c.Stop()) })
	return c
}

// open opens a store on the primary, with a standby at the URL.
func (p *pair) open(t *testing.T, standbyURL string) *db.DB {
	t.Helper()
	text := slog.NewTextHandler(p.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok && db.Unavailable(err) {
			t.Errorf("the server logs %v once in a minute, though it tells of a change", err)
		}
		return a
	}})
	s, err := db.OpenWithStandby(t.Context(), p.primary.DSN("postgres"), db.StandbyConfig{
		URL: standbyURL, Retry: 20 * time.Millisecond, OnRead: p.served.add, Logger: slog.New(text),
	})
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, s.Close()) })
	return s
}

// list lists the newest invoices of a merchant, at the standby if it may serve.
func list(t testing.TB, s *db.DB, merchant string) []string {
	t.Helper()
	return listUnder(t, db.OnStandby(t.Context()), s, merchant)
}

func listUnder(t testing.TB, ctx context.Context, s *db.DB, merchant string) []string { //nolint:revive // tests take t first
	t.Helper()
	found, _, err := ledger.NewReader(s.Reader()).Invoices(ctx, ledger.InvoiceFilter{MerchantID: merchant, Limit: 100})
	rowtest.Must(t, err)
	var ids []string
	for _, inv := range found {
		ids = append(ids, inv.ID)
	}
	return ids
}

// listFrom lists until a read was answered so.
func (p *pair) listFrom(t *testing.T, s *db.DB, which string) {
	t.Helper()
	for before := p.served.count(which); p.served.count(which) == before; {
		list(t, s, "m")
		if t.Context().Err() != nil {
			t.Fatalf("no list was read at the %s:\n%s", which, p.log)
		}
	}
}

// on runs statements on a cluster.
func on(t testing.TB, c *dbtest.Cluster, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	rowtest.Must(t, err)
	for _, statement := range statements {
		expect.Success(t)(conn.Exec(t.Context(), statement))
	}
	rowtest.Must(t, conn.Close(context.Background()))
}

// TestExtraStandbyServesLists reads new rows from the standby, without the primary, and from the primary if
// the standby does not replay them.
func TestExtraStandbyServesLists(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	s := p.open(t, p.standby.DSN("postgres"))
	p.listFrom(t, s, "standby replayed")
	for n := range 50 {
		id := fmt.Sprintf("inv_a%02d", n)
		rowtest.Insert(t, s, rowtest.Sample(id, "m"))
		if !slices.Contains(list(t, s, "m"), id) {
			t.Fatalf("%s is missing after its insert", id)
		}
	}
	if p.served.count("standby replayed") < 25 { // on a busy machine it may be behind at times
		t.Errorf("reads: %v\n%s", p.served.reads, p.log)
	}

	p.listFrom(t, s, "standby replayed")
	on(t, p.standby, "SELECT pg_wal_replay_pause()")
	rowtest.Insert(t, s, rowtest.Sample("inv_b", "m"))
	behind, begun := p.served.count("primary behind"), time.Now()
	one := db.OnStandby(t.Context())
	if !slices.Contains(listUnder(t, one, s, "m"), "inv_b") {
		t.Error("inv_b is missing while the standby replays nothing")
	}
	if took := time.Since(begun); took > 2*time.Second || p.served.count("primary behind") != behind+1 {
		t.Errorf("the list took %v; reads: %v", took, p.served.reads)
	}
	left := p.served.count("primary left")
	list(t, s, "m")
	if p.served.count("primary left") != left+1 || p.served.count("primary behind") != behind+1 {
		t.Errorf("a standby that was behind is asked again at once: %v", p.served.reads)
	}
	on(t, p.standby, "SELECT pg_wal_replay_resume()")
	p.listFrom(t, s, "standby replayed")
	listUnder(t, one, s, "m")
	if p.served.count("primary earlier") != 1 {
		t.Errorf("a request that read at the primary goes back to the standby: %v", p.served.reads)
	}

	rowtest.Must(t, p.standby.Kill(t.Context()))
	rowtest.Insert(t, s, rowtest.Sample("inv_c", "m"))
	for range 5 {
		if !slices.Contains(list(t, s, "m"), "inv_c") {
			t.Error("inv_c is missing while there is no standby")
		}
	}
	rowtest.Must(t, p.standby.Restart(t.Context()))
	p.listFrom(t, s, "standby replayed")

	rowtest.Must(t, p.standby.Promote(t.Context()))
	on(t, p.standby, "UPDATE invoices SET merchant_id = merchant_id") // so that its own log grows
	rowtest.Insert(t, s, rowtest.Sample("inv_d", "m"))
	before := p.served.count("standby replayed")
	for range 5 {
		if !slices.Contains(list(t, s, "m"), "inv_d") {
			t.Error("inv_d is missing after the standby was promoted")
		}
	}
	if p.served.count("standby replayed") != before {
		t.Errorf("a promoted standby serves lists: %v", p.served.reads)
	}
}

// TestExtraStandbyOfAnotherDatabase uses a URL that leads to another cluster's standby, to a primary, or to
// another database of the standby. None of them serves a list.
func TestExtraStandbyOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	p, other := startPair(t), startPair(t)
	on(t, p.primary, "CREATE DATABASE copy TEMPLATE postgres")
	rowtest.Insert(t, dbtest.Open(t, p.primary.DSN("postgres")), rowtest.Sample("inv_1", "m"))
	for name, test := range map[string]struct{ url, want string }{
		"cluster":  {other.standby.DSN("postgres"), "its database is not the primary's"},
		"primary":  {p.primary.DSN("postgres"), "it is no standby"},
		"database": {p.standby.DSN("copy"), "its database is not the primary's"},
		"nobody":   {"postgres://nobody@127.0.0.1:1/postgres", "connect"},
	} {
		t.Run(name, func(t *testing.T) {
			q := &pair{p.primary, p.standby, &served{reads: make(map[string]int)}, new(logtest.Buffer)}
			s := q.open(t, test.url)
			for !strings.Contains(q.log.String(), test.want) {
				if got := list(t, s, "m"); !slices.Equal(got, []string{"inv_1"}) {
					t.Fatalf("the list has %v", got)
				}
				if t.Context().Err() != nil {
					t.Fatalf("the log lacks %q:\n%s", test.want, q.log)
				}
			}
			if q.served.count("standby replayed") != 0 {
				t.Errorf("reads: %v", q.served.reads)
			}
		})
	}
}

// TestExtraStandbyOfAnotherTimeline uses a standby that still follows the former primary after a failover,
// and is ahead of the new one. It serves no reads until it follows the new one.
func TestExtraStandbyOfAnotherTimeline(t *testing.T) {
	t.Parallel()
	former := startPair(t)
	rowtest.Insert(t, dbtest.Open(t, former.primary.DSN("postgres")), rowtest.Sample("inv_1", "m"))
	other, err := dbtest.StartReplica(t.Context(), former.primary)
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, other.Stop()) })
	rowtest.Must(t, former.standby.Promote(t.Context()))
	rowtest.Insert(t, dbtest.Open(t, former.primary.DSN("postgres")), rowtest.Sample("inv_lost", "m"))
	p := &pair{former.standby, other, former.served, former.log}
	s := p.open(t, other.DSN("postgres"))
	for !strings.Contains(p.log.String(), "it follows another timeline") && t.Context().Err() == nil {
		if got := list(t, s, "m"); !slices.Equal(got, []string{"inv_1"}) {
			t.Fatalf("the list has %v", got)
		}
	}
	if p.served.count("standby replayed") != 0 {
		t.Errorf("reads: %v", p.served.reads)
	}
	rowtest.Must(t, other.KillNine())
	rowtest.Must(t, other.Follow(t.Context(), p.primary))
	p.listFrom(t, s, "standby replayed")
	rowtest.Insert(t, s, rowtest.Sample("inv_2", "m"))
	expect.List(t, list(t, s, "m"), []string{"inv_2", "inv_1"}, "the list has")
}

// TestExtraConflictWithReplay makes the standby cancel a statement that conflicts with the replay. The
// primary repeats it, and the standby remains in use. Its user is no superuser.
func TestExtraConflictWithReplay(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	on(t, p.primary, "CREATE TABLE deleted (id int)", "INSERT INTO deleted VALUES (1)", "CREATE ROLE app LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO app")
	s := p.open(t, strings.Replace(p.standby.DSN("postgres"), "postgres@", "app@", 1))
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
	p.listFrom(t, s, "standby replayed")
	// The owner of the table, who reads at the primary, is not subject to its policies.
	on(t, p.primary, "CREATE FUNCTION slow() RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT pg_sleep(4) IS NOT NULL'",
		"CREATE POLICY slow ON invoices USING (slow())", "ALTER TABLE invoices ENABLE ROW LEVEL SECURITY")
	on(t, p.standby, "ALTER SYSTEM SET max_standby_streaming_delay = 0", "SELECT pg_reload_conf()")
	listed := make(chan []string, 1)
	go func() {
		var got []string
		for p.served.count("primary conflict") == 0 && t.Context().Err() == nil {
			got = list(t, s, "m")
		}
		listed <- got
	}()
	on(t, p.standby, "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep') LOOP PERFORM pg_stat_clear_snapshot(); END LOOP; END $$")
	on(t, p.primary, "DELETE FROM deleted", "VACUUM deleted")
	expect.List(t, <-listed, []string{"inv_1"}, "the list has")
	on(t, p.primary, "ALTER TABLE invoices DISABLE ROW LEVEL SECURITY")
	p.listFrom(t, s, "standby replayed")
}
