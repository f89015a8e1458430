package devchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// Limits of a query, equal to geth's.
const (
	maxTopics       = 4
	maxAlternatives = 1000 // addresses, or topics at one position
)

// queryError is the error of a query that cannot be answered.
type queryError string

// Error returns the message.
func (e queryError) Error() string { return string(e) }

// ErrorCode returns JSON-RPC's code of invalid parameters.
func (queryError) ErrorCode() int { return -32602 }

// oneOrMany is a list that may be written as its only element.
type oneOrMany[T any] []T

// UnmarshalJSON reads an element or a list. null is an empty list.
func (l *oneOrMany[T]) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if bytes.HasPrefix(raw, []byte("[")) || bytes.Equal(raw, []byte("null")) {
		return json.Unmarshal(raw, (*[]T)(l))
	}
	*l = make([]T, 1)
	return json.Unmarshal(raw, &(*l)[0])
}

// LogQuery selects logs. A log has one of the addresses and, at each position, one of the topics; an empty list, or null
// in it, matches everything.
type LogQuery struct {
	BlockHash *common.Hash              `json:"blockHash"`
	From      *rpc.BlockNumber          `json:"fromBlock"`
	To        *rpc.BlockNumber          `json:"toBlock"`
	Addresses oneOrMany[common.Address] `json:"address"`
	Topics    []oneOrMany[*common.Hash] `json:"topics"`
}

// check returns an error if the query has too many or contradictory conditions.
func (q *LogQuery) check() error {
	switch {
	case q.BlockHash != nil && (q.From != nil || q.To != nil):
		return queryError("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other")
	case len(q.Topics) > maxTopics:
		return queryError(fmt.Sprintf("the query has %d topics, at most %d are allowed", len(q.Topics), maxTopics))
	case len(q.Addresses) > maxAlternatives:
		return queryError(fmt.Sprintf("the query has %d addresses, at most %d are allowed", len(q.Addresses), maxAlternatives))
	}
	for _, topics := range q.Topics {
		if len(topics) > maxAlternatives {
			return queryError(fmt.Sprintf("the query has %d topics at one position, at most %d are allowed", len(topics), maxAlternatives))
		}
	}
	return nil
}

// Matches reports whether the query selects a log, apart from its block.
func (q *LogQuery) Matches(l *types.Log) bool {
	if len(q.Addresses) > 0 && !slices.Contains(q.Addresses, l.Address) || len(q.Topics) > len(l.Topics) {
		return false
	}
	for i, topics := range q.Topics {
		if !anyTopic(topics, func(topic common.Hash) bool { return l.Topics[i] == topic }) {
			return false
		}
	}
	return true
}

// mayMatch reports whether a block with the given bloom may have a log that the query selects.
func (q *LogQuery) mayMatch(bloom types.Bloom) bool {
	if len(q.Addresses) > 0 && !slices.ContainsFunc(q.Addresses, func(a common.Address) bool { return types.BloomLookup(bloom, a) }) {
		return false
	}
	for _, topics := range q.Topics {
		if !anyTopic(topics, func(topic common.Hash) bool { return types.BloomLookup(bloom, topic) }) {
			return false
		}
	}
	return true
}

// anyTopic reports whether one of the topics fits. An empty list, or null in it, fits.
func anyTopic(topics oneOrMany[*common.Hash], fits func(common.Hash) bool) bool {
	return len(topics) == 0 || slices.ContainsFunc(topics, func(topic *common.Hash) bool { return topic == nil || fits(*topic) })
}

// logsOf appends the logs of a block that the query selects.
func (q *LogQuery) logsOf(logs []*types.Log, n *node, header *types.Header) []*types.Log {
	if !q.mayMatch(header.Bloom) {
		return logs
	}
	for _, receipt := range n.blocks.GetReceiptsByHash(header.Hash()) {
		for _, l := range receipt.Logs {
			if q.Matches(l) {
				logs = append(logs, l)
			}
		}
	}
	return logs
}

// bound returns the number of the block at which a range begins or ends.
func (n *node) bound(number *rpc.BlockNumber) (uint64, error) {
	if number == nil {
		return n.blocks.CurrentBlock().Number.Uint64(), nil
	}
	if *number == rpc.PendingBlockNumber {
		return 0, queryError("pending logs are not supported")
	}
	if *number >= 0 {
		return uint64(*number), nil
	}
	header, err := n.header(rpc.BlockNumberOrHashWithNumber(*number))
	if err != nil {
		return 0, err
	}
	if header == nil {
		return 0, fmt.Errorf("there is no %s block", *number)
	}
	return header.Number.Uint64(), nil
}

// GetLogs returns the logs that a query selects.
func (a *ethAPI) GetLogs(ctx context.Context, q LogQuery) ([]*types.Log, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	logs := []*types.Log{}
	if q.BlockHash != nil {
		header := a.node.blocks.GetHeaderByHash(*q.BlockHash)
		if header == nil {
			return nil, errors.New("unknown block")
		}
		return q.logsOf(logs, a.node, header), nil
	}
	from, err := a.node.bound(q.From)
	if err != nil {
		return nil, err
	}
	to, err := a.node.bound(q.To)
	if err != nil {
		return nil, err
	}
	if from > to {
		return nil, queryError("invalid block range params")
	}
	if to > a.node.blocks.CurrentBlock().Number.Uint64() {
		return nil, queryError("block range extends beyond current head block")
	}
	for number := from; number <= to; number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header := a.node.blocks.GetHeaderByNumber(number)
		if header == nil {
			return nil, queryError("block range extends beyond current head block") // a reorg has shortened the chain
		}
		logs = q.logsOf(logs, a.node, header)
	}
	return logs, nil
}
