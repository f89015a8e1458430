package chain

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// transferLogs writes n logs as geth does.
func transferLogs(tb testing.TB, n int) []byte {
	tb.Helper()
	logs := make([]types.Log, n)
	for i := range logs {
		logs[i] = types.Log{
			Address: common.Address{0x70}, Topics: []common.Hash{TransferTopic, {12: 1, 31: byte(i)}, {12: 2}},
			Data: common.LeftPadBytes([]byte{byte(i)}, 32), BlockNumber: uint64(i / 10), TxHash: common.Hash{byte(i)},
			TxIndex: uint(i), BlockHash: common.Hash{2}, BlockTimestamp: 1_790_000_000, Index: uint(i),
		}
	}
	data := expect.Must(json.Marshal(logs))
	return data
}

// compareLogs decodes data with go-ethereum and with Logs.
func compareLogs(t *testing.T, data []byte) {
	t.Helper()
	var want []types.Log
	wantErr := json.Unmarshal(withoutLeadingZeros(data), &want)
	var got Logs
	err := json.Unmarshal(data, &got)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s: error %v, want %v", data, err, wantErr)
	}
	if diff := cmp.Diff(want, []types.Log(got)); err == nil && diff != "" {
		t.Errorf("%s: %s", data, diff)
	}
}

// without removes a member from a log.
func without(log, member string) string {
	return regexp.MustCompile(`"`+member+`":(".*?"|\[.*?\]),`).ReplaceAllString(log, "")
}

// odd are lists of logs with unusual or invalid notation.
func odd(tb testing.TB) []string {
	tb.Helper()
	usual := string(transferLogs(tb, 1))
	swap := func(old, with string) string {
		if !strings.Contains(usual, old) {
			tb.Fatalf("%s lacks %s", usual, old)
		}
		return strings.Replace(usual, old, with, 1)
	}
	return []string{
		"null", "[]", " [ ] ", "[null]", "[{}]", "{}", `"0x"`, "[[]]", "[1]",
		without(usual, "address"), without(usual, "topics"), without(usual, "data"), without(usual, "transactionHash"),
		without(usual, "blockHash"), without(usual, "logIndex"),
		strings.ReplaceAll(usual, ",", " ,\n\t\r "), strings.ReplaceAll(usual, ":", " : "),
		strings.ToUpper(usual), strings.ReplaceAll(usual, "0x", "0X"),
		swap(`"address"`, `"Address"`), swap(`"address"`, `"\u0061ddress"`), swap(`"address"`, `"other"`),
		swap(`"removed":false`, `"removed":true`), swap(`"removed":false`, `"removed":null`), swap(`"removed":false`, `"removed":"false"`),
		swap(`"removed":false`, `"removed":false,"more":{"a":[1,"]}"]}`), swap(`,"removed":false`, ``),
		swap(`"removed":false`, `"removed":true,"removed":false`), swap(`"removed":false`, `"removed":false,"topics":null`),
		swap(`"removed":false`, `"removed":false,"topics":["0x`+strings.Repeat("11", 32)+`"]`),
		swap(`"blockNumber":"0x0"`, `"blockNumber":"0x00"`), swap(`"blockNumber":"0x0"`, `"blockNumber":"0x"`),
		swap(`"blockNumber":"0x0"`, `"blockNumber":""`), swap(`"blockNumber":"0x0"`, `"blockNumber":"0xffffffffffffffff"`),
		swap(`"blockNumber":"0x0"`, `"blockNumber":"0xABCDEF"`), swap(`"blockNumber":"0x0"`, `"blockNumber":0`),
		swap(`"blockNumber":"0x0"`, `"blockNumber":"0x10000000000000000"`), swap(`"blockNumber":"0x0"`, `"blockNumber":"0xg"`),
		swap(`"blockNumber":"0x0"`, `"blockNumber":null`), swap(`"transactionIndex":"0x0",`, ``),
		swap(`"data":"0x`, `"data":"0x0`), swap(`"data":"0x`, `"data":"0xg0`), swap(`"data":"0x`, `"data":"`), swap(`"data":"0x`, `"data":null,"x":"0x`),
		swap(`"topics":[`, `"topics":[],"x":[`), swap(`"topics":[`, `"topics":["0x00",`), swap(`"topics":[`, `"topics":[null,`),
		swap(`"topics":[`, `"topics":["0x`+strings.Repeat("1f", 32)+`","0x`+strings.Repeat("1f", 32)+`",`),
		swap(`"topics":[`, `"topics":[],"topics":[`), usual[:len(usual)-1], usual + "]", usual + " ",
	}
}

