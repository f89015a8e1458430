package txmgr

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// refusing is a node that answers a number of estimates, of one call or of all calls, with an error.
type refusing struct {
	Client
	err   error
	all   bool
	times int
}

func (r *refusing) CallContext(_ context.Context, _ any, _ string, args ...any) error {
	call := args[0].(map[string]any)
	if plain := len(call["data"].(hexutil.Bytes)) == 0; plain && !r.all || r.times == 0 {
		return nil
	}
	r.times--
	return r.err
}

// coded is an error answer with a code.
type coded struct {
	code int
	text string
}

func (c coded) Error() string  { return c.text }
func (c coded) ErrorCode() int { return c.code }

// TestRefusedCalls has a node refuse a call, all calls, or only once, with any code and text.
func TestRefusedCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := words.Draw(t, "text")
		code := rapid.SampledFrom([]int{-32000, -32003, -32015, -32099, -32603, 3, 0, 1}).Draw(t, "code")
		answered := fmt.Errorf("eth_estimateGas: %w", coded{code, text})
		for _, test := range []struct {
			what string
			node refusing
			err  error
			want bool
		}{
			{"this call alone", refusing{err: answered, times: -1}, answered, true},
			{"everything", refusing{err: answered, times: -1, all: true}, answered, code == 3},
			{"once", refusing{err: answered}, answered, code == 3},
			{"the rate", refusing{err: coded{429, text}, times: -1}, coded{429, text}, false},
			{"the rate, as EIP-1474 has it", refusing{err: coded{-32005, text}, times: -1}, coded{-32005, text}, false},
			{"no answer", refusing{err: errors.New(text), times: -1}, errors.New(text), false},
			{"no answer afterwards", refusing{err: errors.New(text), times: -1}, answered, code == 3},
		} {
			n := node{&test.node}
			if got := n.refuses(context.Background(), invoice.Address{1}, common.Address{2}, []byte{1}, test.err); got != test.want {
				t.Errorf("%s: %d %q is taken for a refusal: %t", test.what, code, text, got)
			}
		}
	})
}

// words are texts of errors: any, and texts that have another meaning for nodes.
var words = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
	"already known", "nonce too low: next nonce 5, tx nonce 4", "replacement transaction underpriced",
	"insufficient funds for gas * price + value", "execution reverted", "future transaction tries to replace pending",
}))

func TestStatusIsReadAsTheContractNumbersIt(t *testing.T) {
	w := onSQLite(t)
	ids := commitments(4)
	w.external(w.dev.Keys.Operator, pack("open", ids[1:2], 0))
	w.external(w.dev.Keys.Operator, pack("close", ids[3:4], 1<<62))
	terms := w.pay()
	w.seal(1)
	w.wantStatus(statusNone, ids[0])
	w.wantStatus(statusOpen, ids[1])
	w.wantStatus(statusPaid, terms)
	w.wantStatus(statusClosed, ids[3])
}
