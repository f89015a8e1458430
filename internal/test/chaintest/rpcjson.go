package chaintest

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// params writes the parameters of a call.
func params(values ...any) []json.RawMessage {
	written := make([]json.RawMessage, len(values))
	for i, v := range values {
		written[i] = marshal(v)
	}
	return written
}

// text reads a string. It returns an empty one for any other value.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// filterOf reads the filter of a call of eth_getLogs.
func filterOf(c call) (f filter, err error) {
	if c.Method != methodLogs || len(c.Params) != 1 {
		return f, fmt.Errorf("%s has no filter", c.Method)
	}
	err = json.Unmarshal(c.Params[0], &f)
	if err == nil && f.BlockHash == nil && (f.FromBlock == nil || f.ToBlock == nil) {
		err = fmt.Errorf("%s names no blocks", c.Params[0])
	}
	return f, err
}

// rangeOf reads the filter of a call that requests the logs of a range. If the range ends at the head, it asks the node
// for the head.
func rangeOf(c call, ask callHandler) (f filter, ok bool) {
	if c.Method != methodLogs || len(c.Params) != 1 || json.Unmarshal(c.Params[0], &f) != nil || f.FromBlock == nil {
		return f, false
	}
	if f.toLatest {
		head, found := numberOf(ask(call{Method: methodBlock, Params: params("latest", false)}))
		last := hexutil.Uint64(head)
		f.ToBlock, ok = &last, found
		return f, ok
	}
	return f, f.ToBlock != nil
}

// covers reports whether the filter covers the block.
func (f filter) covers(b *Block) bool {
	if f.BlockHash != nil {
		return *f.BlockHash == b.Hash
	}
	return uint64(*f.FromBlock) <= b.Number && b.Number <= uint64(*f.ToBlock)
}

// numberOf returns the number of the block in the answer, or of the block that the answer is about.
func numberOf(a answer) (uint64, bool) {
	var o map[string]any
	if json.Unmarshal(a.Result, &o) != nil {
		return 0, false
	}
	if n, ok := quantity(o["number"]); ok {
		return n, true
	}
	return quantity(o["blockNumber"])
}

// quantity reads a number in JSON-RPC's notation.
func quantity(v any) (uint64, bool) {
	s, _ := v.(string)
	n, err := hexutil.DecodeUint64(s)
	return n, err == nil
}

// rewrite changes all objects in a result.
func rewrite(result json.RawMessage, change func(o map[string]any)) json.RawMessage {
	var v any
	if json.Unmarshal(result, &v) != nil {
		return result
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				visit(e)
			}
		case map[string]any:
			for _, e := range v {
				visit(e)
			}
			change(v)
		}
	}
	visit(v)
	return marshal(v)
}

// extend adds elements to a list.
func extend[T any](list json.RawMessage, more []T) json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(list, &all) != nil {
		return list
	}
	for _, e := range more {
		all = append(all, marshal(e))
	}
	return marshal(all)
}
