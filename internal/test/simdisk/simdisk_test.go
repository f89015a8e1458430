package simdisk_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/test/simdisk"
)

// trial writes transactions to a disk with faults, which loses power in each round.
type trial struct {
	open                          func(ctx context.Context, path string) (*store, error)
	seed                          uint64
	rounds, writers, transactions int
}

// run returns the acknowledged transactions, the number of rows by transaction, and the first violation.
func (tr trial) run(t *testing.T, path string) (acknowledged map[int]bool, found map[int]int, violation error) {
	t.Helper()
	acknowledged = make(map[int]bool)
	synctest.Test(t, func(t *testing.T) {
		disk, err := simdisk.New(filepath.Dir(path))
		rowtest.Must(t, err)
		defer disk.Close()
		rng := rand.New(rand.NewPCG(tr.seed, 0))
		for round := range tr.rounds {
			for range rng.IntN(3) {
				disk.Plan(simdisk.Draw(rng, disk.Ops(), 80))
			}
			if s, err := tr.open(t.Context(), path); err == nil {
				tr.write(t, s, disk, round, acknowledged)
				_ = s.close() // the disk may have stopped
			}
			disk.Stop(simdisk.Fault{Kind: simdisk.PowerLoss, Seed: rng.Uint64()})
			disk.Heal()
			rowtest.Must(t, disk.Restart())
			if found, violation = tr.verify(t, path, acknowledged); violation != nil {
				return
			}
		}
	})
	return acknowledged, found, violation
}

// write writes transactions, each by several writers at once, until the disk stops.
func (tr trial) write(t *testing.T, s *store, disk *simdisk.Disk, round int, acknowledged map[int]bool) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	for w := range tr.writers {
		group.Go(func() {
			for i := range tr.transactions {
				id := (round*tr.writers+w)*tr.transactions + i
				if err := s.write(t.Context(), id); err == nil {
					mu.Lock()
					acknowledged[id] = true
					mu.Unlock()
				}
				select {
				case <-disk.Stopped():
					return
				default:
				}
				if _, err := s.read(t.Context()); err != nil && !db.Unavailable(err) {
					t.Errorf("read: %v", err)
				}
			}
		})
	}
	group.Wait()
}

func (tr trial) verify(t *testing.T, path string, acknowledged map[int]bool) (found map[int]int, err error) {
	t.Helper()
	s, err := tr.open(t.Context(), path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if result, err := s.query(t.Context(), "PRAGMA integrity_check"); err != nil || result != "ok" {
		return nil, fmt.Errorf("damaged: %s %w", result, err)
	}
	if found, err = s.read(t.Context()); err != nil {
		return nil, err
	}
	for id := range acknowledged {
		if found[id] == 0 {
			return found, fmt.Errorf("transaction %d is lost", id)
		}
	}
	for id, n := range found {
		if n != rowsOf(id) {
			return found, fmt.Errorf("transaction %d has %d of %d rows", id, n, rowsOf(id))
		}
	}
	return found, nil
}

// store is a database with a table of rows of transactions.
type store struct {
	exec  func(ctx context.Context, statement string, args ...any) error // in a transaction
	query func(ctx context.Context, query string) (string, error)
	close func() error
}

// create also lets SQLite move few pages at a time from the log to the file.
func (s *store) create(ctx context.Context) (*store, error) {
	for _, statement := range []string{"PRAGMA wal_autocheckpoint = 20", "CREATE TABLE IF NOT EXISTS trial (id, n, filler, PRIMARY KEY (id, n))"} {
		if err := s.exec(ctx, statement); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// rowsOf returns how many rows a transaction has.
func rowsOf(id int) int { return 1 + id%5 }

func (s *store) write(ctx context.Context, id int) error {
	return s.exec(ctx, "INSERT INTO trial SELECT $1, value, randomblob(($1 * 7919 + value * 104729) % 9000) FROM json_each('[1,2,3,4,5]') WHERE value <= $2", id, rowsOf(id))
}

func (s *store) read(ctx context.Context) (rows map[int]int, err error) {
	text, err := s.query(ctx, "SELECT json_group_object(id, rows) FROM (SELECT id, count(*) AS rows FROM trial GROUP BY id)")
	if err != nil {
		return nil, err
	}
	return rows, json.Unmarshal([]byte(text), &rows)
}

// openPlain returns a function that opens a database by database/sql.
func openPlain(synchronous string) func(context.Context, string) (*store, error) {
	return func(ctx context.Context, path string) (*store, error) {
		s, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")")
		if err != nil {
			return nil, err
		}
		return (&store{close: s.Close, exec: func(ctx context.Context, statement string, args ...any) error {
			_, err := s.ExecContext(ctx, statement, args...)
			return err
		}, query: func(ctx context.Context, query string) (text string, err error) {
			return text, s.QueryRowContext(ctx, query).Scan(&text)
		}}).create(ctx)
	}
}

// openService opens the service's database.
func openService(ctx context.Context, path string) (*store, error) {
	s, err := db.Open(ctx, "sqlite:"+path)
	if err != nil {
		return nil, err
	}
	return (&store{close: s.Close, exec: func(ctx context.Context, statement string, args ...any) error {
		return s.Update(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(ctx, statement, args...)
			return err
		})
	}, query: func(ctx context.Context, query string) (string, error) {
		return db.QueryRow(ctx, s, func(row db.Scanner) (text string, err error) { return text, row.Scan(&text) }, query)
	}}).create(ctx)
}

func pathOf(url string) string { return strings.TrimPrefix(url, "sqlite:") }

func TestPlainKeepsAcknowledged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		tr := trial{openPlain("FULL"), rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 3).Draw(rt, "rounds"), 1, rapid.IntRange(1, 20).Draw(rt, "transactions")}
		expect.Success(rt)(tr.run(t, pathOf(dbtest.SQLite(t))))
	})
}

