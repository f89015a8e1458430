package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

const (
	// postgresConns is how many connections one process opens at most.
	postgresConns = 24
	// postgresTries is how often a transaction that the database aborts is run.
	postgresTries = 5
	// pingTries is on how many connections the server is asked whether it is there.
	pingTries = 3
	// migrateRetry is how long a process that starts waits, in seconds, while
	// another brings the schema up to date, before it looks again.
	migrateRetry = 1
	// migrateTries is how often it looks.
	migrateTries = 300
)

// forPostgres is what PostgreSQL needs beside the common schema. The tables
// whose rows come and go are cleared of dead rows early, at full speed. The
// keys that are INTEGER, which makes them the row's own number on SQLite, get
// the 64 bits that they have there.
const forPostgres = `
ALTER TABLE events ALTER COLUMN seq TYPE BIGINT;
ALTER TABLE deliveries ALTER COLUMN seq TYPE BIGINT;
ALTER TABLE leased ALTER COLUMN seq TYPE BIGINT;
ALTER TABLE finished_deliveries ALTER COLUMN seq TYPE BIGINT;
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE leased SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE breakers SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0, fillfactor = 50);
`

func openPostgres(ctx context.Context, url string) (*Store, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("database postgres: the URL cannot be read; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	cfg.DialFunc = dialer().DialContext
	if cfg.ConnectTimeout == 0 || cfg.ConnectTimeout > connectTimeout {
		cfg.ConnectTimeout = connectTimeout
	}
	p := newPostgresDB(cfg)
	ping, cancel := bounded(ctx)
	defer cancel()
	if err := p.db.PingContext(ping); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to PostgreSQL at %s:%d: %w", cfg.Host, cfg.Port, named(ping, err)), p.close())
	}
	return &Store{queries: queries{run: p.db, postgres: true, failed: p.judge}, dialect: p}, nil
}

func (p *postgresDB) update(ctx context.Context, fn func(*Tx) error) error {
	var err error
	for range postgresTries {
		if err = p.try(ctx, fn); !aborted(err) {
			return err
		}
	}
	return err
}

// try runs fn in a transaction once. Each of its statements is bounded by
// itself; to begin, to commit and to undo are bounded here.
func (p *postgresDB) try(ctx context.Context, fn func(*Tx) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	inTime := func(do func() error) error {
		timer := time.AfterFunc(statementTimeout, func() { cancel(ErrTimeout) })
		defer timer.Stop()
		err := named(ctx, do())
		p.judge(err)
		return err
	}
	var tx *sql.Tx
	if err := inTime(func() (err error) { tx, err = p.db.BeginTx(ctx, nil); return err }); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() {
		// After a commit this does nothing; after an error or a panic it undoes.
		if undo := inTime(tx.Rollback); undo != nil && !errors.Is(undo, sql.ErrTxDone) && err == nil {
			err = undo
		}
	}()
	if err := fn(&Tx{queries{run: tx, postgres: true, failed: p.judge}}); err != nil {
		return err
	}
	return inTime(tx.Commit)
}

// aborted reports whether the database gave up a transaction that may succeed
// when it is run again: a serialization failure or a deadlock.
func aborted(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

func (p *postgresDB) migrate(ctx context.Context) (err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(migrateRetry, migrateTries))
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*p.config, stdlib.OptionAfterConnect(settings(migrationSettings)))
	defer func() { err = errors.Join(err, db.Close()) }()
	return migrate(ctx, db, goose.DialectPostgres, goose.WithSessionLocker(locker), postgresMigrations())
}

// postgresMigrations are those that PostgreSQL has beside the common files.
func postgresMigrations() goose.ProviderOption {
	return goose.WithGoMigrations(goose.NewGoMigration(2, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, forPostgres)
		return err
	}}, nil))
}

// ping asks the server. A connection that turns out to be closed says nothing
// about it; the next one does.
func (p *postgresDB) ping(ctx context.Context) error {
	var err error
	for range pingTries {
		if err = p.db.PingContext(ctx); !errors.Is(err, driver.ErrBadConn) {
			return err
		}
		p.condemn(time.Now())
	}
	return err
}

func (p *postgresDB) checkWritable(ctx context.Context) error {
	var standby, readOnly bool
	err := p.db.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'").Scan(&standby, &readOnly)
	switch at := fmt.Sprintf("PostgreSQL at %s:%d", p.config.Host, p.config.Port); {
	case err != nil:
		return fmt.Errorf("ask %s whether it takes writes: %w", at, err)
	case standby:
		return fmt.Errorf("%s is a standby and takes no writes; name the primary, or name all hosts in the URL and add target_session_attrs=read-write", at)
	case readOnly:
		return fmt.Errorf("%s takes no writes: default_transaction_read_only is on, for the server, the database or the user; turn it off", at)
	}
	return nil
}

func (p *postgresDB) close() error { return p.db.Close() }
