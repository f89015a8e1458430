package txmgr

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"
)

// scripted answers calls by their method; a method without an answer fails.
type scripted map[string]string

func (s scripted) CallContext(_ context.Context, result any, method string, _ ...any) error {
	answer, ok := s[method]
	if !ok {
		return errors.New("502 Bad Gateway")
	}
	return json.Unmarshal([]byte(answer), result)
}

func (s scripted) BatchCallContext(context.Context, []rpc.BatchElem) error {
	return errors.New("no batches")
}

// TestTip computes the usual tip from fee histories in nodes' notation, and uses the node's suggestion without a
// history.
func TestTip(t *testing.T) {
	for history, want := range map[string]int64{
		`{"reward":[["0x5"],["0x7"],["0x9"]]}`:         7,
		`{"reward":[["-0x5"],["0x7"],["-0x9"]]}`:       7,
		`{"reward":[["0x05"],["0x0007"],["0x9"]]}`:     7,
		`{"reward":[["-0x5"],["-0x1"]]}`:               3,
		`{"reward":[]}`:                                3,
		`{"reward":null}`:                              3,
		`{"reward":[[null],["0x1","0x2"],[],["0x8"]]}`: 8,
		`null`:                   3,
		`{"reward":[["words"]]}`: 3,
		``:                       3, // the node has no such method, whatever its error
	} {
		answers := scripted{"eth_maxPriorityFeePerGas": `"0x03"`}
		if history != "" {
			answers["eth_feeHistory"] = history
		}
		tip, err := node{answers}.tip(t.Context())
		if err != nil || tip.Int64() != want {
			t.Errorf("%s: the tip is %s, %v; want %d", history, tip, err, want)
		}
	}
	if _, err := (node{scripted{}}).tip(t.Context()); err == nil {
		t.Error("a node that answers nothing has a tip")
	}
}
