package indexer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of looking whether a node's headers have true bloom filters.
const (
	// probeBlocks is in how many of the newest blocks a log is looked for.
	probeBlocks = 32
	// probeEvery is how often it is looked for while there was none.
	probeEvery = time.Minute
)

// Blooms is what is known of the bloom filters in a node's headers.
type Blooms string

// What can be known of bloom filters.
const (
	// BloomsUnknown: no log was seen yet to tell by. An empty list of logs that
	// a filter denies is doubted all the same.
	BloomsUnknown Blooms = "unknown"
	// BloomsTrue: they hold the block's logs. An empty list that one denies is
	// doubted; where all logs are known to be in them, blocks are passed over
	// by them.
	BloomsTrue Blooms = "on"
	// BloomsPartial: some of the block's logs are in them. An empty list that
	// one denies is doubted.
	BloomsPartial Blooms = "partial"
	// BloomsNone: they are missing or empty, and say nothing about what is left
	// out.
	BloomsNone Blooms = "off"
)

// probe is what is known of a node's bloom filters.
type probe struct {
	blooms Blooms
	at     time.Time // when a log was looked for; zero for never
}

// blooms returns what is known of the node's bloom filters.
func (ix *Indexer) blooms(n node) Blooms {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if p, ok := ix.probes[n.Node]; ok {
		return p.blooms
	}
	return BloomsUnknown
}

// canSkipByBloom reports whether a block that a header's bloom filter does not
// mention can be passed over.
func (ix *Indexer) canSkipByBloom(n node) bool {
	return ix.Chain.FullBloom && ix.blooms(n) == BloomsTrue
}

// isEmptySuspect reports whether an empty list of logs is to be doubted where the
// header's bloom filter mentions one.
func (ix *Indexer) isEmptySuspect(n node, h chain.Header, filter chain.LogFilter) bool {
	return (ix.Chain.FullBloom || ix.blooms(n) != BloomsNone) && filter.MayMatch(h.Bloom)
}

// learnBlooms notes what a block's header and its logs say of the node's bloom
// filters. Only a first log decides. On a chain that is known for true ones, a
// log that is not in them is a contradiction.
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
	ix.probes[n.Node] = probe{blooms: blooms, at: ix.Now()}
	ix.mu.Unlock()
	level := slog.LevelDebug
	if blooms == BloomsNone {
		level = slog.LevelWarn // what is left out cannot be told by them
	}
	ix.Logger.Log(context.Background(), level, "bloom filters of the headers were checked against logs",
		"chain", ix.Chain.Key, "node", n.String(), "check", string(blooms))
}

// probeBlooms looks for a log in the node's newest blocks to see whether
// their bloom filters are true, unless that is known.
func (ix *Indexer) probeBlooms(ctx context.Context, n node, t heads) error {
	ix.mu.Lock()
	p := ix.probes[n.Node]
	due := (p.blooms == "" || p.blooms == BloomsUnknown) && (p.at.IsZero() || ix.Now().Sub(p.at) >= probeEvery)
	if due {
		ix.probes[n.Node] = probe{BloomsUnknown, ix.Now()}
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
		if chain.IsTooLarge(err) || errors.Is(err, chain.ErrNotFound) || errors.Is(err, chain.ErrUnsupported) {
			return nil // it is looked for again later
		}
		return n.wrap(err)
	}
	return ix.learnBlooms(n, h, logs)
}

// anyLogs returns the header and logs of one of the node's newest blocks: of
// logs that are read, or else all of its newest block.
func (ix *Indexer) anyLogs(ctx context.Context, n node, t heads) (chain.Header, []types.Log, error) {
	last := t.head.Number
	logs, err := n.LogsInRange(ctx, last-min(last, probeBlocks-1), last, ix.decoder.filter())
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

// checkBloom fails when the header of a block on a chain that is known for true
// bloom filters has one that does not hold a log that the node returned.
func (ix *Indexer) checkBloom(n node, h chain.Header, l *types.Log) error {
	if !ix.Chain.FullBloom || h.Bloom == (types.Bloom{}) || h.BloomContains(l) {
		return nil
	}
	return n.contradicts("returned a log of transaction %s in block %d, which the block's bloom filter does not hold", l.TxHash, h.Number)
}