func TestLogs(t *testing.T) {
	compareLogs(t, transferLogs(t, 100))
	if _, ok := parseLogs(transferLogs(t, 100)); !ok {
		t.Error("logs as geth writes them are left to the slow way")
	}
	for _, data := range odd(t) {
		compareLogs(t, []byte(data))
	}
}

// compareAnswers decodes an answer with data as its result in both ways.
func compareAnswers(t *testing.T, answer []byte) {
	t.Helper()
	got, ok := parseAnswer(answer)
	if !ok {
		return // left to go-ethereum
	}
	var want struct{ Result []types.Log }
	if err := json.Unmarshal(answer, &want); err != nil {
		t.Fatalf("%s: read, but it is wrong: %v", answer, err)
	}
	if diff := cmp.Diff(want.Result, got); diff != "" {
		t.Errorf("%s: %s", answer, diff)
	}
}

// answers are JSON-RPC answers around a list of logs. The first two forms are usual.
func answers(logs string) []string {
	var all []string
	for _, form := range []string{
		`{"jsonrpc":"2.0","id":7,"result":%}`, `{"id" : 70 , "result":%,"jsonrpc":"2.0"} ` + "\n",
		`{"jsonrpc":"2.0","id":"7","result":%}`, `{"jsonrpc":"2.0","id":7,"result":%,"error":null}`, `{"result":%,"result":[]}`,
		`{"Result":%}`, `{"id":07,"result":%}`, `{"id":,"result":%}`, `{"result":%}}`, `{"result":%`, `{"result":null}`, `{}`, `[]`, `{"result":%,}`,
		`{"jsonrpc":"\u0032","result":%}`, `{"jsonrpc":"` + "\x01" + `","result":%}`, `{"jsonrpc":"` + "\xff" + `","result":%}`,
	} {
		all = append(all, strings.Replace(form, "%", logs, 1))
	}
	// The second list is decoded over the first.
	return append(all, `{"result":`+logs+`,"result":`+without(logs, "logIndex")+`}`)
}

func TestAnswers(t *testing.T) {
	for _, logs := range append(odd(t), string(transferLogs(t, 3))) {
		for _, answer := range answers(logs) {
			compareAnswers(t, []byte(answer))
		}
	}
	for _, answer := range answers(string(transferLogs(t, 3)))[:2] {
		if logs, ok := parseAnswer([]byte(answer)); !ok || len(logs) != 3 {
			t.Errorf("%s is left to the slow way", answer)
		}
	}
}

func FuzzLogs(f *testing.F) {
	for _, logs := range append(odd(f), string(transferLogs(f, 2))) {
		f.Add([]byte(logs))
		for _, answer := range answers(logs) {
			f.Add([]byte(answer))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		compareAnswers(t, data)
		if json.Valid(data) {
			compareLogs(t, data)
		} else if _, ok := parseLogs(data); ok {
			t.Errorf("%s: read, but it is no JSON", data)
		}
	})
}

// BenchmarkLogs asks a node for 10,000 logs.
func BenchmarkLogs(b *testing.B) {
	const n = 10_000
	answer := append([]byte(`{"jsonrpc":"2.0","id":1,"result":`), append(transferLogs(b, n), '}')...)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(answer) //nolint:errcheck // the client may hang up
	}))
	defer node.Close()
	e, err := NewClient(ClientConfig{URL: node.URL})
	expect.OK(b, err)
	defer e.Close()
	for name, ask := range map[string]func() ([]types.Log, error){
		"ours":          func() ([]types.Log, error) { return e.LogsInRange(b.Context(), 0, 1, LogFilter{}) },
		"go-ethereum's": func() (logs []types.Log, err error) { return logs, e.call(b.Context(), &logs, getLogs) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if logs, err := ask(); err != nil || len(logs) != n {
					b.Fatal(len(logs), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/log")
		})
	}
}

