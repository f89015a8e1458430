package db

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

	"github.com/quittance/quittance/internal/clock"
)

const (
	// postgresConns and heartbeatConns bound the connections of one process. Only the health check, the
	// clock and the division of work among replicas use heartbeatConns.
	postgresConns, heartbeatConns = 21, 3
	// postgresRequests is how many of postgresConns requests use at a time. Reading requests use
	// postgresReads of these, and those of merchants and operators postgresMerchantReads.
	postgresRequests, postgresReads, postgresMerchantReads = 15, 13, 10
	// postgresTries is how often a transaction runs if the database aborts it.
	postgresTries = 5
	// pingTries is how many connections a ping of the server tries.
	pingTries = 3
	// migrateWait bounds the wait for another process that migrates the schema.
	migrateWait = 5 * time.Minute
)

// migrationTransaction sets the limits of the transaction that holds the lock of migrations.
// migrationLock takes the lock, which goose defines, until the transaction ends. It does not wait for
// the lock: a waiting statement would keep the process that holds the lock from creating an index
// concurrently.
var migrationLock, migrationTransaction = fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d)", lock.DefaultLockID), setAll("SET LOCAL", []string{
	fmt.Sprintf("statement_timeout = %d", migrateTimeout.Milliseconds()),
	fmt.Sprintf("idle_in_transaction_session_timeout = %d", migrateTimeout.Milliseconds()),
})

func openPostgres(ctx context.Context, url string) (*DB, error) {
	cfg, err := parsePostgres(url, pgconn.ValidateConnectTargetSessionAttrsReadWrite)
	if err != nil {
		return nil, err
	}
	connecting, cancel := withStatementTimeout(ctx)
	defer cancel()
	p, err := connectPostgres(connecting, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address(cfg), classify(connecting, err))
	}
	shares := newConnShares(postgresMerchantReads, postgresReads, postgresRequests)
	p.shares = shares
	return &DB{Queries: Queries{run: sharedReads{sqlRunner{p.db}, shares}, postgres: true, onError: p.checkServer}, dialect: p}, nil
}

func (p *postgresDB) update(ctx context.Context, fn func(*Tx) error) error {
	leave, err := p.shares.enter(ctx, true)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer leave()
	return p.updateOn(ctx, p.db, fn)
}

func (p *postgresDB) heartbeat(ctx context.Context, fn func(*Tx) error) error {
	p.fillHeartbeats(ctx)
	return p.updateOn(ctx, p.heartbeats, fn)
}

// updateOn runs fn in a transaction on a connection of the pool.
func (p *postgresDB) updateOn(ctx context.Context, pool *sql.DB, fn func(*Tx) error) error {
	var err error
	for range postgresTries {
		if err = p.try(ctx, pool, fn); !aborted(err) {
			return err
		}
	}
	return err
}

// try runs fn in a transaction once. Each statement of fn has its own timeout;
// try bounds the commit and the rollback.
func (p *postgresDB) try(ctx context.Context, pool *sql.DB, fn func(*Tx) error) (err error) {
	connecting, cancel := withStatementTimeout(ctx)
	defer cancel()
	conn, err := pool.Conn(connecting)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", classify(connecting, err))
	}
	defer func() { err = errors.Join(err, ignoreDone(conn.Close())) }()
	return conn.Raw(func(driverConn any) error {
		var settings []string
		if p.pooled {
			settings = transactionSettings
		}
		return p.run(ctx, newPostgresTx(driverConn.(*stdlib.Conn).Conn(), settings...), fn)
	})
}

// run runs fn in a transaction, and commits it or rolls it back.
func (p *postgresDB) run(ctx context.Context, tx *postgresTx, fn func(*Tx) error) (err error) {
	inTime := func(ctx context.Context, do func(ctx context.Context) error) error {
		ctx, cancel := withStatementTimeout(ctx)
		defer cancel()
		err := classify(ctx, do(ctx))
		p.checkServer(err)
		return err
	}
	defer func() {
		if err != nil { // after a panic the connection is closed
			err = errors.Join(err, inTime(context.WithoutCancel(ctx), tx.rollback))
		}
	}()
	if err := fn(&Tx{Queries: Queries{run: tx, postgres: true, onError: p.checkServer}}); err != nil {
		return err
	}
	return inTime(ctx, tx.commit)
}

// aborted reports whether the database aborted a transaction that may succeed on a retry: after a
// serialization failure or a deadlock, or because its connection had been lost.
func aborted(err error) bool {
	var lost notBegunError
	var pg *pgconn.PgError
	return errors.As(err, &lost) || errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// ignoreDone returns the error of a connection's close, or nil if it was closed before.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return nil
	}
	return err
}

