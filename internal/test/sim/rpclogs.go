package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// logQuery is the parameter of eth_getLogs.
type logQuery struct {
	BlockHash *common.Hash              `json:"blockHash"`
	From      json.RawMessage           `json:"fromBlock"`
	To        json.RawMessage           `json:"toBlock"`
	Address   oneOrMany[common.Address] `json:"address"`
	Topics    []oneOrMany[common.Hash]  `json:"topics"`
}

// errNull is answered with null and no error.
var errNull = errors.New("null")

// oneOrMany is a list that may be written as its only element.
type oneOrMany[T any] []T

// UnmarshalJSON reads an element or a list.
func (l *oneOrMany[T]) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' || string(raw) == "null" {
		return json.Unmarshal(raw, (*[]T)(l))
	}
	*l = make([]T, 1)
	return json.Unmarshal(raw, &(*l)[0])
}

func (n *node) getLogs(view []*block, c rpcCall) (any, error) {
	var q logQuery
	if err := param(c, 0, &q); err != nil {
		return nil, err
	}
	blocks, err := n.blocksOf(view, q)
	if errors.Is(err, errNull) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	logs := []*types.Log{}
	for _, b := range blocks {
		for _, r := range b.receipts {
			for _, l := range r.Logs {
				if q.matches(l) {
					logs = append(logs, l)
				}
			}
		}
	}
	return logs, nil
}

// blocksOf returns the blocks whose logs are asked for.
func (n *node) blocksOf(view []*block, q logQuery) ([]*block, error) {
	if q.BlockHash != nil {
		if b := n.byHash(view, *q.BlockHash); b != nil {
			return []*block{b}, nil
		}
		return nil, errors.New("unknown block")
	}
	var ends [2]uint64
	for i, raw := range []json.RawMessage{q.From, q.To} {
		b, err := n.blockAt(view, rpcCall{Params: []json.RawMessage{raw}}, 0)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, &rpcError{Code: -32602, Message: "block range extends beyond current head block"}
		}
		ends[i] = b.number
	}
	switch limit := n.limits.blockRange; {
	case ends[0] > ends[1]:
		return nil, &rpcError{Code: -32602, Message: "invalid block range params"}
	case limit > 0 && ends[1]-ends[0] >= limit && n.limits.null:
		return nil, errNull
	case limit > 0 && ends[1]-ends[0] >= limit:
		return nil, &rpcError{Code: -32005, Message: fmt.Sprintf("block range is too wide, maximum is %d", limit)}
	}
	return view[ends[0] : ends[1]+1], nil
}

func (q logQuery) matches(l *types.Log) bool {
	if len(q.Address) > 0 && !slices.Contains(q.Address, l.Address) || len(q.Topics) > len(l.Topics) {
		return false
	}
	for i, wanted := range q.Topics {
		if len(wanted) > 0 && !slices.Contains(wanted, l.Topics[i]) {
			return false
		}
	}
	return true
}