// safeFile is a batch file that Safe's Transaction Builder 1.18.2 exported.
const safeFile = `{"version":"1.0","chainId":"1","createdAt":1761326849944,"meta":{"name":"Transactions Batch","description":"",
	"txBuilderVersion":"1.18.2","createdFromSafeAddress":"0xA77DE01e157f9f57C7c4A326eeE9C4874D0598b6","createdFromOwnerAddress":""},
	"transactions":[{"to":"0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48","value":"0","data":null,"contractMethod":{"inputs":[
	{"internalType":"address","name":"spender","type":"address"},{"internalType":"uint256","name":"value","type":"uint256"}],
	"name":"approve","payable":false},"contractInputsValues":{"spender":"0x474e5Ded6b5D078163BFB8F6dBa355C3aA5478C8","value":"100000000000"}}]}`

func TestSafeChecksum(t *testing.T) {
	t.Parallel()
	const want = "0x8b5032f716845c8b08bab3d63dbd9ba92e056f3557793cd041e59b84e16aa989"
	if got, err := SafeChecksum([]byte(safeFile)); got != want || err != nil {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	renamed := strings.Replace(safeFile, "Transactions Batch", "<another> & name", 1)
	if got, err := SafeChecksum([]byte(renamed)); got != want || err != nil {
		t.Errorf("with another name %s, %v; want %s", got, err, want)
	}
	if _, err := SafeChecksum([]byte("[")); err == nil {
		t.Error("a checksum of no JSON")
	}
}

func TestSafeBatch(t *testing.T) {
	t.Parallel()
	file, err := SafeBatch(8453, time.UnixMilli(1_700_000_000_123), "Refund", "of a payment", invoice.Address{1}, invoice.Address{2}, "0x12")
	expect.OK(t, err)
	var parsed map[string]any
	expect.OK(t, json.Unmarshal(file, &parsed))
	meta := parsed["meta"].(map[string]any)
	checksum := meta["checksum"]
	delete(meta, "checksum") // as the Transaction Builder verifies it
	without := expect.Must(json.Marshal(parsed))
	if want, err := SafeChecksum(without); checksum != want || err != nil {
		t.Errorf("checksum %s, want %s, %v", checksum, want, err)
	}
	if parsed["chainId"] != "8453" || parsed["version"] != "1.0" || meta["createdFromSafeAddress"] != Checksum(invoice.Address{1}) {
		t.Errorf("the file is %s", file)
	}
}

// TestTakesBatch asks whether a node accepts three calls in one request: not beyond its settings, and not for a minute
// after three or fewer were refused.
func TestTakesBatch(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	clock := func() time.Time { return now }
	client := func(s NodeSettings) *Client {
		return &Client{limits: nodeLimits{settings: s, now: clock, all: map[Kind]*Limit{}}}
	}
	for _, test := range []struct {
		settings NodeSettings
		want     bool
	}{
		{NodeSettings{}, true}, {NodeSettings{MaxBatch: 3}, true}, {NodeSettings{MaxBatch: 2}, false}, {NodeSettings{MaxBatch: 1}, false},
		{NodeSettings{CallsPerSecond: 1}, true},
	} {
		c := client(test.settings)
		expect.Equal(t, c.TakesBatch(KindHeads, 3), test.want, "%+v:", test.settings)
		now = now.Add(batchRetry)
		expect.Equal(t, c.TakesBatch(KindHeads, 3), test.want, "%+v, later:", test.settings)
	}
	c := client(NodeSettings{})
	for _, size := range []uint64{3, 2} {
		c.Limit(KindHeads).Refused(size)
		c.Limit(KindHeads).Answered(1)
		now = now.Add(batchRetry - 1)
		if c.TakesBatch(KindHeads, 3) {
			t.Errorf("less than a minute after %d calls were refused, 3 are sent", size)
		}
		now = now.Add(1)
		if !c.TakesBatch(KindHeads, 3) || c.Limit(KindHeads).Next() != 3 {
			t.Errorf("a minute after %d calls were refused, 3 are not tried again", size)
		}
	}
}

func TestQuantity(t *testing.T) {
	for text, want := range map[string]Quantity{
		`"0x0"`: {}, `"0x1f"`: {N: 31}, `"0xFF"`: {N: 255}, `"0x00"`: {0, true}, `"0x01f"`: {31, true},
		`"0x` + strings.Repeat("0", maxQuantity-1) + `1"`: {1, true}, `"0xffffffffffffffff"`: {N: 1<<64 - 1}, `null`: {},
	} {
		var got Quantity
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{`"0x"`, `""`, `"1"`, `1`, `"0x-1"`, `"-0x1"`, `"0X1"`, `"0x1_0"`, `"0x+1"`, `"0xg"`, `"0x10000000000000000"`, `{}`,
		`"0x` + strings.Repeat("0", maxQuantity) + `1"`} {
		if err := json.Unmarshal([]byte(text), new(Quantity)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	for digits, accepted := range map[int]bool{64: true, 65: false} {
		if err := json.Unmarshal([]byte(`"0x`+strings.Repeat("f", digits)+`"`), new(BigQuantity)); (err == nil) != accepted {
			t.Errorf("%d digits: %v", digits, err)
		}
	}
	var negative BigQuantity
	if err := json.Unmarshal([]byte(`"-0x0ff"`), &negative); err != nil || negative.N.Int64() != -255 || !negative.HasLeadingZeros() {
		t.Errorf("-0x0ff is %+v, %v", negative, err)
	}
}

// FuzzQuantity expects the same number as go-ethereum, which also reads an empty string as 0. It accepts more than
// go-ethereum only for leading zeros and a sign.
func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{`"0x0"`, `"0x00"`, `"0x1f"`, `"-0x1"`, `"0x"`, `""`, `12`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "null") || strings.Contains(text, `\`) || strings.TrimSpace(text) == `""` { // go-ethereum reads them differently
			return
		}
		var small Quantity
		var wantSmall hexutil.Uint64
		err, wantErr := json.Unmarshal([]byte(text), &small), json.Unmarshal([]byte(text), &wantSmall)
		if wantErr == nil && (err != nil || small.N != uint64(wantSmall) || small.leadingZeros) || err == nil && wantErr != nil && !small.leadingZeros {
			t.Errorf("%q is %+v, %v; go-ethereum reads %d, %v", text, small, err, wantSmall, wantErr)
		}
		var large BigQuantity
		var wantLarge hexutil.Big
		err, wantErr = json.Unmarshal([]byte(text), &large), json.Unmarshal([]byte(text), &wantLarge)
		if wantErr == nil && (err != nil || large.N.Cmp(wantLarge.ToInt()) != 0) {
			t.Errorf("%q is %+v, %v; go-ethereum reads %s", text, large, err, &wantLarge)
		}
	})
}

// TestLeadingZeros reads a header, a receipt and logs with leading zeros, and logs one warning.
func TestLeadingZeros(t *testing.T) {
	hash := `"0x` + strings.Repeat("01", 32) + `"`
	header := `{"number":"0x01","hash":` + hash + `,"parentHash":` + hash + `,"timestamp":"0x0002","logsBloom":"0x0"}`
	log := `{"address":"0x` + strings.Repeat("70", 20) + `","topics":[],"data":"0x","transactionHash":` + hash +
		`,"blockNumber":"0x01","logIndex":"0x00","transactionIndex":"0x0a"}`
	receipt := `{"transactionHash":` + hash + `,"blockHash":` + hash + `,"blockNumber":"0x01","status":"0x01","gasUsed":"0x05208","effectiveGasPrice":"0x002","logs":[` + log + `]}`
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage
			Method string
		}
		expect.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		result := map[string]string{blockByNumber: header, receiptByHash: receipt, getLogs: "[" + log + "]"}[asked.Method]
		w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":` + result + `}`)) //nolint:errcheck // the client may hang up
	}))
	t.Cleanup(node.Close)
	c, err := NewClient(ClientConfig{URL: node.URL})
	expect.OK(t, err)
	t.Cleanup(c.Close)
	var logged strings.Builder
	pool := NewPool(PoolConfig{Clients: []*Client{c}, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	logs, err := c.LogsInRange(t.Context(), 1, 1, LogFilter{})
	if err != nil || len(logs) != 1 || logs[0].BlockNumber != 1 || logs[0].TxIndex != 10 || logs[0].Index != 0 {
		t.Errorf("logs %+v, %v", logs, err)
	}
	h, err := c.Head(t.Context())
	if err != nil || h.Number != 1 || h.Time.Unix() != 2 || h.HasBloom() {
		t.Errorf("head %+v, %v", h, err)
	}
	var r *Receipt
	if err := c.CallContext(t.Context(), &r, receiptByHash); err != nil || r.BlockNumber != 1 || !r.Succeeded() || r.Cost().Int64() != 42000 || len(r.Logs) != 1 {
		t.Errorf("receipt %+v, %v", r, err)
	}
	if n := strings.Count(logged.String(), "leading zeros"); n != 1 || !pool.Health()[0].LeadingZeros {
		t.Errorf("it is said %d times: %s", n, &logged)
	}
}

// TestLeadingZerosOfEach reads one answer with leading zeros only in a number of a log, or of a receipt in a list, and
// expects them to be reported.
func TestLeadingZerosOfEach(t *testing.T) {
	hash := `"0x` + strings.Repeat("01", 32) + `"`
	log := `{"address":"0x` + strings.Repeat("70", 20) + `","topics":[],"data":"0x","transactionHash":` + hash +
		`,"blockNumber":"0x1","logIndex":"0x00","transactionIndex":"0xa"}`
	receipt := func(status, logs string) string {
		return `{"transactionHash":` + hash + `,"blockHash":` + hash + `,"blockNumber":"0x1","status":"` + status + `","gasUsed":"0x5208","logs":[` + logs + `]}`
	}
	var block invoice.Hash
	copy(block[:], bytes.Repeat([]byte{1}, len(block)))
	for name, test := range map[string]struct {
		result string
		ask    func(*Client) error
	}{
		"logs of a range": {"[" + log + "]", func(c *Client) error {
			_, err := c.LogsInRange(t.Context(), 1, 1, LogFilter{})
			return err
		}},
		"logs up to the head": {"[" + log + "]", func(c *Client) error {
			_, err := c.LogsFrom(t.Context(), 1, LogFilter{})
			return err
		}},
		"logs of a block": {"[" + log + "]", func(c *Client) error {
			_, err := c.LogsOfBlocks(t.Context(), []invoice.Hash{block}, LogFilter{})
			return err
		}},
		"receipt": {receipt("0x1", log), func(c *Client) error {
			_, err := c.Receipts(t.Context(), []common.Hash{common.Hash(block)})
			return err
		}},
		"receipts of a block": {"[" + receipt("0x1", "") + "," + receipt("0x01", "") + "]", func(c *Client) error {
			_, err := c.BlockReceipts(t.Context(), block)
			return err
		}},
	} {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ ID json.RawMessage }
			expect.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
			w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":` + test.result + `}`)) //nolint:errcheck // the client may hang up
		}))
		t.Cleanup(node.Close)
		c, err := NewClient(ClientConfig{URL: node.URL})
		expect.OK(t, err)
		t.Cleanup(c.Close)
		if err := test.ask(c); err != nil || !c.leadingZeros.Load() {
			t.Errorf("%s: %v; said is %t", name, err, c.leadingZeros.Load())
		}
	}
}

