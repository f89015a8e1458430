package indexer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// errInjected is the error of a failing ledger.
var errInjected = errors.New("the database is gone")

// faultyLedger is the real ledger on a database that can fail before a transaction, or lose
// the response of a commit. It checks every block that an indexer reports as final.
type faultyLedger struct {
	Ledger
	judge   func(final invoice.Header)
	gap     func() // called when indexing starts above a gap
	skipped func() // called when blocks are read without some of their transactions

	mu    sync.Mutex
	fails int  // the nth change from now on fails; 0 to fail no change
	after bool // the failing change is committed
}

// failAtRandom makes the nth change from now on fail.
func (l *faultyLedger) failAtRandom(nth int, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails, l.after = nth, after
}

// change makes a change of the ledger, which may fail.
func (l *faultyLedger) change(do func() error) error {
	l.mu.Lock()
	fails := l.fails == 1
	l.fails = max(0, l.fails-1)
	after := l.after
	l.mu.Unlock()
	if fails && !after {
		return errInjected
	}
	if err := do(); err != nil || !fails {
		return err
	}
	return errInjected
}

func (l *faultyLedger) lookForUnread(blocks []ledger.Block) {
	if slices.ContainsFunc(blocks, func(b ledger.Block) bool { return len(b.Unread) > 0 }) {
		l.skipped()
	}
}

func (l *faultyLedger) Start(ctx context.Context, key string, at invoice.Header, from uint64) error {
	l.judge(at)
	if from <= at.Number {
		l.gap()
	}
	return l.change(func() error { return l.Ledger.Start(ctx, key, at, from) })
}

func (l *faultyLedger) Observe(ctx context.Context, key string, blocks []ledger.Block) error {
	l.lookForUnread(blocks)
	return l.change(func() error { return l.Ledger.Observe(ctx, key, blocks) })
}

func (l *faultyLedger) Rollback(ctx context.Context, key string, to invoice.Header) error {
	return l.change(func() error { return l.Ledger.Rollback(ctx, key, to) })
}

func (l *faultyLedger) Confirm(ctx context.Context, key string, line invoice.Header, revision int64, unfinal uint64) (more bool, err error) {
	err = l.change(func() error {
		more, err = l.Ledger.Confirm(ctx, key, line, revision, unfinal)
		if err == nil {
			l.judge(line)
		}
		return err
	})
	return more, err
}

func (l *faultyLedger) Fill(ctx context.Context, key string, next uint64, blocks []ledger.Block, through invoice.Header) error {
	l.lookForUnread(blocks)
	return l.change(func() error {
		err := l.Ledger.Fill(ctx, key, next, blocks, through)
		if err == nil {
			l.judge(through)
		}
		return err
	})
}

func (l *faultyLedger) Halt(ctx context.Context, key, reason string) error {
	return l.change(func() error { return l.Ledger.Halt(ctx, key, reason) })
}
