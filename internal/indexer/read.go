package indexer

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// maxBlocks is how many blocks a sync reads one by one. Further behind the finalized height it reads ranges, which end
// this far below that height: if a server of the node lags, it omits the logs of blocks that it lacks, without an
// error.
const maxBlocks = chain.MaxBlocks

// readUpTo reads blocks one by one, from first up to head, and no more than the node's limit allows.
func (ix *Indexer) readUpTo(ctx context.Context, n node, first, head chain.Header) ([]ledger.Block, error) {
	limit := n.Limit(chain.KindBlocks)
	count := min(limit.Next(), head.Number-first.Number+1)
	blocks, logs, err := ix.readNext(ctx, n, first, head, count)
	if err == nil {
		grow(limit, count, logs)
	}
	return blocks, err
}

// readNext reads count blocks from first on, up to head, and also returns how many logs they hold.
func (ix *Indexer) readNext(ctx context.Context, n node, first, head chain.Header, count uint64) ([]ledger.Block, int, error) {
	var numbers []uint64
	for at := first.Number + 1; at < first.Number+count && at < head.Number; at++ {
		numbers = append(numbers, at)
	}
	next, err := n.headers(ctx, numbers...)
	if err != nil {
		return nil, 0, err
	}
	if first.Number+count > head.Number {
		next = append(next, head)
	}
	headers := []chain.Header{first}
	for _, h := range next {
		last := headers[len(headers)-1]
		if h.Number != last.Number+1 || h.Parent != last.Hash {
			// The chain forked during the request; the next sync handles the fork.
			break
		}
		if err := n.checkTimes(last, h); err != nil {
			return nil, 0, err
		}
		headers = append(headers, h)
	}
	return ix.readBlocks(ctx, n, headers, ix.newAddressCache())
}

// readBlocks reads the blocks of these headers by their hashes.
func (ix *Indexer) readBlocks(ctx context.Context, n node, headers []chain.Header, c *addressCache) ([]ledger.Block, int, error) {
	filter := ix.decoder.filter()
	var mentioned []chain.Header
	over := ix.canSkipByBloom(n)
	for _, h := range headers {
		if !over || !h.Excludes(filter) {
			mentioned = append(mentioned, h)
			continue
		}
		ix.noteCompared(h.Hash, ComparedHeader)
	}
	found, err := ix.logsOf(ctx, n, mentioned, filter)
	if err == nil {
		found, err = ix.compareLogs(ctx, n, mentioned, found, filter)
	}
	if err != nil {
		return nil, 0, err
	}
	logs := make(map[invoice.Hash][]types.Log, len(mentioned))
	count := 0
	for i, h := range mentioned {
		for j := range found[i] {
			if l := &found[i][j]; invoice.Hash(l.BlockHash) != h.Hash {
				return nil, 0, n.contradicts("answered a log of block %s when asked for block %s", l.BlockHash, h.Hash)
			}
		}
		if err := ix.learnBlooms(n, h, found[i]); err != nil {
			return nil, 0, err
		}
		logs[h.Hash] = found[i]
		count += len(found[i])
	}
	watched, err := c.watched(ctx, ix.decoder.accounts(slices.Concat(found...)))
	if err != nil {
		return nil, 0, err
	}
	blocks, err := ix.blocks(ctx, n, headers, logs, watched)
	return blocks, count, err
}

// readRange reads the logs of a range of final blocks. It returns the first block,
// those with events, the last one, and how many logs there were.
func (ix *Indexer) readRange(ctx context.Context, n node, first, last uint64, c *addressCache) ([]ledger.Block, int, error) {
	logs, err := n.LogsInRange(ctx, first, last, ix.decoder.filter())
	if err != nil {
		return nil, 0, &nodeError{node: n.Node, err: err, byRange: true}
	}
	blocks, err := ix.blocksInRange(ctx, n, logs, blockRange{first: first, last: last}, nil, c)
	return blocks, len(logs), err
}

