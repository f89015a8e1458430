package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

var (
	payer    = invoice.Address{0: 1}
	merchant = invoice.Address{0: 2}
	other    = invoice.Address{0: 3}
	bridged  = invoice.Address{0: 4}
	tx       = invoice.Hash{0: 0xaa}
)

// node answers with fixed JSON.
type node struct {
	receipt, tx string // "" is null
	err         error
	hang        bool

	asked *atomic.Int64 // counts the calls; may be nil
}

func (n *node) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	if n.asked != nil {
		n.asked.Add(1)
	}
	if n.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if n.err != nil {
		return n.err
	}
	for i, answer := range []string{n.receipt, n.tx} {
		if answer == "" {
			answer = "null"
		}
		if err := json.Unmarshal([]byte(answer), batch[i].Result); err != nil {
			return err
		}
	}
	return nil
}

func (*node) Nodes() int { return 1 }

func (n *node) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) (all bool, err error) {
	err = ask(ctx, n)
	return err == nil, err
}

func log(address invoice.Address, topic common.Hash, from, to invoice.Address, amount uint64) string {
	word := invoice.NewAmount(amount).Bytes()
	return fmt.Sprintf(`{"address":%q,"topics":[%q,%q,%q],"data":"0x%x","blockNumber":"0x9","transactionHash":%q,"transactionIndex":"0x0","blockHash":%q,"logIndex":"0x0","removed":false}`,
		address, topic, common.BytesToHash(from[:]), common.BytesToHash(to[:]), word, tx, invoice.Hash{9})
}

func receipt(status int, logs ...string) string {
	return fmt.Sprintf(`{"transactionHash":%q,"blockHash":%q,"blockNumber":"0x9","from":%q,"to":%q,"status":"0x%x","logs":[%s]}`,
		tx, invoice.Hash{9}, payer, bridged, status, strings.Join(logs, ","))
}

func carrying(to invoice.Address, wei string) string {
	return fmt.Sprintf(`{"hash":%q,"from":%q,"to":%q,"value":%q,"nonce":"0x7"}`, tx, payer, to, wei)
}

func inspectBase(t *testing.T) (c chain.Chain, usdc invoice.Address) {
	t.Helper()
	c, ok := chain.Lookup("base")
	if !ok {
		t.Fatal("no chain base")
	}
	return c, c.Tokens[0].Address
}

func TestTransaction(t *testing.T) {
	c, usdc := inspectBase(t)
	arc, _ := chain.Lookup("arc")
	system := arc.Tokens[0].Movements[0].Address
	transfer := chain.TransferTopic
	known := chain.Transfer{Token: usdc, Currency: "USDC", From: payer, To: merchant, Amount: invoice.NewAmount(5)}
	for name, test := range map[string]struct {
		chain chain.Chain
		node  node
		want  chain.Report
	}{
		"unknown":            {c, node{}, chain.Report{State: chain.Unknown}},
		"not mined":          {c, node{tx: carrying(merchant, "0x0")}, chain.Report{State: chain.Queued, Sender: payer, Nonce: 7}},
		"reverted":           {c, node{receipt: receipt(0)}, chain.Report{State: chain.Failed, Block: 9, Sender: payer}},
		"a configured token": {c, node{receipt: receipt(1, log(usdc, transfer, payer, merchant, 5))}, chain.Report{State: chain.Mined, Block: 9, Sender: payer, Transfers: []chain.Transfer{known}}},
		"those to the address alone": {c, node{receipt: receipt(1, log(usdc, transfer, payer, other, 7), log(usdc, transfer, payer, merchant, 5))},
			chain.Report{State: chain.Mined, Block: 9, Sender: payer, Transfers: []chain.Transfer{known}}},
		"to another address": {c, node{receipt: receipt(1, log(usdc, transfer, payer, other, 5))},
			chain.Report{State: chain.Mined, Block: 9, Sender: payer, Transfers: []chain.Transfer{{Token: usdc, Currency: "USDC", From: payer, To: other, Amount: invoice.NewAmount(5)}}}},
		"another token": {c, node{receipt: receipt(1, log(bridged, transfer, payer, merchant, 5))},
			chain.Report{State: chain.Mined, Block: 9, Sender: payer, Transfers: []chain.Transfer{{Token: bridged, From: payer, To: merchant, Amount: invoice.NewAmount(5)}}}},
		"the native coin": {c, node{receipt: receipt(1), tx: carrying(merchant, "0x5")},
			chain.Report{State: chain.Mined, Block: 9, Sender: payer, Transfers: []chain.Transfer{{From: payer, To: merchant, Amount: invoice.NewAmount(5)}}}},
		"nothing moved, and no transfer": {c, node{receipt: receipt(1, log(usdc, transfer, payer, merchant, 0), log(usdc, common.Hash{1}, payer, merchant, 5)), tx: carrying(merchant, "0x0")},
			chain.Report{State: chain.Mined, Block: 9, Sender: payer}},
		"a token that is the native coin, once": {arc, node{receipt: receipt(1,
			log(system, transfer, payer, merchant, 5_000_000_000_000), log(arc.Tokens[0].Address, transfer, payer, merchant, 5)), tx: carrying(merchant, "0x5")},
			chain.Report{State: chain.Mined, Block: 9, Sender: payer, Transfers: []chain.Transfer{
				{Token: arc.Tokens[0].Address, Currency: "USDC", From: payer, To: merchant, Amount: invoice.NewAmount(5)}}}},
	} {
		test.want.Chain = test.chain
		got, err := chain.NewInspector([]chain.Source{{Chain: test.chain, Node: &test.node}}).Transaction(t.Context(), test.chain.Key, tx, merchant)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expect.NoDiff(t, cmp.Diff(test.want, got, cmp.Comparer(func(a, b chain.Chain) bool { return a.Key == b.Key }),
			cmp.Comparer(func(a, b invoice.Amount) bool { return a == b })), "%s: report", name)
	}
}

