package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// connectTimeout bounds making a connection to the server, unless the URL of a single host has a connect_timeout.
	connectTimeout = 5 * time.Second
	// A connection that was idle for longer than idleCheck is pinged before it
	// is used again. The ping may take pingTimeout.
	idleCheck   = time.Second
	pingTimeout = 2 * time.Second
	// retireInterval is the minimum time between two retirements of all
	// connections because the server takes no writes.
	retireInterval = 5 * time.Second
	// With keepAliveIdle, keepAliveInterval and keepAliveCount the system notices within 11 s that a
	// silent connection is dead; with userTimeout it notices within 10 s that sent data was not
	// acknowledged.
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
	userTimeout       = 10 * time.Second
)

// SessionSettings are the settings of every connection. docs/decisions/0172-shared-indexes.md has what each planner
// switch is for.
//
// enable_seqscan is off because a connection keeps its plans. While a table is small PostgreSQL scans
// it, and would continue to do so after the table has grown, until the next ANALYZE. Every statement
// has an index to use instead (TestStatementsUseIndexes).
//
// Bitmap scans, incremental sorts and parallel workers are off because PostgreSQL expects that a row
// comparison, or a prepared statement, matches many rows. It would then read and sort all rows of an
// index, instead of a page in the order of another index.
//
// The server cleans up after a lost client, so that its locks become free. Statements of lost clients
// that wait for a lock end (statement_timeout) before the lost client that holds the lock is
// disconnected (idle_in_transaction_session_timeout), so they do not inherit the lock one after
// another. A statement times out on the server before its caller gives up, which saves the connection.
var SessionSettings = setAll("SET", planSettings, timeoutSettings) + "; " + serverKeepAlive

// transactionSettings are the settings of every transaction if connections come from a pooler, which
// gives each transaction a session that others use next.
var transactionSettings = eachSet("SET LOCAL", planSettings, timeoutSettings)

var (
	planSettings    = []string{"enable_seqscan = off", "enable_bitmapscan = off", "enable_incremental_sort = off", "max_parallel_workers_per_gather = 0", "jit = off"}
	timeoutSettings = []string{
		fmt.Sprintf("statement_timeout = %d", (statementTimeout - 2*time.Second).Milliseconds()),
		fmt.Sprintf("idle_in_transaction_session_timeout = %d", statementTimeout.Milliseconds()),
	}
)

// setAll returns the statements that make the settings, in one text.
func setAll(command string, settings ...[]string) string {
	return strings.Join(eachSet(command, settings...), "; ")
}

// eachSet returns the statements that make the settings.
func eachSet(command string, settings ...[]string) []string {
	return Each(slices.Concat(settings...), func(setting string) string { return command + " " + setting })
}

// migrationSettings are the settings of the connections that migrate the schema.
var migrationSettings = fmt.Sprintf("SET statement_timeout = %d; SET idle_in_transaction_session_timeout = %[1]d; %s",
	migrateTimeout.Milliseconds(), serverKeepAlive)

// serverKeepAlive lets the server notice a lost client as fast as the client
// notices a lost server.
var serverKeepAlive = fmt.Sprintf("SET tcp_keepalives_idle = %d; SET tcp_keepalives_interval = %d; SET tcp_keepalives_count = %d; SET tcp_user_timeout = %d",
	keepAliveIdle/time.Second, keepAliveInterval/time.Second, keepAliveCount, userTimeout.Milliseconds())

// postgresDB is a pool of connections to PostgreSQL.
type postgresDB struct {
	db         *sql.DB
	heartbeats *sql.DB     // further connections
	filled     atomic.Bool // all of heartbeats were opened
	filling    sync.Mutex
	shares     *connShares
	config     *pgx.ConnConfig
	pooled     bool // a pooler is in between
	openedAt   time.Time
	// retired is a time since openedAt, in nanoseconds. Connections that were created up to then must not
	// be used again.
	retired atomic.Int64
}

