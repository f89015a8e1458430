package server

import (
	"encoding/json"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
)

// TestNodeStatus expects every value of a node in the operator's status.
func TestNodeStatus(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]admin.Provider{
		`{"node":"https://rpc.example","state":"ok","health":"ok","lastError":"429","lastErrorAt":900,"head":12,"latencyMs":1.5,"calls":100,"callsPerDay":17280,"errors":3,` +
			`"limits":[{"kind":"range","size":5,"refused":10,"at":1000},{"kind":"blockReceipts","size":0,"refused":1,"at":1001}],"callsPerSecond":8,"leadingZeros":true}`: {
			Provider: "https://rpc.example", State: chain.StateOK, Health: apitypes.NodeOK, LastError: "429", LastErrorAt: 900, Head: 12, LatencyMs: 1.5, Calls: 100, PerDay: 17280, Errors: 3, Pace: 8, LeadingZeros: true,
			Limits: []admin.NodeLimit{{Kind: chain.KindRange, Size: 5, Refused: 10, At: 1000}, {Kind: chain.KindReceiptsOfBlock, Refused: 1, At: 1001}},
		},
		`{"node":"https://rpc.example","state":"unknown","health":"failing","failingSince":800,"head":0,"latencyMs":0,"calls":0,"errors":0}`: {
			Provider: "https://rpc.example", State: chain.StateUnknown, Health: apitypes.NodeFailing, FailingSince: 800,
		},
	} {
		if got, err := json.Marshal(nodeStatus(p)); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}
