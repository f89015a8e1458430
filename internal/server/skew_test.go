package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
)

// TestReadyShowsClockSkew serves a chain with block times that are an hour ahead. The service is ready
// and shows the skew.
func TestReadyShowsClockSkew(t *testing.T) {
	c := chaintest.New(7)
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