func (p *postgresDB) migrate(ctx context.Context, create bool) (created bool, err error) {
	set := settings(p.config, migrationSettings)
	if p.pooled {
		set = func(context.Context, *pgx.Conn) error { return nil }
	}
	db := stdlib.OpenDB(*p.config, stdlib.OptionAfterConnect(set))
	defer func() { err = errors.Join(err, db.Close()) }()
	// One process at a time migrates. A separate transaction holds the lock until it is done, because
	// behind a pooler a lock of the session would not be this process's.
	locked, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, locked.Rollback()) }()
	if err := waitForMigrationLock(ctx, locked); err != nil {
		return false, fmt.Errorf("wait for another process that migrates: %w", err)
	}
	if created, err = isEmpty(ctx, db); err != nil {
		return false, err
	}
	if created && !create {
		return false, ErrNoDatabase
	}
	schema, err := schemaOf(goose.DialectPostgres)
	if err != nil {
		return false, err
	}
	return created, schema.migrate(ctx, db, created)
}

// isEmpty reports whether the schema has no tables. It returns an error if another schema has them,
// because the search_path of the connection has then probably changed.
func isEmpty(ctx context.Context, db *sql.DB) (bool, error) {
	var empty bool
	var elsewhere string
	err := db.QueryRowContext(ctx, `SELECT to_regclass('merchants') IS NULL, COALESCE((SELECT n.nspname FROM pg_namespace n WHERE (SELECT count(*) FROM pg_class c
		WHERE c.relnamespace = n.oid AND c.relname IN ('goose_db_version', 'settlement_addresses', 'deliveries')) = 3 ORDER BY 1 LIMIT 1), '')`).Scan(&empty, &elsewhere)
	if err == nil && empty && elsewhere != "" {
		err = fmt.Errorf("the schema to which the search_path of the connection leads has no tables of quittance, and the schema %q has them; "+
			"set the search_path back (ALTER ROLE … SET search_path), or use another database for another installation", elsewhere)
	}
	return empty, err
}

// migrationPoll is how often a process asks for the lock of migrations.
const migrationPoll = 100 * time.Millisecond

// waitForMigrationLock waits up to migrateWait for the lock.
func waitForMigrationLock(ctx context.Context, tx *sql.Tx) error {
	ctx, cancel := context.WithTimeout(ctx, migrateWait)
	defer cancel()
	if _, err := tx.ExecContext(ctx, migrationTransaction); err != nil {
		return err
	}
	for {
		var locked bool
		// The simple protocol leaves no portal. A portal's snapshot would also delay a concurrent index.
		if err := tx.QueryRowContext(ctx, migrationLock, pgx.QueryExecModeSimpleProtocol).Scan(&locked); locked || err != nil {
			return err
		}
		if !clock.Sleep(ctx, migrationPoll, nil) {
			return ctx.Err()
		}
	}
}

// ping pings the server. A closed connection is replaced by another, because it does not show whether
// the server works.
func (p *postgresDB) ping(ctx context.Context) error {
	p.fillHeartbeats(ctx)
	var err error
	for range pingTries {
		if err = p.heartbeats.PingContext(ctx); !errors.Is(err, driver.ErrBadConn) {
			return err
		}
		p.retireConns(time.Now())
	}
	return err
}

func (p *postgresDB) checkWritable(ctx context.Context) error {
	var standby, readOnly bool
	var missing string
	err := p.heartbeats.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', COALESCE(("+missingPrivilege+"), '')", ownTables()).
		Scan(&standby, &readOnly, &missing)
	switch at := address(p.config); {
	case err != nil:
		return fmt.Errorf("ask %s whether it takes writes: %w", at, err)
	case standby:
		return fmt.Errorf("%s is a standby and takes no writes; name the primary, or all hosts, in the URL", at)
	case readOnly:
		return fmt.Errorf("%s takes no writes: default_transaction_read_only is on, for the server, the database or the user; turn it off", at)
	case missing != "":
		return fmt.Errorf("the role of the connection to %s lacks the privilege %s; as the owner of the tables, run "+
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … TO …", at, missing)
	}
	return nil
}

// missingPrivilege selects a privilege that the role lacks on one of the named tables. The service never changes an entry
// of the audit log, and only a command deletes some.
const missingPrivilege = `SELECT privilege || ' on ' || c.relname FROM pg_class c CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege
	WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname = ANY ($1)
	AND NOT (c.relname LIKE 'audit\_%' AND privilege IN ('UPDATE', 'DELETE')) AND NOT has_table_privilege(c.oid, privilege) ORDER BY 1 LIMIT 1`

func (p *postgresDB) close() error { return errors.Join(p.db.Close(), p.heartbeats.Close()) }
