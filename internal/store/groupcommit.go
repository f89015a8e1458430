package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// groupLimit bounds the transactions that one commit of SQLite carries.
const groupLimit = 64

// errClosed is returned for transactions that begin after the store was closed.
var errClosed = errors.New("the database is closed")

// groupWriter runs all transactions of a SQLite database on one connection and
// commits those that wait at the same time together, since a commit's cost is
// its sync to disk. One that fails leaves the others intact.
type groupWriter struct {
	conn    *sql.Conn
	stmts   *statements
	timeout func(context.Context) (context.Context, context.CancelFunc) // of a statement: bounded
	jobs    chan *job
	quit    chan struct{}
	done    sync.WaitGroup
}

type job struct {
	ctx    context.Context
	fn     func(*Tx) error
	result chan error
	err    error
	panics any
}

func startGroupWriter(conn *sql.Conn) *groupWriter {
	w := &groupWriter{conn: conn, stmts: &statements{on: conn}, timeout: withStatementTimeout, jobs: make(chan *job), quit: make(chan struct{})}
	w.done.Go(w.loop)
	return w
}

// do runs fn in a transaction and returns once it is committed or rolled back.
// It gives up if ctx ends, or statementTimeout passes, before fn starts. Once
// fn has started, do waits for it even if ctx ends, because the caller could
// not otherwise learn the outcome.
func (w *groupWriter) do(ctx context.Context, fn func(*Tx) error) error {
	j := &job{ctx: ctx, fn: fn, result: make(chan error, 1)}
	turn, cancel := withStatementTimeout(ctx)
	defer cancel()
	select {
	case w.jobs <- j:
	case <-turn.Done():
		return classify(turn, turn.Err())
	case <-w.quit:
		return errClosed
	}
	err := <-j.result
	if j.panics != nil {
		panic(j.panics)
	}
	return err
}

// stop ends the loop after the current commit.
func (w *groupWriter) stop() error {
	close(w.quit)
	w.done.Wait()
	return errors.Join(w.stmts.close(), w.conn.Close())
}

func (w *groupWriter) loop() {
	for {
		select {
		case j := <-w.jobs:
			group := w.gather(j)
			w.commit(group)
			for _, j := range group {
				j.result <- j.err
			}
		case <-w.quit:
			return
		}
	}
}

// gather returns the first job and those that are already waiting.
func (w *groupWriter) gather(first *job) []*job {
	group := []*job{first}
	for len(group) < groupLimit {
		select {
		case j := <-w.jobs:
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// commit runs the group and records the jobs' errors.
//
// Jobs seldom fail, so they share a transaction without savepoints, and if one of
// several fails, all run again, each in a transaction of its own. In a savepoint,
// SQLite copies each page that a statement changes, at a cost that grows with the
// square of the statements, and keeps the copies in memory: hundreds of megabytes
// for a block of many payments in a large database.
//
// If the database does not answer, the whole group has that error, since each job
// would wait as long again.
func (w *groupWriter) commit(group []*job) {
	failed, err := w.transaction(group)
	if !failed || len(group) == 1 || Unavailable(err) {
		failJobs(group, err)
		return
	}
	for i := range group {
		_, err := w.transaction(group[i : i+1])
		if Unavailable(err) {
			failJobs(group[i:], err)
			return
		}
		failJobs(group[i:i+1], err)
	}
}

// failJobs gives an error, if it is one, to the jobs that have none of their own.
func failJobs(group []*job, err error) {
	for _, j := range group {
		j.err = cmp.Or(j.err, err)
	}
}

// transaction runs the group in one transaction. If a job fails, that is rolled back,
// failed is true, and the error is the job's.
func (w *groupWriter) transaction(group []*job) (failed bool, err error) {
	ctx := context.Background()
	if err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return false, fmt.Errorf("begin a transaction: %w", err)
	}
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if j.err = w.call(j); j.err != nil {
			if err := w.rollback(ctx); err != nil {
				return false, fmt.Errorf("roll back: %w", err)
			}
			return true, j.err
		}
	}
	if err := w.exec(ctx, "COMMIT"); err != nil {
		return false, errors.Join(fmt.Errorf("commit: %w", err), w.rollback(ctx))
	}
	return false, nil
}

// call runs a job's function. A panic is carried to the goroutine that called
// do.
//
// The end of the caller's context does not interrupt a statement, since an
// interrupted statement can roll back the whole transaction and with it the
// work of others. A statement's own timeout does. After a timeout or a full
// disk no further statement runs, because it would run outside the transaction.
func (w *groupWriter) call(j *job) (err error) {
	defer func() {
		if j.panics = recover(); j.panics != nil {
			err = fmt.Errorf("panic: %v", j.panics)
		}
	}()
	whole, end := context.WithCancelCause(context.Background())
	defer end(nil)
	err = j.fn(&Tx{heldSince: time.Now(), queries: queries{
		run:     sqlRunner{w.stmts},
		timeout: func(context.Context) (context.Context, context.CancelFunc) { return w.timeout(whole) },
		onError: func(err error) {
			if Unavailable(err) {
				end(err)
			}
		},
	}})
	return cmp.Or(err, context.Cause(whole))
}

// rollback rolls back the transaction, if there is one: SQLite rolls it back itself
// when the disk is full or fails.
func (w *groupWriter) rollback(ctx context.Context) error {
	err := w.exec(ctx, "ROLLBACK")
	var answer *sqlite.Error
	if errors.As(err, &answer) && answer.Code() == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}

func (w *groupWriter) exec(ctx context.Context, statement string) error {
	_, err := w.stmts.ExecContext(ctx, statement)
	return err
}
