package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// connectTimeout bounds making a connection to one address of the server.
	connectTimeout = 5 * time.Second
	// idleCheck is after how long without use a connection is asked whether it
	// works before it is used again, and pingTimeout for how long it may think.
	idleCheck   = time.Second
	pingTimeout = 2 * time.Second
	// judgeInterval is how often all connections are condemned at most because the
	// server takes no writes.
	judgeInterval = 5 * time.Second
	// keepAliveIdle, keepAliveInterval and keepAliveCount have the system notice
	// within 11 s that nobody answers on a connection that is silent, and
	// userTimeout after 10 s that nobody acknowledges what was sent.
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
	userTimeout       = 10 * time.Second
)

// sessionSettings are those of every connection.
//
// A plan made while a table is small must not read it from end to end, for it
// is kept when the table has grown; every statement has its index.
//
// The server ends by itself what a client that is lost has left behind, so that
// its locks are free when the next one needs them. Statements of lost clients
// that wait for a lock end (statement_timeout) before the lost client that
// holds the lock is disconnected (idle_in_transaction_session_timeout), so they
// do not inherit the lock one after another. A statement times out on the
// server before its caller gives up, which keeps the connection.
var sessionSettings = fmt.Sprintf("SET enable_seqscan = off; SET jit = off; "+
	"SET statement_timeout = %d; SET idle_in_transaction_session_timeout = %d; %s",
	(statementTimeout - 2*time.Second).Milliseconds(), statementTimeout.Milliseconds(), serverKeepAlive)

// migrationSettings are those of the connections that change the schema.
var migrationSettings = fmt.Sprintf("SET statement_timeout = %d; SET idle_in_transaction_session_timeout = %[1]d; %s",
	migrateTimeout.Milliseconds(), serverKeepAlive)

// serverKeepAlive has the server notice a lost client as the client notices a
// lost server.
var serverKeepAlive = fmt.Sprintf("SET tcp_keepalives_idle = %d; SET tcp_keepalives_interval = %d; SET tcp_keepalives_count = %d; SET tcp_user_timeout = %d",
	keepAliveIdle/time.Second, keepAliveInterval/time.Second, keepAliveCount, userTimeout.Milliseconds())

// postgresDB is a pool of connections to PostgreSQL.
type postgresDB struct {
	db     *sql.DB
	config *pgx.ConnConfig
	begun  time.Time
	// condemned is the time since begun before which connections were made that
	// are not to be used again, in nanoseconds.
	condemned atomic.Int64
}

// session is what the pool knows of a connection.
type session struct {
	made time.Time
	used time.Time // when it was last taken from the pool
}

// sessionKey is the key of the session in a connection's custom data.
const sessionKey = "quittance.session"

func newPostgresDB(cfg *pgx.ConnConfig) *postgresDB {
	p := &postgresDB{config: cfg, begun: time.Now()}
	set := settings(sessionSettings)
	p.db = stdlib.OpenDB(*cfg,
		stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			now := time.Now()
			conn.PgConn().CustomData()[sessionKey] = &session{made: now, used: now}
			return set(ctx, conn)
		}),
		stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }), // reuse does
		stdlib.OptionResetSession(p.reuse))
	p.db.SetMaxOpenConns(postgresConns)
	p.db.SetMaxIdleConns(postgresConns)
	return p
}

// settings returns a function that executes the settings on a new connection.
// database/sql makes some connections in the background, without a deadline.
func settings(text string) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		_, err := conn.Exec(ctx, text)
		return err
	}
}

// reuse prepares a connection that was used before. It returns
// driver.ErrBadConn for one that is to be closed: it does not answer, or was
// made before one that did not.
func (p *postgresDB) reuse(ctx context.Context, conn *pgx.Conn) error {
	s, ok := conn.PgConn().CustomData()[sessionKey].(*session)
	if !ok || s.made.Sub(p.begun) <= time.Duration(p.condemned.Load()) {
		return driver.ErrBadConn
	}
	now := time.Now()
	if now.Sub(s.used) > idleCheck {
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		if err := conn.PgConn().Ping(ping); err != nil {
			// A caller that gave up at once says nothing about the connection.
			if ctx.Err() == nil || time.Since(now) >= pingTimeout/2 {
				p.condemn(now)
			}
			return driver.ErrBadConn
		}
	}
	s.used = now
	return nil
}

// condemn has all connections closed that were made before the time. When one
// is lost the others usually are, and to try each of them takes long.
func (p *postgresDB) condemn(before time.Time) {
	at := int64(before.Sub(p.begun))
	for {
		held := p.condemned.Load()
		if held >= at || p.condemned.CompareAndSwap(held, at) {
			return
		}
	}
}

// judge condemns the connections when an error says that the server stops, or
// takes no writes any more: after a failover the next connection may lead to
// another server. A server that stays read-only is not asked again at once.
func (p *postgresDB) judge(err error) {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return
	}
	now := time.Now()
	switch held := time.Duration(p.condemned.Load()); {
	case strings.HasPrefix(answer.Code, "57P"):
		p.condemn(now)
	case answer.Code == readOnlyTransaction && (held == 0 || now.Sub(p.begun)-held >= judgeInterval):
		p.condemn(now)
	}
}

// dialer returns what makes the network connections.
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
		},
		Control: setUserTimeout,
	}
}
