package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/wait"
)

// tableSample is what PostgreSQL counts of a table, with its partitions.
type tableSample struct {
	live, dead, updated, hot int64 // rows; updates, and those that changed no index
	table, indexes           int64 // bytes
	partitions               int64
}

func (s tableSample) size() int64 { return s.table + s.indexes }

// vacuums is the work of autovacuum on a table.
type vacuums struct {
	runs         int
	elapsed, cpu time.Duration
	wal          int64 // bytes
}

// tableSamples samples all tables of a database.
type tableSamples struct {
	conn       *pgx.Conn
	half, last map[string]tableSample
	dead       map[string]int64 // the most at a time
	walBegan   int64            // positions in the WAL
	walEnd     int64
	logged     int64 // size of the server's log at the beginning
}

// newTableSamples begins to watch a database, and has the server log each run of autovacuum.
func newTableSamples(ctx context.Context, url string) (_ *tableSamples, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	t := &tableSamples{conn: conn, dead: make(map[string]int64)}
	for _, statement := range []string{"ALTER SYSTEM SET log_autovacuum_min_duration = 0", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	err = conn.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, (pg_stat_file("+serverLog+")).size").Scan(&t.walBegan, &t.logged)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// serverLog is the log's path, which storetest chooses.
const serverLog = "current_setting('data_directory') || '/../log'"

func (t *tableSamples) close() error { return t.conn.Close(context.Background()) }

// run samples at an interval for a time.
func (t *tableSamples) run(ctx context.Context, during time.Duration) error {
	for began := time.Now(); wait.Sleep(ctx, churnSample, nil); {
		now, err := t.sample(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the time is over
		}
		if err != nil {
			return err
		}
		t.last = now
		if t.half == nil && time.Since(began) >= during/2 {
			t.half = now
		}
		for name, s := range now {
			t.dead[name] = max(t.dead[name], s.dead)
		}
	}
	return nil
}

// sample reads the tables.
func (t *tableSamples) sample(ctx context.Context) (map[string]tableSample, error) {
	rows, err := t.conn.Query(ctx, `SELECT coalesce(parent.relname, s.relname), sum(n_live_tup), sum(n_dead_tup), sum(n_tup_upd), sum(n_tup_hot_upd),
			sum(pg_table_size(s.relid)), sum(pg_indexes_size(s.relid)), count(parent.oid)
		FROM pg_stat_user_tables s LEFT JOIN pg_inherits i ON i.inhrelid = s.relid LEFT JOIN pg_class parent ON parent.oid = i.inhparent GROUP BY 1`)
	if err != nil {
		return nil, err
	}
	all := make(map[string]tableSample)
	var name string
	var s tableSample
	_, err = pgx.ForEachRow(rows, []any{&name, &s.live, &s.dead, &s.updated, &s.hot, &s.table, &s.indexes, &s.partitions}, func() error {
		all[name] = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, t.conn.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&t.walEnd)
}

// vacuumed reads the work of autovacuum from the server's log.
func (t *tableSamples) vacuumed(ctx context.Context) (map[string]vacuums, error) {
	var log string
	if err := t.conn.QueryRow(ctx, "SELECT convert_from(pg_read_binary_file("+serverLog+", $1, 100000000), 'UTF8')", t.logged).Scan(&log); err != nil {
		return nil, err
	}
	return parseVacuums(log), nil
}

var (
	vacuumedTable = regexp.MustCompile(`(?m)automatic (?:aggressive )?vacuum of table "[^".]*\.public\.([^"]*)"`)
	vacuumUsage   = regexp.MustCompile(`system usage: CPU: user: ([\d.]+) s, system: ([\d.]+) s, elapsed: ([\d.]+) s`)
	vacuumWAL     = regexp.MustCompile(`WAL usage: .* (\d+) bytes`)
	partitionName = regexp.MustCompile(`^attempts_\w+$`)
)

// parseVacuums adds up the runs of autovacuum in a log, by table; partitions count for theirs.
func parseVacuums(log string) map[string]vacuums {
	all := make(map[string]vacuums)
	begins := vacuumedTable.FindAllStringSubmatchIndex(log, -1)
	for i, m := range begins {
		entry := log[m[0]:]
		if i+1 < len(begins) {
			entry = log[m[0]:begins[i+1][0]]
		}
		name := partitionName.ReplaceAllString(log[m[2]:m[3]], "attempts")
		v := all[name]
		v.runs++
		if usage := vacuumUsage.FindStringSubmatch(entry); usage != nil {
			v.cpu += seconds(usage[1]) + seconds(usage[2])
			v.elapsed += seconds(usage[3])
		}
		if wal := vacuumWAL.FindStringSubmatch(entry); wal != nil {
			n, _ := strconv.ParseInt(wal[1], 10, 64) // it has digits alone
			v.wal += n
		}
		all[name] = v
	}
	return all
}

// seconds returns a number of seconds that PostgreSQL wrote; 0 if it is not one.
func seconds(text string) time.Duration {
	d, _ := time.ParseDuration(text + "s")
	return d
}

// shortLived are the tables with rows that retention deletes; others grow with the invoices.
var shortLived = []string{"events", "deliveries", "leased", "finished_deliveries", "attempts"}

// report adds a row for each table, the largest first, and one for all.
func (t *tableSamples) report(ctx context.Context, r *report, kind string, keep time.Duration) error {
	if t.half == nil {
		return errors.New("the time is too short for samples of the tables")
	}
	cleaned, err := t.vacuumed(ctx)
	if err != nil {
		return fmt.Errorf("read the server's log: %w", err)
	}
	var invoices, oldest int64
	err = t.conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM invoices), coalesce(extract(epoch FROM now())::bigint - (SELECT min(created_at) FROM events), 0)").Scan(&invoices, &oldest)
	if err != nil {
		return err
	}
	var all vacuums
	names := slices.SortedFunc(maps.Keys(t.last), func(a, b string) int { return int(t.last[b].size() - t.last[a].size()) })
	for _, name := range names {
		half, last, v := t.half[name], t.last[name], cleaned[name]
		all = vacuums{all.runs + v.runs, all.elapsed + v.elapsed, all.cpu + v.cpu, all.wal + v.wal}
		if last.size() < 1<<20 && !slices.Contains(shortLived, name) {
			continue
		}
		note := fmt.Sprintf("ceiling: at the half; %.1f MB of indexes; %d rows, at most %d dead; %d vacuums, %v, CPU %v", mb(last.indexes), last.live, t.dead[name], v.runs, v.elapsed, v.cpu)
		if last.updated > 0 {
			note += fmt.Sprintf("; %d updates, %d%% HOT", last.updated, 100*last.hot/last.updated)
		}
		if last.partitions > 0 {
			note += fmt.Sprintf("; %d partitions, then %d", half.partitions, last.partitions)
		}
		r.row(kind, "churn, size of "+name, fmt.Sprintf("%.1f MB", mb(last.size())), fmt.Sprintf("%.1f MB", mb(half.size())),
			fmt.Sprintf("%.2f", float64(last.size())/float64(max(1, half.size()))), note)
	}
	r.row(kind, "churn, WAL for an invoice", fmt.Sprintf("%.1f kB", float64(t.walEnd-t.walBegan)/float64(max(1, invoices))/1000), "", "",
		fmt.Sprintf("%d invoices; %.0f%% of it by vacuums: %d, %v, CPU %v", invoices, 100*float64(all.wal)/float64(max(1, t.walEnd-t.walBegan)), all.runs, all.elapsed, all.cpu))
	r.row(kind, "churn, age of the oldest event", time.Duration(oldest)*time.Second, keep, fmt.Sprintf("%.2f", float64(oldest)/keep.Seconds()), "ceiling: the retention")
	return nil
}

func mb(bytes int64) float64 { return float64(bytes) / (1 << 20) }
