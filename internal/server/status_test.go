package server

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/indexer"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// statusOf polls /status until wanted returns true, and returns the status.
func statusOf(t *testing.T, base, what string, wanted func(admin.Status) bool) admin.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		st, err := admin.FetchStatus(ctx, admin.Service{URL: base}, "")
		expect.OK(t, err)
		if wanted(st) {
			return st
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("no %s; the status is %+v", what, st)
		}
	}
}

func testKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	expect.OK(t, err)
	return key
}

func TestStatus(t *testing.T) {
	good, _ := scripted(t, "good", 7)
	down, _ := scripted(t, "down", 8)
	down.RPC = []string{"http://127.0.0.1:1"}
	down.Registry, down.OperatorKey, down.Quorum = invoice.Address{9}, testKey(t), 2
	base := startServer(t, Config{Chains: []Chain{good, down}}).url
	got := statusOf(t, base, "the state of both", func(st admin.Status) bool {
		return st.Chains[0].Confirmed == 2 && st.Chains[1].Providers[0].State == chain.StateBackoff && st.Chains[1].Error != ""
	})
	want := admin.Status{Chains: []admin.Chain{{
		ChainKey: "good", ChainID: 7, Finality: "1", Quorum: 1, Ready: true, Reading: true, Head: 3, Indexed: 3, Confirmed: 2,
		Providers: []admin.Provider{{Provider: good.RPC[0], State: chain.StateOK, Health: apitypes.NodeOK, Head: 3}},
		Checks:    admin.Checks(good.Chain, "unknown", "none"),
	}, {
		ChainKey: "down", ChainID: 8, Finality: "1", Quorum: 2, Reading: true,
		Providers: []admin.Provider{{Provider: down.RPC[0], State: chain.StateBackoff, Health: apitypes.NodePaused}},
		Checks:    admin.Checks(down.Chain, "unknown", "none"),
		Writer:    &admin.Writer{Account: crypto.PubkeyToAddress(down.OperatorKey.PublicKey).Hex(), Working: true},
	}}}
	if diff := cmp.Diff(want, got,
		cmpopts.IgnoreFields(admin.Provider{}, "Calls", "Errors", "LatencyMs", "HeadAt", "Until", "Reason", "FailingSince", "LastError", "LastErrorAt", "Pace"),
		cmpopts.IgnoreFields(admin.Chain{}, "Error"), cmpopts.IgnoreFields(admin.Writer{}, "Error", "Since", "Working"),
	); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, p := range []admin.Provider{got.Chains[0].Providers[0], got.Chains[1].Providers[0]} {
		if failing := p.State != chain.StateOK; p.Calls == 0 || (p.Errors > 0) != failing || (p.Until > 0) != failing || (p.Reason != "") != failing || p.LastError != p.Reason || (p.FailingSince > 0) != failing || (p.LastErrorAt > 0) != failing || (p.HeadAt == 0) != failing {
			t.Errorf("%s: %+v", p.State, p)
		}
	}
	text := ask(t, http.MethodGet, base+"/metrics", "").body
	for _, want := range []string{
		`quittance_provider_state{chain="good",node="1",provider="` + good.RPC[0] + `",state="ok"} 1`,
		`quittance_provider_state{chain="down",node="1",provider="` + down.RPC[0] + `",state="ok"} 0`,
		`quittance_provider_head{chain="good",node="1",provider="` + good.RPC[0] + `"} 3`,
		`quittance_provider_errors_total{chain="good",node="1",provider="` + good.RPC[0] + `"} 0`,
		`quittance_provider_latency_seconds{chain="down"`, `quittance_provider_calls_total{chain="down"`, `quittance_provider_calls_per_day{chain="down"`,
		`quittance_chain_backfill_blocks{chain="good"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestProvidersOfOneHost configures two nodes that differ only in their URL's key. They are separate series.
func TestProvidersOfOneHost(t *testing.T) {
	c, _ := scripted(t, "house", 7)
	c.RPC = append(c.RPC, c.RPC[0]+"/key")
	base := startServer(t, Config{Chains: []Chain{c}}).url
	if a := ask(t, http.MethodGet, base+"/metrics", ""); a.status != http.StatusOK || strings.Count(a.body, "\nquittance_provider_head{") != 2 {
		t.Errorf("answered %d %s", a.status, a.body)
	}
}

// halt halts a chain.
func halt(t *testing.T, database, chainKey, reason string) {
	t.Helper()
	store, err := db.Open(t.Context(), database)
	expect.OK(t, err)
	service := ledger.New(ledger.Config{Store: store, Now: time.Now})
	expect.OK(t, errors.Join(service.Halt(t.Context(), chainKey, reason), store.Close()))
}

// TestHaltedAndResumed starts a service with a halted chain and resumes it as an operator does.
func TestHaltedAndResumed(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	database := dbtest.Migrated(t)
	first := startServer(t, Config{Chains: []Chain{c}, Database: database})
	await(t, first.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	first.stop()
	expect.OK(t, <-first.ended)
	conf := admin.Config{Database: database, Chains: []chain.Chain{c.Chain}, Now: time.Now}
	halt(t, database, "house", "finalized block replaced")
	base := startServer(t, Config{Chains: []Chain{c}, Database: database}).url
	st := statusOf(t, base, "the halt", func(st admin.Status) bool { return st.Chains[0].Halted != "" })
	if st.Chains[0].Ready || st.Chains[0].Halted != "finalized block replaced" {
		t.Errorf("it is %+v", st.Chains[0])
	}
	await(t, base, "the end of readiness", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && h.Chains[0].Error == "finalized block replaced"
	})
	if text := ask(t, http.MethodGet, base+"/metrics", "").body; !strings.Contains(text, `quittance_chain_halted{chain="house"} 1`) {
		t.Error("the metrics do not show the halt")
	}
	expect.OK(t, conf.WithLedger(t.Context(), func(l *ledger.Service) error { return l.Resume(t.Context(), "house") }))
	await(t, base, "readiness again", func(status int, _ health) bool { return status == http.StatusOK })
}

// TestBackfillProgress expects progress in the health of a chain that is ready.
func TestBackfillProgress(t *testing.T) {
	got := progress(&indexer.Progress{From: 100, To: 199, At: 150, BlocksPerSecond: 12.5, Left: 4 * time.Second})
	want := &admin.Progress{From: 100, To: 199, Next: 150, Percent: 50, BlocksPerSecond: 12.5, SecondsLeft: 4}
	if diff := cmp.Diff(want, got); diff != "" || progress(nil) != nil {
		t.Errorf("-want +got:\n%s", diff)
	}
	c := admin.Chain{ChainKey: "house", Ready: true, Lag: admin.Lag{Blocks: 50, Seconds: 3}, CatchUp: got, Backfill: got}
	text, err := json.Marshal(healthOf(c))
	if err != nil || !strings.Contains(string(text), `"ready":true`) || strings.Count(string(text), `"percent":50`) != 2 || !strings.Contains(string(text), `"lag":50`) {
		t.Errorf("/readyz shows %s, %v", text, err)
	}
}

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

// TestReadyShowsClockSkew serves a chain with block times that are an hour ahead. The service is ready
// and shows the skew.
func TestReadyShowsClockSkew(t *testing.T) {
	c := chaintest.NewAt(7, time.Now().Add(-time.Hour).Unix())
	c.Token(testToken, 6)
	c.MineEmpty(3)
	base := startServer(t, Config{Chains: []Chain{{PollInterval: time.Millisecond, Chain: chain.Chain{
		Key: "house", ID: 7, RPC: []string{c.Serve(t).URL}, Finality: chain.Finality{Depth: 1},
		Tokens: []chain.Token{{Currency: chain.USDC, Address: testToken, Decimals: 6}},
	}}}}).url
	for range 4 {
		head := c.Head().Number
		await(t, base, "the head", func(_ int, h health) bool { return h.Chains[0].Indexed == head })
		c.MineAt(time.Now().Add(time.Hour).Unix())
	}
	h := await(t, base, "the skew", func(_ int, h health) bool { return h.Chains[0].SkewSeconds != 0 })
	if s := h.Chains[0].SkewSeconds; !h.Ready || s > -3500 || s < -3700 {
		t.Errorf("ready %t, with a skew of %d seconds; want about -3600", h.Ready, s)
	}
	if text := ask(t, http.MethodGet, base+"/metrics", "").body; !strings.Contains(text, `quittance_chain_clock_skew_seconds{chain="house"} -3`) {
		t.Error("the metrics lack the skew")
	}
}
