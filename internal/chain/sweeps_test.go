package chain

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// sweepLogs are the events of a factory: a sweep of 7 and a failure.
func sweepLogs(factory common.Address) []types.Log {
	word := func(n int64) common.Hash { return common.BigToHash(big.NewInt(n)) }
	return []types.Log{
		{Address: factory, Topics: []common.Hash{sweptTopic, word(1), word(2), word(3)}, Data: word(7).Bytes()},
		{Address: factory, Topics: []common.Hash{sweepFailedTopic, word(4), word(0)}},
	}
}

func TestSweepEvents(t *testing.T) {
	factory := common.Address{0x61}
	good := sweepLogs(factory)
	long, short, elsewhere, other, anonymous := good[0], good[0], good[0], good[1], good[1]
	long.Data, short.Topics = append(make([]byte, 32), long.Data...), short.Topics[:3]
	elsewhere.Address[0]++
	other.Topics = append([]common.Hash{{1}}, other.Topics[1:]...)
	anonymous.Topics = nil
	logs := append(good, long, short, elsewhere, other, anonymous)
	want := []SweepEvent{
		{Deposit: invoice.Address{19: 1}, Token: invoice.Address{19: 2}, Amount: big.NewInt(7)},
		{Deposit: invoice.Address{19: 4}, Amount: new(big.Int), Failed: true},
	}
	equal := cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })
	expect.NoDiff(t, cmp.Diff(want, SweepEvents(invoice.Address(factory), &Receipt{Logs: logs}), equal), "-want +got")
}

// FuzzSweepEvents parses the logs of any receipt that a node may return.
func FuzzSweepEvents(f *testing.F) {
	factory := common.Address{0x61}
	seed := expect.Must(json.Marshal(sweepLogs(factory)))
	f.Add(seed)
	f.Add([]byte(`[{"address":"0x6100000000000000000000000000000000000000","topics":[],"data":"0x"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Receipt
		if json.Unmarshal(data, &r.Logs) != nil {
			return
		}
		events := SweepEvents(invoice.Address(factory), &r)
		if len(events) > len(r.Logs) {
			t.Errorf("%d events in %d logs", len(events), len(r.Logs))
		}
		for _, e := range events {
			if e.Amount.Sign() < 0 || e.Amount.BitLen() > 256 || e.Failed && e.Amount.Sign() != 0 {
				t.Errorf("the event is %+v", e)
			}
		}
	})
}
