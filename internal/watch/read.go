package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// Limits of one round's reading.
const (
	// maxBlocks is how many blocks are read one by one in a round. Further
	// behind the finality line, whole ranges are read instead, of at least as
	// many blocks. They end as many below the line: a backend of the node that
	// lags leaves the logs of its missing blocks out of a range's answer, and
	// nothing in the answer tells.
	maxBlocks = 64
	// maxAccounts is how many accounts the ledger is asked about at once.
	maxAccounts = 1000
)

// read records the next blocks of the node's chain, of which first follows the
// newest that was read.
func (w *Watcher) read(ctx context.Context, src Source, first, head chain.Header, line uint64) error {
	var blocks []settle.Block
	var err error
	if line >= first.Number+2*maxBlocks {
		blocks, err = w.readRange(ctx, src, first, line-maxBlocks)
	} else {
		blocks, err = w.readUpTo(ctx, src, first, head)
	}
	if err != nil {
		return err
	}
	if err := w.Ledger.Observe(ctx, w.Chain.Key, blocks); err != nil {
		return err
	}
	for _, b := range blocks {
		w.tracker.Append(b.Header)
	}
	return nil
}

// readUpTo reads blocks one by one, from first on and to head at most. It reads
// fewer at once while the node refuses, and more from round to round while it
// does not.
func (w *Watcher) readUpTo(ctx context.Context, src Source, first, head chain.Header) ([]settle.Block, error) {
	for {
		n := min(w.count, head.Number-first.Number+1)
		blocks, err := w.readBlocks(ctx, src, first, head, n)
		if err == nil {
			w.count = grown(w.count, maxBlocks)
			return blocks, nil
		}
		w.count = max(1, n/2)
		if n == 1 || !tooMuch(err) {
			return nil, err
		}
	}
}

// readBlocks reads n blocks one by one from first on, of which head is the last
// that there is. Each is the parent of the next.
func (w *Watcher) readBlocks(ctx context.Context, src Source, first, head chain.Header, n uint64) ([]settle.Block, error) {
	headers := []chain.Header{first}
	var numbers []uint64
	for at := first.Number + 1; at < first.Number+n && at < head.Number; at++ {
		numbers = append(numbers, at)
	}
	next, err := src.Headers(ctx, numbers)
	if err != nil {
		return nil, err
	}
	if first.Number+n > head.Number {
		next = append(next, head)
	}
	for _, h := range next {
		last := headers[len(headers)-1]
		if h.Number != last.Number+1 || h.Parent != last.Hash {
			// The chain forked while it was asked for; the next round sees how.
			break
		}
		headers = append(headers, h)
	}

	filter := w.decoder.filter()
	var mentioned []invoice.Hash
	for _, h := range headers {
		if !w.Chain.FullBloom || filter.Mentioned(h.Bloom) {
			mentioned = append(mentioned, h.Hash)
		}
	}
	found, err := w.logsOfBlocks(ctx, src, mentioned, filter)
	if err != nil {
		return nil, err
	}
	logs := map[invoice.Hash][]types.Log{}
	for i, hash := range mentioned {
		logs[hash] = found[i]
	}
	watched, err := w.watched(ctx, slices.Concat(found...))
	if err != nil {
		return nil, err
	}
	return w.blocks(ctx, src, headers, logs, watched)
}

// readRange reads the logs of many blocks at once, from first on and to the
// block end at most. Of the blocks it returns the first, those of interest and
// the last.
func (w *Watcher) readRange(ctx context.Context, src Source, first chain.Header, end uint64) ([]settle.Block, error) {
	last, logs, err := w.logsInRange(ctx, src, first.Number, end)
	if err != nil {
		return nil, err
	}
	watched, err := w.watched(ctx, logs)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(logs, func(a, b types.Log) int { return cmp.Compare(a.BlockNumber, b.BlockNumber) })
	byBlock := map[invoice.Hash][]types.Log{}
	var numbers []uint64
	for len(logs) > 0 {
		number, n := logs[0].BlockNumber, 1
		for n < len(logs) && logs[n].BlockNumber == number {
			n++
		}
		ofBlock := logs[:n]
		logs = logs[n:]
		if len(w.decoder.touching(ofBlock, watched)) == 0 && len(w.decoder.registryEvents(ofBlock)) == 0 {
			continue
		}
		byBlock[invoice.Hash(ofBlock[0].BlockHash)] = ofBlock
		if number != first.Number && number != last {
			numbers = append(numbers, number)
		}
	}
	if last != first.Number {
		numbers = append(numbers, last)
	}
	headers, err := src.Headers(ctx, numbers)
	if err != nil {
		return nil, err
	}
	headers = append([]chain.Header{first}, headers...)
	known := 0
	for _, h := range headers {
		if _, ok := byBlock[h.Hash]; ok {
			known++
		}
	}
	if known != len(byBlock) {
		return nil, fmt.Errorf("%s: logs of blocks %d to %d name blocks that are not canonical", src, first.Number, last)
	}
	return w.blocks(ctx, src, headers, byBlock, watched)
}

// watched returns which accounts that the logs name are settlement addresses.
func (w *Watcher) watched(ctx context.Context, logs []types.Log) (map[invoice.Address]bool, error) {
	watched := map[invoice.Address]bool{}
	for accounts := range slices.Chunk(w.decoder.accounts(logs), maxAccounts) {
		found, err := w.Ledger.Watched(ctx, w.Chain.Key, accounts)
		if err != nil {
			return nil, err
		}
		for a, yes := range found {
			watched[a] = yes
		}
	}
	return watched, nil
}

// blocks makes the ledger's blocks of headers and their logs. The transactions
// that matter are read from their receipts.
func (w *Watcher) blocks(
	ctx context.Context, src Source, headers []chain.Header, logs map[invoice.Hash][]types.Log, watched map[invoice.Address]bool,
) ([]settle.Block, error) {
	blocks := make([]settle.Block, len(headers))
	var txs []common.Hash
	var in []int // the index of each transaction's block
	for i, h := range headers {
		for _, l := range logs[h.Hash] {
			if invoice.Hash(l.BlockHash) != h.Hash {
				return nil, fmt.Errorf("%s: answered a log of block %s when asked for block %s", src, l.BlockHash, h.Hash)
			}
		}
		blocks[i] = settle.Block{Header: header(h), Registry: w.decoder.registryEvents(logs[h.Hash])}
		for _, tx := range w.decoder.touching(logs[h.Hash], watched) {
			txs, in = append(txs, tx), append(in, i)
		}
	}
	receipts, err := src.Receipts(ctx, txs)
	if err != nil {
		return nil, err
	}
	inputs, err := src.Inputs(ctx, txs)
	if err != nil {
		return nil, err
	}
	for i, r := range receipts {
		b := &blocks[in[i]]
		transfers, err := w.decoder.transfers(b.Header, r, inputs[i], watched)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", src, err)
		}
		b.Transfers = append(b.Transfers, transfers...)
	}
	return blocks, nil
}
