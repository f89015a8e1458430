package indexer

import (
	"context"
	"errors"
	"sync"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// errShaken is what a shaky ledger fails with.
var errShaken = errors.New("the database is gone")

// shakyLedger is the real ledger on a database that can fail before a
// transaction, or after it while its answer is under way. It holds every final
// block that an indexer names against the chain.
type shakyLedger struct {
	Ledger
	judge func(final invoice.Header)
	gap   func() // reading begins above a gap

	mu    sync.Mutex
	fails int  // at the nth change from now on; 0 for never
	after bool // the change is done all the same
}

// shake has the nth change from now on fail.
func (l *shakyLedger) shake(nth int, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails, l.after = nth, after
}

// change makes a change of the ledger, or not.
func (l *shakyLedger) change(do func() error) error {
	l.mu.Lock()
	fails := l.fails == 1
	l.fails = max(0, l.fails-1)
	after := l.after
	l.mu.Unlock()
	if fails && !after {
		return errShaken
	}
	if err := do(); err != nil || !fails {
		return err
	}
	return errShaken
}

func (l *shakyLedger) Start(ctx context.Context, key string, at invoice.Header, from uint64) error {
	l.judge(at)
	if from <= at.Number {
		l.gap()
	}
	return l.change(func() error { return l.Ledger.Start(ctx, key, at, from) })
}

func (l *shakyLedger) Observe(ctx context.Context, key string, blocks []settle.Block) error {
	return l.change(func() error { return l.Ledger.Observe(ctx, key, blocks) })
}

func (l *shakyLedger) Rollback(ctx context.Context, key string, to invoice.Header) error {
	return l.change(func() error { return l.Ledger.Rollback(ctx, key, to) })
}

func (l *shakyLedger) Confirm(ctx context.Context, key string, line invoice.Header, revision int64) error {
	return l.change(func() error {
		err := l.Ledger.Confirm(ctx, key, line, revision)
		if err == nil {
			l.judge(line)
		}
		return err
	})
}

func (l *shakyLedger) Fill(ctx context.Context, key string, next uint64, blocks []settle.Block, through invoice.Header) error {
	return l.change(func() error {
		err := l.Ledger.Fill(ctx, key, next, blocks, through)
		if err == nil {
			l.judge(through)
		}
		return err
	})
}

func (l *shakyLedger) Halt(ctx context.Context, key, reason string) error {
	return l.change(func() error { return l.Ledger.Halt(ctx, key, reason) })
}
