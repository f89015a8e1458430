package chain

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/go-cmp/cmp"

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
	data, err := json.Marshal(logs)
	expect.OK(tb, err)
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
