package devchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
)

// ask calls a method of our chain over HTTP, and fails the test on an error.
func ask[T any](t *testing.T, c *Chain, method string, args ...any) (answer T) {
	t.Helper()
	if err := dial(t, c.RPCURL()).Client().CallContext(t.Context(), &answer, method, args...); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return answer
}

// refused calls a method, and fails the test unless the error contains a text.
func refused(t *testing.T, c *Chain, want, method string, args ...any) {
	t.Helper()
	err := dial(t, c.RPCURL()).Client().CallContext(t.Context(), nil, method, args...)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s%v: the error is %v, want %q", method, args, err, want)
	}
}

// transfer sends tokens to the merchant without sealing.
func transfer(t *testing.T, c *Chain, amount int64) common.Hash {
	t.Helper()
	hash, err := c.SendToken(t.Context(), c.Keys.Payer, Address(c.Keys.Merchant), big.NewInt(amount), nil)
	expect.OK(t, err)
	return hash
}

// TestPortKeepsPagesOut sends what a page of another site could send.
func TestPortKeepsPagesOut(t *testing.T) {
	c := start(t, Config{})
	_, port, _ := strings.Cut(strings.TrimPrefix(c.RPCURL(), "http://"), ":")
	const body = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`
	for _, test := range []struct {
		host, path string
		want       int
	}{
		{"127.0.0.1:" + port, "/", http.StatusOK},
		{"localhost:" + port, "/", http.StatusOK},
		{"LOCALHOST", "/", http.StatusOK},
		{"[::1]", "/", http.StatusOK},
		{"attacker.example:" + port, "/", http.StatusForbidden},
		{"localhost.attacker.example", "/", http.StatusForbidden},
		{"127.0.0.1:" + port, "/x", http.StatusNotFound},
	} {
		request := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, c.RPCURL()+test.path, strings.NewReader(body)))
		request.Host = test.host
		request.Header.Set("Content-Type", "application/json")
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		expect.OK(t, err)
		expect.Equal(t, answer.StatusCode, test.want, "%+v: the status is", test)
		expect.NoError(t, answer.Body.Close())
	}
}

// TestPendingBlock asks for what the next block will have.
func TestPendingBlock(t *testing.T) {
	c := start(t, Config{})
	tx := transfer(t, c, 5)
	expect.OK(t, c.node.pool.Sync())
	block := ask[struct {
		Number       string
		Hash         *common.Hash
		Transactions []struct {
			Hash common.Hash
			To   *common.Address
		}
	}](t, c, "eth_getBlockByNumber", "pending", true)
	if block.Hash != nil || block.Number != "0x2" || len(block.Transactions) != 1 || block.Transactions[0].Hash != tx {
		t.Errorf("the pending block is %+v, want number 2 with transaction %s and no hash", block, tx)
	}
	payer := Address(c.Keys.Payer)
	for tag, want := range map[string]string{"pending": "0x1", "latest": "0x0"} {
		expect.Equal(t, ask[string](t, c, "eth_getTransactionCount", payer, tag), want, "the %s nonce is", tag)
	}
	waiting := ask[map[string]any](t, c, "eth_getTransactionByHash", tx)
	if number, there := waiting["blockNumber"]; !there || number != nil || waiting["from"] != strings.ToLower(payer.Hex()) {
		t.Errorf("the waiting transaction is %v", waiting)
	}
	refused(t, c, "pending logs are not supported", "eth_getLogs", map[string]any{"fromBlock": "pending"})
}

func TestLogQueryLimits(t *testing.T) {
	list := func(n int, of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	address, topic := `"`+common.Address{}.Hex()+`"`, `"`+common.Hash{}.Hex()+`"`
	for text, valid := range map[string]bool{
		`{}`:                             true,
		`{"address":` + address + `}`:    true,
		`{"address":null,"topics":null}`: true,
		`{"address":` + list(maxAlternatives, address) + `}`:                 true,
		`{"address":` + list(maxAlternatives+1, address) + `}`:               false,
		`{"topics":` + list(maxTopics, topic) + `}`:                          true,
		`{"topics":` + list(maxTopics+1, topic) + `}`:                        false,
		`{"topics":[` + list(maxAlternatives, topic) + `]}`:                  true,
		`{"topics":[` + list(maxAlternatives+1, topic) + `]}`:                false,
		`{"topics":[null,[null],[]]}`:                                        true,
		`{"topics":["0x12"]}`:                                                false,
		`{"address":"0x12"}`:                                                 false,
		`{"address":5}`:                                                      false,
		`{"blockHash":` + topic + `,"fromBlock":"0x1"}`:                      false,
		`{"blockHash":` + topic + `,"address":` + list(2, address) + `}`:     true,
		`{"fromBlock":"0x1","toBlock":"latest","topics":[` + topic + `,[]]}`: true,
	} {
		var q LogQuery
		err := json.Unmarshal([]byte(text), &q)
		if err == nil {
			err = q.check()
		}
		if (err == nil) != valid {
			t.Errorf("%.100s: the error is %v", text, err)
		}
	}
}

// TestMatchesImplyTheBloom draws queries and logs: no log that a query selects is missed because of its block's bloom.
func TestMatchesImplyTheBloom(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		hash := rapid.Custom(func(r *rapid.T) common.Hash { return common.Hash{31: rapid.ByteRange(0, 3).Draw(r, "byte")} })
		q := LogQuery{Addresses: []common.Address{}}
		for _, h := range rapid.SliceOfN(hash, 0, 2).Draw(r, "addresses") {
			q.Addresses = append(q.Addresses, common.BytesToAddress(h[:]))
		}
		for range rapid.IntRange(0, maxTopics).Draw(r, "positions") {
			q.Topics = append(q.Topics, rapid.SliceOfN(rapid.Ptr(hash, true), 0, 2).Draw(r, "topics"))
		}
		l := &types.Log{Topics: rapid.SliceOfN(hash, 0, 4).Draw(r, "topics of the log")}
		l.Address[19] = rapid.ByteRange(0, 3).Draw(r, "address")
		bloom := types.CreateBloom(&types.Receipt{Logs: []*types.Log{l}})
		if q.Matches(l) && !q.mayMatch(bloom) {
			r.Fatalf("the query selects the log, but not its bloom")
		}
	})
}

// FuzzLogQuery reads queries of other programs.
func FuzzLogQuery(f *testing.F) {
	f.Add([]byte(`{"address":"0x0000000000000000000000000000000000000001","topics":[null,["0x00"]],"fromBlock":"latest"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var q LogQuery
		if json.Unmarshal(raw, &q) == nil && q.check() == nil {
			q.Matches(&types.Log{Topics: []common.Hash{{1}}})
		}
		var args callArgs
		if json.Unmarshal(raw, &args) == nil {
			if msg, err := args.message(big.NewInt(1)); err == nil && msg.GasLimit > maxCallGas {
				t.Errorf("a call has %d gas", msg.GasLimit)
			}
		}
	})
}

