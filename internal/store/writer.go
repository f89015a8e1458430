package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// groupLimit is how many transactions one commit of SQLite carries at most.
const groupLimit = 64

// errClosed is returned for work that arrives after the store was closed.
var errClosed = errors.New("the database is closed")

// groupWriter runs all transactions of a SQLite database on one connection
// and commits those that wait together at once: the sync to disk is what a
// commit costs, and they share it. Each of several runs in a savepoint of its
// own, so one that fails takes nothing of another with it.
type groupWriter struct {
	conn  *sql.Conn
	stmts *statements
	bound func(context.Context) (context.Context, context.CancelFunc) // of a statement: bounded
	jobs  chan *job
	quit  chan struct{}
	done  sync.WaitGroup
}

type job struct {
	ctx    context.Context
	fn     func(*Tx) error
	result chan error
	err    error
	panics any
}

func startGroupWriter(conn *sql.Conn) *groupWriter {
	w := &groupWriter{conn: conn, stmts: &statements{on: conn}, bound: bounded, jobs: make(chan *job), quit: make(chan struct{})}
	w.done.Go(w.loop)
	return w
}

// do runs fn in a transaction and returns once it is committed or undone. It
// gives up when ctx ends, or after statementTimeout, while fn waits for its
// turn. Once fn has started, do waits for it even if ctx ends, because the
// caller could not otherwise learn the outcome.
func (w *groupWriter) do(ctx context.Context, fn func(*Tx) error) error {
	j := &job{ctx: ctx, fn: fn, result: make(chan error, 1)}
	turn, cancel := bounded(ctx)
	defer cancel()
	select {
	case w.jobs <- j:
	case <-turn.Done():
		return named(turn, turn.Err())
	case <-w.quit:
		return errClosed
	}
	err := <-j.result
	if j.panics != nil {
		panic(j.panics)
	}
	return err
}

// stop ends the loop after the commit under way.
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
			err := w.commit(group)
			for _, j := range group {
				if j.err == nil {
					j.err = err
				}
				j.result <- j.err
			}
		case <-w.quit:
			return
		}
	}
}

// gather takes what waits beside the first job, without waiting for more.
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

// commit runs the group. It returns the error of the whole, which is that of
// every job without one of its own.
func (w *groupWriter) commit(group []*job) error {
	ctx := context.Background()
	if err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if len(group) == 1 {
		if err := w.runAlone(group[0]); err != nil {
			return w.rollback(ctx) // the job holds its error
		}
	} else {
		for _, j := range group {
			if err := w.runJob(j); err != nil {
				return errors.Join(err, w.rollback(ctx))
			}
		}
	}
	if err := w.exec(ctx, "COMMIT"); err != nil {
		return errors.Join(fmt.Errorf("commit: %w", err), w.rollback(ctx))
	}
	return nil
}

// runAlone runs a job that has the transaction to itself, and keeps its error
// in it, which undoes the transaction. It needs no savepoint; in one, SQLite
// would keep a journal for each statement to undo, and what that costs grows
// with the square of the statements.
func (w *groupWriter) runAlone(j *job) error {
	if j.err = j.ctx.Err(); j.err == nil {
		j.err = w.call(j)
	}
	return j.err
}

// runJob runs one job in a savepoint and keeps its error in it. It returns an
// error only when the transaction as a whole cannot go on.
func (w *groupWriter) runJob(j *job) error {
	if j.err = j.ctx.Err(); j.err != nil {
		return nil //nolint:nilerr // the job holds its error; the transaction goes on
	}
	ctx := context.Background()
	if err := w.exec(ctx, "SAVEPOINT job"); err != nil {
		return err
	}
	if j.err = w.call(j); j.err != nil {
		// Without a savepoint the whole transaction is undone, and the others of
		// the group get the error that undid it.
		if err := w.exec(ctx, "ROLLBACK TO job"); err != nil {
			return errors.Join(j.err, unlessUndone(err))
		}
	}
	return w.exec(ctx, "RELEASE job")
}

// call runs a job's function; a panic is carried to the goroutine that asked.
//
// What ends the caller's context does not end a statement: one that is cut off
// can undo the whole transaction, and with it the work of others. Its own
// deadline does. What follows it would not be in the transaction any more, and
// neither after a full disk: nothing is run.
func (w *groupWriter) call(j *job) (err error) {
	defer func() {
		if j.panics = recover(); j.panics != nil {
			err = fmt.Errorf("panic: %v", j.panics)
		}
	}()
	whole, end := context.WithCancelCause(context.Background())
	defer end(nil)
	err = j.fn(&Tx{queries{
		run:   w.stmts,
		bound: func(context.Context) (context.Context, context.CancelFunc) { return w.bound(whole) },
		failed: func(err error) {
			if Unavailable(err) {
				end(err)
			}
		},
	}})
	return cmp.Or(err, context.Cause(whole))
}

// rollback undoes the transaction.
func (w *groupWriter) rollback(ctx context.Context) error {
	return unlessUndone(w.exec(ctx, "ROLLBACK"))
}

// unlessUndone returns the error of a rollback, or nil when there is nothing left
// to undo: SQLite undoes a whole transaction by itself when the disk is full or
// fails.
func unlessUndone(err error) error {
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
