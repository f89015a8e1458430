package indexer

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of probing a node's bloom filters.
const (
	// probeBlocks is how many of the newest blocks are searched for a log.
	probeBlocks = 32
	// probeEvery is the time between two probes if no log was found.
	probeEvery = 10 * time.Minute
)

// Blooms is how far the bloom filters in a node's headers can be used.
type Blooms string

// States of a node's bloom filters.
const (
	// BloomsUnknown: no log was seen yet. Empty answers are verified if a filter contradicts them.
	BloomsUnknown Blooms = "unknown"
	// BloomsTrue: the filters contain the block's logs. Empty answers are verified if a filter contradicts them. On a
	// chain with FullBloom, blocks are skipped by their filters.
	BloomsTrue Blooms = "on"
	// BloomsPartial: the filters contain some of the block's logs. Empty answers are verified if a filter contradicts
	// them.
	BloomsPartial Blooms = "partial"
	// BloomsNone: the filters are missing or empty, and cannot contradict an answer.
	BloomsNone Blooms = "off"
)

// probe is the state of a node's bloom filters.
type probe struct {
	blooms Blooms
	at     time.Time // of the last search for a log; zero if there was no search
}

// blooms returns the state of the node's bloom filters.
func (ix *Indexer) blooms(n node) Blooms {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if p, ok := ix.probes[n.Node]; ok {
		return p.blooms
	}
	return BloomsUnknown
}

// canSkipByBloom reports whether a block may be skipped when its bloom filter excludes the logs.
func (ix *Indexer) canSkipByBloom(n node) bool {
	return ix.cfg.Chain.FullBloom && ix.blooms(n) == BloomsTrue
}

// isEmptySuspect reports whether an empty list of logs must be verified because the block's bloom filter may match.
func (ix *Indexer) isEmptySuspect(n node, h chain.Header, filter chain.LogFilter) bool {
	return (ix.cfg.Chain.FullBloom || ix.blooms(n) != BloomsNone) && filter.MayMatch(h.Bloom)
}

// learnBlooms sets the state of the node's bloom filters from the first logs that it returns. On a chain with
// FullBloom, a log that is not in its filter is a contradiction.
func (ix *Indexer) learnBlooms(n node, h chain.Header, logs []types.Log) error {
	if len(logs) == 0 || ix.blooms(n) != BloomsUnknown {
		return nil
	}
	for i := range logs {
		if err := ix.checkBloom(n, h, &logs[i]); err != nil {
			return err
		}
	}
	blooms := BloomsTrue
	switch {
	case !h.HasBloom() || h.Bloom == (types.Bloom{}):
		blooms = BloomsNone
	case slices.ContainsFunc(logs, func(l types.Log) bool { return !h.BloomContains(&l) }):
		blooms = BloomsPartial
	}
	ix.setBlooms(n, blooms)
	return nil
}

func (ix *Indexer) setBlooms(n node, blooms Blooms) {
	ix.mu.Lock()
	ix.probes[n.Node] = probe{blooms: blooms, at: ix.cfg.Now()}
	ix.mu.Unlock()
	level := slog.LevelDebug
	if blooms == BloomsNone {
		level = slog.LevelWarn // omitted logs cannot be detected with them
	}
	ix.cfg.Logger.Log(context.Background(), level, "bloom filters checked",
		"chain", ix.cfg.Chain.Key, "node", n.String(), "check", string(blooms))
}

// probeBlooms searches the node's newest blocks for a log to learn the state of its bloom filters, if that is unknown.
func (ix *Indexer) probeBlooms(ctx context.Context, n node, t heads) error {
	ix.mu.Lock()
	p := ix.probes[n.Node]
	due := (p.blooms == "" || p.blooms == BloomsUnknown) && (p.at.IsZero() || ix.cfg.Now().Sub(p.at) >= probeEvery)
	if due {
		ix.probes[n.Node] = probe{BloomsUnknown, ix.cfg.Now()}
	}
	ix.mu.Unlock()
	if !due {
		return nil
	}
	if !t.head.HasBloom() {
		ix.setBlooms(n, BloomsNone)
		return nil
	}
	h, logs, err := ix.anyLogs(ctx, n, t)
	if err != nil {
		if chain.IsRefusal(err) && ctx.Err() == nil {
			return nil // it is looked for again later
		}
		return n.wrap(err)
	}
	return ix.learnBlooms(n, h, logs)
}

// anyLogs returns the header and logs of one of the node's newest blocks: the logs that the decoder selects or,
// without such logs, all logs of the newest block.
func (ix *Indexer) anyLogs(ctx context.Context, n node, t heads) (chain.Header, []types.Log, error) {
	last := t.head.Number
	count := max(1, min(probeBlocks, n.Limit(chain.KindRange).Next()))
	logs, err := n.LogsInRange(ctx, last-min(last, count-1), last, ix.decoder.filter())
	if err != nil {
		return chain.Header{}, nil, err
	}
	if len(logs) > 0 {
		number := logs[len(logs)-1].BlockNumber
		headers, err := n.headers(ctx, number)
		if err != nil {
			return chain.Header{}, nil, err
		}
		h := headers[0]
		return h, slices.DeleteFunc(logs, func(l types.Log) bool { return invoice.Hash(l.BlockHash) != h.Hash }), nil
	}
	receipts, err := n.BlockReceipts(ctx, t.head.Hash)
	for _, r := range receipts {
		logs = append(logs, r.Logs...)
	}
	return t.head, logs, err
}

// checkBloom fails, on a chain with FullBloom, when a header's bloom filter does not
// contain a log that the node returned for the block.
func (ix *Indexer) checkBloom(n node, h chain.Header, l *types.Log) error {
	if !ix.cfg.Chain.FullBloom || h.Bloom == (types.Bloom{}) || h.BloomContains(l) {
		return nil
	}
	return n.contradicts("returned a log of transaction %s in block %d, which the block's bloom filter does not hold", l.TxHash, h.Number)
}