// TestCallFees checks what a call is taken to pay.
func TestCallFees(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                  "price 0, cap 0, tip 0, gas 0",
		`{"gasPrice":"0x64"}`: "price 100, cap 100, tip 100, gas 0",
		`{"maxFeePerGas":"0x64","maxPriorityFeePerGas":"0x5","gas":"0xa"}`: "price 15, cap 100, tip 5, gas 10",
		`{"maxFeePerGas":"0xc","maxPriorityFeePerGas":"0x5"}`:              "price 12, cap 12, tip 5, gas 0",
		`{"gas":"0xffffffffffffffff"}`:                                     fmt.Sprintf("price 0, cap 0, tip 0, gas %d", maxCallGas),
		`{"gasPrice":"0x64","maxFeePerGas":"0x64"}`:                        "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
		`{"chainId":"0x1"}`:                                                "chainId is 1, want 1337",
		`{"authorizationList":[]}`:                                         "EIP-7702 transaction cannot be used to create contract",
	} {
		var args callArgs
		expect.OK(t, json.Unmarshal([]byte(text), &args))
		msg, err := args.message(big.NewInt(10))
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("price %s, cap %s, tip %s, gas %d", msg.GasPrice, msg.GasFeeCap, msg.GasTipCap, msg.GasLimit)
		}
		expect.Equal(t, got, want, "%s:", text)
	}
}

// TestReceiptsAreNotAheadOfTheHead checks that a client that has the receipt of a transaction also reads the state after
// it: its next transaction needs the next nonce.
func TestReceiptsAreNotAheadOfTheHead(t *testing.T) {
	c := start(t, Config{})
	nonce := func() uint64 {
		n, err := c.client.NonceAt(t.Context(), Address(c.Keys.Payer), nil)
		expect.OK(t, err)
		return n
	}
	for range 200 {
		before, hash, sealed := nonce(), transfer(t, c, 1), make(chan error, 1)
		go func() { sealed <- c.Seal(t.Context()) }()
		for {
			_, err := c.client.TransactionReceipt(t.Context(), hash)
			if err == nil {
				break
			}
			if !errors.Is(err, ethereum.NotFound) {
				t.Fatal(err)
			}
		}
		expect.Equal(t, nonce(), before+1, "after the transaction with nonce %d the next nonce is", before)
		expect.OK(t, <-sealed)
	}
}

// TestStorageKey refuses slots that are not at most 32 bytes in hex: the word of another slot must not be the answer.
func TestStorageKey(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("ab", 32)
	for text, want := range map[string]common.Hash{"0x0": {}, "0x": {}, "1": {31: 1}, "0X1ff": {30: 1, 31: 0xff}, "0x" + full: common.HexToHash(full)} {
		if got, err := storageKey(text); err != nil || got != want {
			t.Errorf("%q: %x, %v", text, got, err)
		}
	}
	for _, text := range []string{"0x" + full + "00", "0xzz", "slot"} {
		if got, err := storageKey(text); err == nil {
			t.Errorf("%q is the slot %x", text, got)
		}
	}
}
