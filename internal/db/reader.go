package db

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Reader reads outside a transaction. The standby may answer if the context is OnStandby's and the
// Store has a standby.
type Reader struct {
	Queries
}

// Reader returns a Reader of the database.
func (s *DB) Reader() *Reader {
	q := s.Queries
	q.standby = s.standby
	return &Reader{q}
}

// OnStandby returns a context under which a Reader may use the standby. The result includes everything
// that any process committed and acknowledged before this call, and is never older than an earlier
// read under the context: once the primary answered, it answers the rest.
func OnStandby(ctx context.Context) context.Context {
	return context.WithValue(ctx, standbyKey{}, new(standbyReads))
}

// standbyKey is the context key of *standbyReads.
type standbyKey struct{}

// standbyReads is what the reads of one request know about the standby.
type standbyReads struct {
	mu        sync.Mutex // guards the fields below
	atPrimary bool       // the primary answers
	known     bool       // target is set
	target    walState   // the position that the next read requires
}

// next returns the position that the next read requires.
func (r *standbyReads) next(ctx context.Context, position func(context.Context) (walState, error)) (walState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.atPrimary {
		return walState{}, errAtPrimary
	}
	if !r.known {
		var err error
		if r.target, err = position(ctx); err != nil {
			return walState{}, fmt.Errorf("%w: %w", errNoPosition, err)
		}
		r.known = true
	}
	return r.target, nil
}

// advance raises the position that the following reads require.
func (r *standbyReads) advance(lsn int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target.lsn = max(r.target.lsn, lsn)
}

// toPrimary sends the following reads to the primary.
func (r *standbyReads) toPrimary() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.atPrimary = true
}

// Reasons for not asking the standby.
var (
	errAtPrimary  = errors.New("the primary answered a read before")
	errNoPosition = errors.New("the primary's position is not known")
	errNotInUse   = errors.New("the standby is not in use")
	errBusy       = errors.New("all connections to the standby are in use")
)

// query runs a query on the standby if the context allows it. If done is false, the primary has to run
// it, from its first row.
func (s *standby) query(ctx context.Context, each func(Scanner) (bool, error), query string, args []any) (done bool, err error) {
	reads, ok := ctx.Value(standbyKey{}).(*standbyReads)
	if !ok {
		return false, nil
	}
	err = s.read(ctx, reads, each, query, args)
	if err == nil {
		s.cfg.OnRead("standby", "replayed")
		return true, nil
	}
	if ctx.Err() != nil { // no caller waits for the primary's answer
		return true, err
	}
	reason, leave := verdict(err)
	if leave {
		s.leave(err)
	}
	reads.toPrimary()
	s.cfg.OnRead("primary", reason)
	return false, nil
}

// verdict returns why the primary runs a query, and whether to stop using the standby.
func verdict(err error) (reason string, leave bool) {
	var answer *pgconn.PgError
	switch {
	case errors.Is(err, errAtPrimary):
		return "earlier", false
	case errors.Is(err, errNoPosition):
		return "position", false
	case errors.Is(err, errNotInUse):
		return "left", false
	case errors.Is(err, errBusy):
		return "busy", false
	case errors.Is(err, errBehind):
		return "behind", true
	case unsuitable(err):
		return "unsuitable", true
	case errors.As(err, &answer) && (answer.Code == "40001" || answer.Code == "40P01" || answer.Code == "57014"):
		return "conflict", false // with the replay, or the statement took too long
	}
	return "failed", Unavailable(err) // another error may be the statement's
}

// read runs a query on the standby.
func (s *standby) read(ctx context.Context, reads *standbyReads, each func(Scanner) (bool, error), query string, args []any) error {
	if !s.inUse.Load() {
		return errNotInUse
	}
	target, err := reads.next(ctx, s.primaryPosition)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, StandbyTimeout, ErrTimeout)
	defer cancel()
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.slots.Release(1)
	db := s.db.Load()
	err = db.withConn(ctx, func(conn *pgx.Conn) error {
		err := queryReplayed(ctx, conn, &target, each, query, args)
		if !errors.Is(err, errBehind) {
			return err
		}
		if err := awaitReplay(ctx, conn, target); err != nil {
			return err
		}
		return queryReplayed(ctx, conn, &target, each, query, args)
	})
	err = classify(ctx, err)
	db.checkServer(err)
	reads.advance(target.lsn)
	return err
}

// enter waits for one of the connections, for at most StandbyWait.
func (s *standby) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StandbyWait)
	defer cancel()
	if s.slots.Acquire(ctx, 1) != nil {
		return errBusy
	}
	return nil
}

// queryReplayed runs a query on a standby that has replayed the target, in one round trip, and sets
// the target to the state that the query may have seen. Without the target it does not call each.
func queryReplayed(ctx context.Context, conn *pgx.Conn, target *walState, each func(Scanner) (bool, error), query string, args []any) (err error) {
	var b pgx.Batch
	b.Queue(standbyState)
	b.Queue(query, args...)
	b.Queue(standbyState) // a standby may have been promoted
	results := conn.SendBatch(ctx, &b)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	before, err := scanWALState(results.QueryRow())
	if err != nil {
		return err
	}
	if err := before.serves(*target); err != nil {
		return err
	}
	if err := readBatchRows(results, each); err != nil {
		return err
	}
	after, err := scanWALState(results.QueryRow())
	if err != nil {
		return err
	}
	if err := after.serves(*target); err != nil {
		return err
	}
	target.lsn = after.lsn
	return nil
}

// withConn calls fn with a connection.
func (p *postgresDB) withConn(ctx context.Context, fn func(*pgx.Conn) error) (err error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreDone(conn.Close())) }()
	return conn.Raw(func(driverConn any) error { return fn(driverConn.(*stdlib.Conn).Conn()) })
}