func TestServiceKeepsAcknowledged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		tr := trial{openService, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 2).Draw(rt, "rounds"), rapid.IntRange(1, 4).Draw(rt, "writers"), rapid.IntRange(1, 6).Draw(rt, "transactions")}
		expect.Success(rt)(tr.run(t, pathOf(dbtest.Migrated(t))))
	})
}

// TestLosesUnsynced shows that the disk loses what was not synced.
func TestLosesUnsynced(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		if _, _, err := (trial{openPlain("OFF"), seed, 2, 1, 10}).run(t, pathOf(dbtest.SQLite(t))); err != nil && strings.Contains(err.Error(), "is lost") {
			return
		}
	}
	t.Error("without syncs no seed lost a transaction")
}

// TestSeedRepeats runs each of some seeds twice, on one processor, and compares what is left.
func TestSeedRepeats(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := range uint64(8) {
		tr := trial{openService, seed, 2, 1, 10}
		acknowledged, found, err := tr.run(t, pathOf(dbtest.Migrated(t)))
		rowtest.Must(t, err)
		again, foundAgain, err := tr.run(t, pathOf(dbtest.Migrated(t)))
		rowtest.Must(t, err)
		if !maps.Equal(acknowledged, again) || !maps.Equal(found, foundAgain) {
			t.Errorf("seed %d: %d acknowledged of %d, then %d of %d", seed, len(acknowledged), len(found), len(again), len(foundAgain))
		}
	}
}

// TestFullSlowAndFailed has one transaction of the service's database under each fault that passes.
func TestFullSlowAndFailed(t *testing.T) {
	t.Parallel()
	path := pathOf(dbtest.Migrated(t))
	synctest.Test(t, func(t *testing.T) {
		disk, err := simdisk.New(filepath.Dir(path))
		rowtest.Must(t, err)
		defer disk.Close()
		s, err := openService(t.Context(), path)
		rowtest.Must(t, err)
		disk.Plan(simdisk.Fault{Kind: simdisk.Full, For: time.Hour})
		if err := s.write(t.Context(), 1); !db.Unavailable(err) || !strings.Contains(err.Error(), "full") {
			t.Errorf("a full disk gives %v", err)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // of the bubble
		disk.Plan(simdisk.Fault{Kind: simdisk.SyncFails})
		if err := s.write(t.Context(), 2); !db.Unavailable(err) {
			t.Errorf("a failed sync gives %v", err)
		}
		disk.Plan(simdisk.Fault{Kind: simdisk.Slow, For: time.Minute, Delay: time.Second})
		start := time.Now()
		rowtest.Must(t, s.write(t.Context(), 3))
		if time.Since(start) < time.Second {
			t.Error("a slow disk takes no time")
		}
		if found, err := s.read(t.Context()); err != nil || !maps.Equal(found, map[int]int{3: rowsOf(3)}) {
			t.Errorf("found %v, %v", found, err)
		}
		rowtest.Must(t, s.close())
	})
}

// BenchmarkDisk compares a simulated disk with files in memory.
func BenchmarkDisk(b *testing.B) {
	id := 0
	for _, name := range []string{"files", "simulated"} {
		path := pathOf(dbtest.Migrated(b))
		if name == "simulated" {
			disk, err := simdisk.New(filepath.Dir(path))
			rowtest.Must(b, err)
			b.Cleanup(disk.Close)
		}
		b.Run("open/"+name, func(b *testing.B) {
			for b.Loop() {
				s, err := db.Open(b.Context(), "sqlite:"+path)
				rowtest.Must(b, errors.Join(err, s.Close()))
			}
		})
		b.Run("commit/"+name, func(b *testing.B) {
			s, err := openService(b.Context(), path)
			rowtest.Must(b, err)
			for ; b.Loop(); id++ {
				rowtest.Must(b, s.write(b.Context(), id))
			}
			rowtest.Must(b, s.close())
		})
	}
}