func TestManyTransfersAreCut(t *testing.T) {
	c, usdc := inspectBase(t)
	one := log(usdc, chain.TransferTopic, payer, merchant, 5)
	n := node{receipt: receipt(1, slices.Repeat([]string{one}, chain.MaxTransfers+1)...)}
	got, err := chain.NewInspector([]chain.Source{{Chain: c, Node: &n}}).Transaction(t.Context(), c.Key, tx, merchant)
	if err != nil || len(got.Transfers) != chain.MaxTransfers {
		t.Errorf("%d transfers, %v; want %d", len(got.Transfers), err, chain.MaxTransfers)
	}
}

func TestOtherChains(t *testing.T) {
	c, _ := inspectBase(t)
	other, _ := chain.Lookup("optimism")
	third, _ := chain.Lookup("arbitrum")
	has := receipt(1)
	for name, test := range map[string]struct {
		named, second, third node
		want                 string // expected chain
		state                chain.TransactionState
		err                  error
		asked                int64 // how often the second chain was asked
	}{
		"only the named one is asked when it has it": {node{receipt: has}, node{receipt: has}, node{}, "base", chain.Mined, nil, 0},
		"another one has it":                         {node{}, node{receipt: has}, node{}, "optimism", chain.Mined, nil, 1},
		"another one has it while a third hangs":     {node{}, node{receipt: has}, node{hang: true}, "optimism", chain.Mined, nil, 1},
		"another one has it while the named fails":   {node{err: errors.New("unavailable")}, node{receipt: has}, node{}, "optimism", chain.Mined, nil, 1},
		"another one has it while the named hangs":   {node{hang: true}, node{receipt: has}, node{}, "optimism", chain.Mined, nil, 1},
		"none has it":         {node{}, node{}, node{err: errors.New("unavailable")}, "base", chain.Unknown, nil, 1},
		"the named one fails": {node{err: errors.New("unavailable")}, node{}, node{}, "", "", chain.ErrUnavailable, 1},
		"a node answers about another transaction": {node{receipt: strings.ReplaceAll(has, tx.String(), invoice.Hash{7}.String())}, node{}, node{}, "", "", chain.ErrUnavailable, 1},
	} {
		var asked atomic.Int64
		test.second.asked = &asked
		got, err := chain.NewInspector([]chain.Source{{c, &test.named}, {other, &test.second}, {third, &test.third}}).Transaction(t.Context(), "base", tx, merchant)
		if got.Chain.Key != test.want || got.State != test.state || !errors.Is(err, test.err) || asked.Load() != test.asked {
			t.Errorf("%s: %q on %q, %v, the second was asked %d times", name, got.State, got.Chain.Key, err, asked.Load())
		}
	}
}

// All chains together take no longer than Timeout.
func TestSlowChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := inspectBase(t)
		other, _ := chain.Lookup("optimism")
		begun := time.Now()
		_, err := chain.NewInspector([]chain.Source{{c, &node{hang: true}}, {other, &node{hang: true}}}).Transaction(t.Context(), "base", tx, merchant)
		if took := time.Since(begun); !errors.Is(err, chain.ErrUnavailable) || took != chain.Timeout {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// counter answers eth_getTransactionCount.
type counter struct{ count, err string }

func (n counter) BatchCallContext(_ context.Context, batch []rpc.BatchElem) error {
	if batch[0].Method != "eth_getTransactionCount" || n.err != "" {
		return errors.New(n.err)
	}
	return json.Unmarshal([]byte(n.count), batch[0].Result)
}

func (counter) Nodes() int { return 1 }

func (n counter) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) (all bool, err error) {
	err = ask(ctx, n)
	return err == nil, err
}

func TestIsReplaced(t *testing.T) {
	c, _ := inspectBase(t)
	for name, test := range map[string]struct {
		chain string
		node  counter
		want  bool
		err   error
	}{
		"the nonce was used": {"base", counter{count: `"0x8"`}, true, nil},
		"it is the next one": {"base", counter{count: `"0x7"`}, false, nil},
		"the node fails":     {"base", counter{err: "down"}, false, chain.ErrUnavailable},
		"another chain":      {"mars", counter{}, false, chain.ErrUnavailable},
	} {
		got, err := chain.NewInspector([]chain.Source{{c, test.node}}).IsReplaced(t.Context(), test.chain, payer, 7)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

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

	expect.Error(t, chain.ErrNotFound, "Evidence of an unknown transaction")(e.Evidence(ctx, []common.Hash{txs[0], {1}}))
	expect.Error(t, chain.ErrNotFound, "BlockReceipts of an unknown block")(e.BlockReceipts(ctx, invoice.Hash{1}))
	expect.Error(t, chain.ErrNotFound, "BlockInputs of an unknown block")(e.BlockInputs(ctx, invoice.Hash{1}))
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
		expect.NoError(t, err)
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
