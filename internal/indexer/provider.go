package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// node is a provider as the watcher asks it. Its errors are *providerError, so
// that they can be told from those of the ledger.
type node struct{ *chain.Provider }

// providerError is what went wrong with a provider. Another one may do better.
type providerError struct {
	of    *chain.Provider
	err   error
	noted bool   // in the provider's health, by whoever made this error
	from  uint64 // block from which on what it told is to be read again; 0 for none
}

func (e *providerError) Error() string { return e.err.Error() }
func (e *providerError) Unwrap() error { return e.err }

// note tells the provider's health of the error, unless that was done.
func (e *providerError) note() {
	if !e.noted {
		e.noted = true
		e.of.Failed(e.err)
	}
}

// since says that what the provider told of a block, and of those above, is to
// be read again.
func (e *providerError) since(block uint64) error {
	e.from = block
	return e
}

// failed marks an error as the provider's.
func (n node) failed(err error) error {
	if err == nil {
		return nil
	}
	return &providerError{of: n.Provider, err: err}
}

// contradicts sets the provider aside for an answer that cannot be true beside
// what else is known, and returns that as its error.
func (n node) contradicts(format string, args ...any) *providerError {
	reason := fmt.Sprintf(format, args...)
	n.SetAside(reason)
	return &providerError{of: n.Provider, err: fmt.Errorf("%s %s", n, reason), noted: true}
}

// ready holds the chain's configuration against the provider, if that was not
// done.
func (n node) ready(ctx context.Context) error {
	err := n.Provider.Ready(ctx)
	if errors.Is(err, chain.ErrMismatch) {
		return &providerError{of: n.Provider, err: err, noted: true}
	}
	return n.failed(err)
}

// told is what a provider says of its chain: its newest block, and the newest
// one that the tag of finality holds for, which is zero where there is none.
type told struct{ head, tagged chain.Header }

// head asks for the provider's newest block.
func (n node) head(ctx context.Context, tag string) (t told, err error) {
	if t.head, t.tagged, err = n.HeadAndTagged(ctx, tag); err != nil {
		return told{}, n.failed(err)
	}
	if err := n.SawHead(t.head); err != nil {
		return told{}, &providerError{of: n.Provider, err: err, noted: true}
	}
	return t, nil
}

func (n node) headers(ctx context.Context, numbers ...uint64) ([]chain.Header, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	headers, err := n.Headers(ctx, numbers)
	return headers, n.failed(err)
}

func (n node) logsOfBlocks(ctx context.Context, blocks []invoice.Hash, f chain.LogFilter) ([][]types.Log, error) {
	if len(blocks) == 0 {
		return nil, nil
	}
	logs, err := n.LogsOfBlocks(ctx, blocks, f)
	return logs, n.failed(err)
}

// receipts returns the receipts of transactions by their hash.
func (n node) receipts(ctx context.Context, txs []common.Hash) (map[common.Hash]*chain.Receipt, error) {
	found := make(map[common.Hash]*chain.Receipt, len(txs))
	if len(txs) == 0 {
		return found, nil
	}
	receipts, err := n.Receipts(ctx, txs)
	for _, r := range receipts {
		found[r.TxHash] = r
	}
	return found, n.failed(err)
}

// try does something with the provider that is to be asked first, and as long
// as it fails by the provider's fault, with the next. It returns the first
// provider's error when all failed, and any other error at once. A turn above
// 0 begins with a later one, to spread the work.
func (w *Watcher) try(ctx context.Context, turn int, do func(node) error) error {
	var first error
	tried := map[*chain.Provider]bool{}
	for {
		usable := slices.DeleteFunc(w.Pool.Usable(), func(p *chain.Provider) bool { return tried[p] })
		if len(usable) == 0 {
			return first
		}
		p := usable[turn%len(usable)]
		tried[p] = true
		err := do(node{p})
		var failed *providerError
		switch {
		case err == nil:
			p.Worked()
			return nil
		case ctx.Err() != nil || !errors.As(err, &failed):
			return err
		}
		failed.note()
		w.Logger.Debug("asking another provider", "chain", w.Chain.Key, "provider", p.String(), "err", err)
		if first == nil || errors.Is(first, errBehind) {
			first = err
		}
	}
}
