package chain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

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
	without, err := json.Marshal(parsed)
	expect.OK(t, err)
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
		if got := c.TakesBatch(KindHeads, 3); got != test.want {
			t.Errorf("%+v: %t", test.settings, got)
		}
		now = now.Add(batchRetry)
		if got := c.TakesBatch(KindHeads, 3); got != test.want {
			t.Errorf("%+v, later: %t", test.settings, got)
		}
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
