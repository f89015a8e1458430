package chain

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

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