// blocksInRange returns the blocks of a range with these logs: the first block, the blocks with events, and the last
// one. ends are the headers of the first and the last block, or nil. Near the head, it compares the blocks that concern
// the ledger.
func (ix *Indexer) blocksInRange(ctx context.Context, n node, logs []types.Log, r blockRange, ends []chain.Header, c *addressCache) ([]ledger.Block, error) {
	first, last := r.first, r.last
	watched, err := c.watched(ctx, ix.decoder.accounts(logs))
	if err != nil {
		return nil, err
	}
	groups, err := n.byBlock(logs, first, last)
	if err != nil {
		return nil, err
	}
	byHash := map[invoice.Hash][]types.Log{}
	numbers := []uint64{first}
	answered := map[uint64]bool{}
	for _, group := range groups {
		number := group[0].BlockNumber
		answered[number] = true
		if len(ix.decoder.touching(group, watched)) == 0 && len(ix.decoder.registryEvents(group)) == 0 {
			continue
		}
		byHash[invoice.Hash(group[0].BlockHash)] = group
		if number != numbers[len(numbers)-1] {
			numbers = append(numbers, number)
		}
	}
	if last != numbers[len(numbers)-1] {
		numbers = append(numbers, last)
	}
	headers, err := n.headersBesides(ctx, ends, numbers...)
	if err != nil {
		return nil, err
	}
	if err := n.checkHeaders(headers, byHash, r); err != nil {
		return nil, err
	}
	if err := ix.checkRangeEnds(ctx, n, slices.DeleteFunc(slices.Clone(headers), func(h chain.Header) bool { return answered[h.Number] })); err != nil {
		return nil, err
	}
	if r.compared != "" {
		if watched, err = ix.compareCounted(ctx, n, r, headers, byHash, c); err != nil {
			return nil, err
		}
	}
	return ix.blocks(ctx, n, headers, byHash, watched)
}

// checkHeaders fails if the times of a range's headers descend, or if a block with logs is not among them.
func (n node) checkHeaders(headers []chain.Header, logs map[invoice.Hash][]types.Log, r blockRange) error {
	canonical := 0
	for i, h := range headers {
		if i > 0 {
			if err := n.checkTimes(headers[i-1], h); err != nil {
				return err
			}
		}
		if _, ok := logs[h.Hash]; ok {
			canonical++
		}
	}
	if canonical != len(logs) {
		return n.contradicts("answered logs of blocks between %d and %d that it does not call canonical", r.first, r.last)
	}
	return nil
}

// checkTimes fails if a block has an earlier time than one below it.
func (n node) checkTimes(below, h chain.Header) error {
	if h.Time.Before(below.Time) {
		return n.contradicts("has block %d of %d above block %d of %d", h.Number, h.Time.Unix(), below.Number, below.Time.Unix())
	}
	return nil
}

// headersBesides returns the headers at some heights. It requests only the ones that are not known.
func (n node) headersBesides(ctx context.Context, known []chain.Header, numbers ...uint64) ([]chain.Header, error) {
	headers, unknown := make(map[uint64]chain.Header, len(numbers)), slices.Clone(numbers)
	for _, h := range known {
		headers[h.Number] = h
		unknown = slices.DeleteFunc(unknown, func(number uint64) bool { return number == h.Number })
	}
	asked, err := n.headers(ctx, unknown...)
	if err != nil {
		return nil, err
	}
	for _, h := range asked {
		headers[h.Number] = h
	}
	all := make([]chain.Header, len(numbers))
	for i, number := range numbers {
		all[i] = headers[number]
	}
	return all, nil
}

// byBlock splits the logs of a range by their block, ascending. Logs outside of
// the range, or of two blocks at one height, are a contradiction.
func (n node) byBlock(logs []types.Log, first, last uint64) ([][]types.Log, error) {
	byNumber := func(a, b types.Log) int { return cmp.Compare(a.BlockNumber, b.BlockNumber) }
	if !slices.IsSortedFunc(logs, byNumber) {
		slices.SortStableFunc(logs, byNumber)
	}
	var groups [][]types.Log
	for len(logs) > 0 {
		number, size := logs[0].BlockNumber, 1
		if number < first || number > last {
			return nil, n.contradicts("answered a log of block %d when asked for blocks %d to %d", number, first, last)
		}
		for size < len(logs) && logs[size].BlockNumber == number {
			if logs[size].BlockHash != logs[0].BlockHash {
				return nil, n.contradicts("answered logs of two blocks %d, %s and %s", number, logs[0].BlockHash, logs[size].BlockHash)
			}
			size++
		}
		groups = append(groups, logs[:size])
		logs = logs[size:]
	}
	return groups, nil
}

// checkRangeEnds fails if the answer for a range left out logs of its first and last block, which are the given blocks.
// A node that lost the logs of a range, or has not stored them yet, usually lacks the logs at one end. Blocks in
// between are not checked.
func (ix *Indexer) checkRangeEnds(ctx context.Context, n node, blocks []chain.Header) error {
	filter := ix.decoder.filter()
	blocks = slices.DeleteFunc(blocks, func(h chain.Header) bool { return !ix.isEmptySuspect(n, h, filter) })
	found, err := ix.logsOf(ctx, n, blocks, filter)
	for i, logs := range found {
		if len(logs) > 0 {
			return n.contradicts("left out the logs of block %d when asked for a range", blocks[i].Number)
		}
	}
	return err
}

