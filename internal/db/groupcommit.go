package db

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

// groupWriter runs all transactions of a SQLite database on one connection. Transactions that wait at
// the same time share one commit, since a commit's cost is its sync to disk. If one fails, the others
// stay intact.
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

// do runs fn in a transaction and returns once it is committed or rolled back. It gives up if ctx
// ends, or statementTimeout passes, before fn has started. Once fn has started, do waits even if ctx
// ends, because the caller could not otherwise learn the outcome. If ctx has ended before its turn, fn
// is not run.
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
			w.commit(w.gather(j))
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

// commit runs the group and answers its jobs.
//
// They share a transaction without savepoints. If one fails after it changed a row, or the commit
// fails, each runs again in a separate transaction. In a savepoint, SQLite copies each page that a
// statement changes, at a cost that grows with the square of the statements, and keeps the copies in
// memory: hundreds of megabytes for a block of many payments in a large database.
//
// If the database does not answer, the whole group gets that error, because each job would wait as
// long again.
func (w *groupWriter) commit(group []*job) {
	err := w.transaction(group)
	if err == nil || len(group) == 1 || Unavailable(err) {
		answer(group, err)
		return
	}
	for i := range group {
		err := w.transaction(group[i : i+1])
		if Unavailable(err) {
			answer(group[i:], err)
			return
		}
		answer(group[i:i+1], err)
	}
}

// answer gives the jobs the error of their transaction, or each its own. The former comes first: a job
// may have failed because of rows of another one, which were rolled back.
func answer(group []*job, err error) {
	for _, j := range group {
		j.result <- cmp.Or(err, j.err)
	}
}

// transaction runs the group in one transaction, and rolls it back if it returns an error.
func (w *groupWriter) transaction(group []*job) error {
	ctx := context.Background()
	if err := w.begin(ctx); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if err := w.run(ctx, j); err != nil {
			return cmp.Or(w.rollback(ctx), err)
		}
	}
	if err := w.exec(ctx, "COMMIT"); err != nil {
		return cmp.Or(w.rollback(ctx), fmt.Errorf("commit: %w", err))
	}
	return nil
}

// begin begins a transaction. It first rolls back a transaction that is still open because its
// rollback failed.
func (w *groupWriter) begin(ctx context.Context) error {
	err := w.exec(ctx, "BEGIN IMMEDIATE")
	if err == nil || Unavailable(err) {
		return err
	}
	if err := w.rollback(ctx); err != nil {
		return err
	}
	return w.exec(ctx, "BEGIN IMMEDIATE")
}

// run runs a job and records its error. It returns an error, this or another, if the transaction has
// to be rolled back: a job that failed before it changed a row needs no rollback.
func (w *groupWriter) run(ctx context.Context, j *job) error {
	before, err := w.changes(ctx)
	if err != nil {
		return err
	}
	if j.err = w.call(j); j.err == nil || Unavailable(j.err) {
		return j.err
	}
	if after, err := w.changes(ctx); err != nil || after != before {
		return j.err
	}
	return nil
}

// changes returns how many rows the connection has changed.
func (w *groupWriter) changes(ctx context.Context) (int64, error) {
	return QueryRow(ctx, &Queries{run: sqlRunner{w.stmts}}, ScanSeq, "SELECT total_changes()")
}

// call runs a job's function. It passes a panic on to the goroutine that called do.
//
// The end of the caller's context does not interrupt a statement, because an interrupted statement can
// roll back the whole transaction and with it the work of others. A statement's own timeout does
// interrupt it. After a timeout or a full disk no further statement runs, because it would run outside
// the transaction, and the function counts as failed, whatever it returns.
func (w *groupWriter) call(j *job) (err error) {
	whole, end := context.WithCancelCause(context.Background())
	defer end(nil)
	defer func() {
		if j.panics = recover(); j.panics != nil {
			err = fmt.Errorf("panic: %v", j.panics)
		}
		if cause := context.Cause(whole); !Unavailable(err) {
			err = cmp.Or(cause, err)
		}
	}()
	return j.fn(&Tx{HeldSince: time.Now(), Queries: Queries{
		run:     sqlRunner{w.stmts},
		timeout: func(context.Context) (context.Context, context.CancelFunc) { return w.timeout(whole) },
		onError: func(err error) {
			if Unavailable(err) {
				end(err)
			}
		},
	}})
}

// rollback rolls back the open transaction, if there is one: SQLite rolls it back itself when the disk
// is full or fails.
func (w *groupWriter) rollback(ctx context.Context) error {
	err := w.exec(ctx, "ROLLBACK")
	var answer *sqlite.Error
	if err == nil || errors.As(err, &answer) && answer.Code() == sqlite3.SQLITE_ERROR {
		return nil
	}
	return fmt.Errorf("roll back: %w", err)
}

func (w *groupWriter) exec(ctx context.Context, statement string) error {
	_, err := w.stmts.ExecContext(ctx, statement)
	return err
}
