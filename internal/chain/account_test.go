package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// codeNode answers eth_getCode with JSON, or hangs.
type codeNode struct {
	code string
	err  error
	hang bool
}

func (n codeNode) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	if n.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if batch[0].Method != "eth_getCode" || n.err != nil {
		return n.err
	}
	return json.Unmarshal([]byte(n.code), batch[0].Result)
}

func TestAccount(t *testing.T) {
	c, _ := inspectBase(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		key  string
		node codeNode
		want invoice.AccountKind
	}{
		"no code":       {t.Context(), "base", codeNode{code: `"0x"`}, invoice.AccountWithKey},
		"code":          {t.Context(), "base", codeNode{code: `"0x6080"`}, invoice.AccountContract},
		"a delegation":  {t.Context(), "base", codeNode{code: `"0xef01005aaeb6053f3e94c9b9a09f33669435e7ef1beaed"`}, invoice.AccountWithKey},
		"null":          {t.Context(), "base", codeNode{code: `null`}, invoice.AccountUnknown},
		"an error":      {t.Context(), "base", codeNode{err: errors.New("down")}, invoice.AccountUnknown},
		"no answer":     {ended, "base", codeNode{hang: true}, invoice.AccountUnknown},
		"another chain": {t.Context(), "mars", codeNode{code: `"0x"`}, invoice.AccountUnknown},
	} {
		i := chain.NewInspector([]chain.Source{{Chain: c, Node: test.node}})
		if got := i.Account(test.ctx, test.key, payer); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func (n codeNode) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) error {
	return ask(ctx, n)
}