// session is what the pool records about a connection.
type session struct {
	createdAt time.Time
	usedAt    time.Time // when it was last taken from the pool
}

// sessionKey is the key of the session in a connection's custom data.
const sessionKey = "quittance.session"

func newPostgresDB(cfg *pgx.ConnConfig, pooled bool) *postgresDB {
	p := &postgresDB{config: cfg, pooled: pooled, openedAt: time.Now()}
	set := settings(cfg, SessionSettings)
	if pooled {
		set = func(context.Context, *pgx.Conn) error { return nil }
	}
	connector := withoutCancel(cfg,
		stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			now := time.Now()
			conn.PgConn().CustomData()[sessionKey] = &session{createdAt: now, usedAt: now}
			return set(ctx, conn)
		}),
		stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }), // reuse does
		stdlib.OptionResetSession(p.resetSession))
	p.db, p.heartbeats = openPool(connector, postgresConns), openPool(connector, heartbeatConns)
	return p
}

// openPool returns a pool that keeps as many connections as it may have.
func openPool(connector driver.Connector, conns int) *sql.DB {
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// fillHeartbeats opens all heartbeat connections before their first use, and the pool keeps them:
// otherwise, once other programs use all connections of the server, it would refuse a new one, and the
// service would seem to have lost its database. A connection that cannot be opened is left to the next
// heartbeat. A heartbeat that finds no connection fails with its own error.
func (p *postgresDB) fillHeartbeats(ctx context.Context) {
	if p.filled.Load() || !p.filling.TryLock() { // two concurrent fills would wait for each other
		return
	}
	defer p.filling.Unlock()
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	for range heartbeatConns {
		conn, err := p.heartbeats.Conn(ctx)
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // it goes back to the pool
	}
	p.filled.Store(true)
}

// settings returns a function that executes the settings on a new connection.
// database/sql creates some connections in the background, without a deadline.
func settings(cfg *pgx.ConnConfig, text string) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
		defer cancel()
		_, err := conn.Exec(ctx, text)
		return err
	}
}

// resetSession prepares a connection for its next use. It returns
// driver.ErrBadConn to close the connection when it is retired or does not
// answer a ping.
func (p *postgresDB) resetSession(ctx context.Context, conn *pgx.Conn) error {
	s, ok := conn.PgConn().CustomData()[sessionKey].(*session)
	if !ok || s.createdAt.Sub(p.openedAt) <= time.Duration(p.retired.Load()) {
		return driver.ErrBadConn
	}
	now := time.Now()
	if now.Sub(s.usedAt) > idleCheck {
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		if err := conn.PgConn().Ping(ping); err != nil {
			// If a caller gave up early, the connection may still work.
			if ctx.Err() == nil || time.Since(now) >= pingTimeout/2 {
				p.retireConns(now)
			}
			return driver.ErrBadConn
		}
	}
	s.usedAt = now
	return nil
}

// retireConns makes the pool close all connections that were created before the
// time. When one connection is lost the others usually are, and trying each of
// them takes long.
func (p *postgresDB) retireConns(before time.Time) {
	at := int64(before.Sub(p.openedAt))
	for {
		held := p.retired.Load()
		if held >= at || p.retired.CompareAndSwap(held, at) {
			return
		}
	}
}

// checkServer retires all connections if err means that the server is stopping or takes no writes:
// after a failover a new connection may reach another server. While a server stays read-only, it
// retires them at most once every retireInterval.
func (p *postgresDB) checkServer(err error) {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return
	}
	now := time.Now()
	switch held := time.Duration(p.retired.Load()); {
	case strings.HasPrefix(answer.Code, "57P"):
		p.retireConns(now)
	case answer.Code == readOnlyTransaction && (held == 0 || now.Sub(p.openedAt)-held >= retireInterval):
		p.retireConns(now)
	}
}

// dialer returns the dialer of the connections to the server. Their time limit is the configuration's.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
		},
		Control: setUserTimeout,
	}
}