// TestBloomOfNothing reads the ways in which nodes write a missing bloom filter.
func TestBloomOfNothing(t *testing.T) {
	hash := `"0x` + strings.Repeat("01", 32) + `"`
	for bloom, want := range map[string]types.Bloom{
		``: noBloom, `,"logsBloom":null`: noBloom, `,"logsBloom":""`: noBloom, `,"logsBloom":"0x"`: noBloom, `,"logsBloom":"0x0"`: noBloom,
		`,"logsBloom":"0x` + strings.Repeat("00", types.BloomByteLength) + `"`: {},
	} {
		var h Header
		err := json.Unmarshal([]byte(`{"number":"0x1","hash":`+hash+`,"parentHash":`+hash+`,"timestamp":"0x2"`+bloom+`}`), &h)
		if err != nil || h.Bloom != want {
			t.Errorf("%s: %x, %v", bloom, h.Bloom, err)
		}
	}
	for _, bloom := range []string{`"0x00"`, `"0x1"`, `1`} {
		if err := json.Unmarshal([]byte(`{"number":"0x1","hash":`+hash+`,"parentHash":`+hash+`,"timestamp":"0x2","logsBloom":`+bloom+`}`), new(Header)); err == nil {
			t.Errorf("%s is taken for a bloom filter", bloom)
		}
	}
}
