package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/dev/devchain"
)

// errNull is answered with null and no error.
var errNull = errors.New("null")

func (n *node) getLogs(view blockView, c rpcCall) (any, error) {
	var q devchain.LogQuery
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
				if q.Matches(l) && !n.isHidden(r.TxHash, true) {
					logs = append(logs, l)
				}
			}
		}
	}
	return logs, nil
}

// blocksOf returns the blocks whose logs are asked for.
func (n *node) blocksOf(view blockView, q devchain.LogQuery) ([]*block, error) {
	if q.BlockHash != nil {
		if b := n.byHash(view, *q.BlockHash); b != nil {
			return []*block{b}, nil
		}
		return nil, errors.New("unknown block")
	}
	var ends [2]uint64
	for i, at := range []*rpc.BlockNumber{q.From, q.To} {
		b, err := n.find(view, cmp.Or(at, new(rpc.LatestBlockNumber)).String())
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
	return view.blocks[ends[0] : ends[1]+1], nil
}
