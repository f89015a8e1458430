package chain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestEvidence requests the evidence of transactions in each way.
func TestEvidence(t *testing.T) {
	c := chaintest.New(5)
	var txs []common.Hash
	var mined []chaintest.Tx
	for i := range byte(70) { // one batch holds 50
		tx := chaintest.NewTx(chaintest.Transfer(token, alice, bob, invoice.NewAmount(7))).WithInput([]byte{i})
		txs, mined = append(txs, tx.Hash), append(mined, tx)
	}
	b := c.Mine(mined...)
	node := c.Serve(t)
	e, ctx := newClient(t, node.URL), t.Context()
	check := func(how string, receipts []*chain.Receipt, input func(i int) []byte, err error) {
		t.Helper()
		if err != nil || len(receipts) != len(txs) {
			t.Fatalf("%s: %d receipts, %v", how, len(receipts), err)
		}
		for i, r := range receipts {
			if r.TxHash != txs[i] || r.BlockHash != b.Hash || len(r.Logs) != 1 || len(input(i)) != 1 || input(i)[0] != byte(i) {
				t.Errorf("%s: transaction %d left %+v and %x", how, i, r, input(i))
			}
		}
	}
	receipts, inputs, err := e.Evidence(ctx, txs)
	check("Evidence", receipts, func(i int) []byte { return inputs[i] }, err)

	receipts, err = e.BlockReceipts(ctx, invoice.Hash(b.Hash))
	expect.OK(t, err)
	ofBlock, err := e.BlockInputs(ctx, invoice.Hash(b.Hash))
	check("by block", receipts, func(i int) []byte { return ofBlock[txs[i]] }, err)

	if _, _, err := e.Evidence(ctx, []common.Hash{txs[0], {1}}); !errors.Is(err, chain.ErrNotFound) {
		t.Errorf("Evidence of an unknown transaction: %v", err)
	}
	if _, err := e.BlockReceipts(ctx, invoice.Hash{1}); !errors.Is(err, chain.ErrNotFound) {
		t.Errorf("BlockReceipts of an unknown block: %v", err)
	}
	if _, err := e.BlockInputs(ctx, invoice.Hash{1}); !errors.Is(err, chain.ErrNotFound) {
		t.Errorf("BlockInputs of an unknown block: %v", err)
	}
	if receipts, inputs, err := e.Evidence(ctx, nil); err != nil || len(receipts)+len(inputs) != 0 {
		t.Errorf("Evidence of nothing: %v, %v, %v", receipts, inputs, err)
	}
}

// scripted returns a node that answers each method with a fixed result.
func scripted(t *testing.T, results map[string]string) *chain.Client {
	t.Helper()
	type call struct {
		ID     int
		Method string
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer := func(c call) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, c.ID, results[c.Method]) }
		var one call
		if json.Unmarshal(body, &one) == nil {
			io.WriteString(w, answer(one)) //nolint:errcheck // the client may hang up
			return
		}
		var many []call
		expect.NoError(t, json.Unmarshal(body, &many))
		var answers []string
		for _, c := range many {
			answers = append(answers, answer(c))
		}
		io.WriteString(w, "["+strings.Join(answers, ",")+"]") //nolint:errcheck // the client may hang up
	}))
	t.Cleanup(node.Close)
	return newClient(t, node.URL)
}

// TestEvidenceOfAnotherBlock asks nodes that answer about another block or transaction.
func TestEvidenceOfAnotherBlock(t *testing.T) {
	const (
		receipt  = "eth_getTransactionReceipt"
		tx       = "eth_getTransactionByHash"
		receipts = "eth_getBlockReceipts"
		block    = "eth_getBlockByHash"
	)
	asked, other := common.Hash{1}, common.Hash{2}
	receiptOf := func(h common.Hash) string {
		return `{"transactionHash":"` + h.Hex() + `","blockHash":"` + h.Hex() + `","logs":[]}`
	}
	txOf := func(h common.Hash) string { return `{"hash":"` + h.Hex() + `","input":"0x"}` }
	for name, c := range map[string]struct {
		results map[string]string
		fails   bool
		lacks   bool
	}{
		"right":           {map[string]string{receipt: receiptOf(asked), tx: txOf(asked)}, false, false},
		"no receipt":      {map[string]string{receipt: "null", tx: txOf(asked)}, true, true},
		"no transaction":  {map[string]string{receipt: receiptOf(asked), tx: "null"}, true, true},
		"another receipt": {map[string]string{receipt: receiptOf(other), tx: txOf(asked)}, true, false},
		"another input":   {map[string]string{receipt: receiptOf(asked), tx: txOf(other)}, true, false},
	} {
		for method, result := range c.results {
			c.results[method] = `"result":` + result
		}
		_, _, err := scripted(t, c.results).Evidence(t.Context(), []common.Hash{asked})
		if (err != nil) != c.fails || errors.Is(err, chain.ErrNotFound) != c.lacks {
			t.Errorf("%s: Evidence: %v", name, err)
		}
	}
	for result, fails := range map[string]bool{
		"[]": false, "[" + receiptOf(asked) + "]": false, "[null]": true, "[" + receiptOf(other) + "]": true, "{}": true,
	} {
		if _, err := scripted(t, map[string]string{receipts: `"result":` + result}).BlockReceipts(t.Context(), invoice.Hash(asked)); (err != nil) != fails {
			t.Errorf("%s: BlockReceipts: %v", result, err)
		}
	}
	for result, fails := range map[string]bool{
		`{"hash":"` + asked.Hex() + `","transactions":[]}`: false, `{"hash":"` + other.Hex() + `","transactions":[]}`: true,
	} {
		if _, err := scripted(t, map[string]string{block: `"result":` + result}).BlockInputs(t.Context(), invoice.Hash(asked)); (err != nil) != fails {
			t.Errorf("%s: BlockInputs: %v", result, err)
		}
	}
}

// TestLogsInRange distinguishes a node without an answer from one without logs.
func TestLogsInRange(t *testing.T) {
	for result, fails := range map[string]bool{"[]": false, "[ ]": false, "null": true} {
		logs, err := scripted(t, map[string]string{"eth_getLogs": `"result":` + result}).LogsInRange(t.Context(), 1, 9, chain.LogFilter{})
		if len(logs) != 0 || (err != nil) != fails || errors.Is(err, chain.ErrNotFound) != fails {
			t.Errorf("%s: %v, %v", result, logs, err)
		}
	}
}