// blocks returns the ledger's blocks for headers and their logs. Transfers are read
// from the receipts of their transactions.
func (ix *Indexer) blocks(
	ctx context.Context, n node, headers []chain.Header, logs map[invoice.Hash][]types.Log, watched map[invoice.Address]bool,
) ([]ledger.Block, error) {
	blocks := make([]ledger.Block, len(headers))
	wanted := make([]evidenceRequest, len(headers))
	for i, h := range headers {
		of := logs[h.Hash]
		blocks[i] = ledger.Block{Header: h.Header, Registry: ix.decoder.registryEvents(of)}
		wanted[i].block = h
		wanted[i].txs = ix.decoder.touching(of, watched)
		wanted[i].wholeBlock = preferWholeBlock(of, wanted[i].txs)
	}
	evidence, err := ix.evidence(ctx, n, wanted)
	if err != nil {
		return nil, err
	}
	for i, h := range headers {
		if err := ix.checkConsistent(ctx, n, h, logs[h.Hash], evidence[i]); err != nil {
			return nil, err
		}
		for _, e := range evidence[i] {
			found, err := ix.decoder.transfers(blocks[i].Header, e.receipt, e.input, watched)
			if err != nil {
				return nil, n.wrap(err)
			}
			blocks[i].Transfers = append(blocks[i].Transfers, found...)
		}
		blocks[i].Unread = append(ix.skippedIn(h.Header), ix.takeUnproven(h.Hash)...)
	}
	return blocks, nil
}

// logsByFallback returns the logs of a block for which the node refuses eth_getLogs: from the block's receipts, by
// parts of the filter, or from each transaction's receipt, whichever works first. It returns the last error.
func (ix *Indexer) logsByFallback(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) (logs []types.Log, err error) {
	for _, ask := range []func(context.Context, node, chain.Header, chain.LogFilter) ([]types.Log, error){
		ix.logsFromBlockReceipts, ix.logsByFilterParts, ix.logsFromReceipts,
	} {
		logs, err = ask(ctx, n, h, filter)
		if err == nil {
			ix.cfg.Logger.Debug("node refused the logs of a block, read by fallback",
				"chain", ix.cfg.Chain.Key, "node", n.String(), "block", h.Hash.String(), "logs", len(logs))
			return logs, nil
		}
		if ctx.Err() != nil || !errors.Is(err, errIncomplete) && !chain.IsRefusal(err) {
			return nil, err
		}
	}
	return nil, err
}

// logsFromBlockReceipts reads a block's logs from all of its receipts at once.
func (ix *Indexer) logsFromBlockReceipts(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) ([]types.Log, error) {
	receipts, err := ix.blockReceipts(ctx, n, h)
	return selected(filter, receipts), err
}

// logsByFilterParts requests a block's logs of one address and one topic at a time.
func (ix *Indexer) logsByFilterParts(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) ([]types.Log, error) {
	var all []types.Log
	for _, address := range filter.Addresses {
		for _, topic := range filter.Topics {
			part := chain.LogFilter{Addresses: []common.Address{address}, Topics: []common.Hash{topic}}
			logs, err := n.logsOfBlocks(ctx, []invoice.Hash{h.Hash}, part)
			if err != nil {
				return nil, err
			}
			all = append(all, logs[0]...)
		}
	}
	slices.SortStableFunc(all, func(a, b types.Log) int { return int(a.Index) - int(b.Index) })
	return all, nil
}

// logsFromReceipts reads a block's logs from the receipt of each of its transactions.
func (ix *Indexer) logsFromReceipts(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) ([]types.Log, error) {
	txs, err := n.BlockTransactions(ctx, h.Hash)
	if err != nil {
		return nil, n.wrap(err)
	}
	receipts, err := n.Receipts(ctx, txs)
	if err != nil && mayBeUnreadable(ctx, err) {
		receipts = nil
		err = ix.readEach(ctx, n, h, txs, func(tx common.Hash) error {
			one, err := n.Receipts(ctx, []common.Hash{tx})
			receipts = append(receipts, one...)
			return n.wrap(err)
		})
	}
	if err != nil {
		return nil, n.wrap(err)
	}
	for _, r := range receipts {
		if invoice.Hash(r.BlockHash) != h.Hash {
			return nil, n.wrap(errReplaced)
		}
	}
	if len(receipts) == len(txs) { // otherwise some are skipped
		err = ix.checkComplete(n, h, receipts)
	}
	return selected(filter, receipts), err
}

// selected returns the logs of receipts that a filter selects.
func selected(filter chain.LogFilter, receipts []*chain.Receipt) []types.Log {
	var logs []types.Log
	for _, r := range receipts {
		for _, l := range r.Logs {
			if selects(filter, l) {
				logs = append(logs, l)
			}
		}
	}
	return logs
}

// selects reports whether a filter selects a log.
func selects(f chain.LogFilter, l types.Log) bool {
	return slices.Contains(f.Addresses, l.Address) && len(l.Topics) > 0 && slices.Contains(f.Topics, l.Topics[0])
}
