package contracts_test

import (
	"crypto/ecdsa"
	"encoding/binary"
	"flag"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// gasDocs is the page with the figures of TestGas.
var gasDocs = testdeps.Repo("docs/gas.md")

// gasSnapshot has the exact gas of each call, one per line, like Foundry's file of this name.
const gasSnapshot = ".gas-snapshot"

var update = flag.Bool("update", false, "write "+gasSnapshot+" anew")

// TestGas measures the gas of calls. It must equal gasSnapshot. In the table of gasDocs a figure is a ceiling, and the
// gas must be less than a hundredth below it.
func TestGas(t *testing.T) {
	w := newFixedWorld(t)
	text, err := os.ReadFile(gasDocs)
	w.must(err)
	table := &gasTable{world: w, text: string(text)}
	operator, payer := w.Keys.Operator, w.Keys.Payer
	for _, size := range []int{1, 50, 200} {
		ids := gasIDs(size)
		table.want(fmt.Sprintf("`open` of %d", size), w.gas(operator, w.Registry, w.registry.PackOpen(ids)), size)
		for _, c := range []struct {
			name      string
			expiresAt uint64
		}{{"`close` of %d", w.now() + 3600}, {"`close` of %d, expired", w.now() - 1}} {
			table.want(fmt.Sprintf(c.name, size), w.gas(operator, w.Registry, w.registry.PackClose(ids, c.expiresAt)), size)
		}
	}
	table.wantCheap()
	// Each call is made twice, and the second counts: after the first, payer
	// and merchant have used the token before.
	for _, call := range []struct {
		name string
		gas  func(contracts.Terms) uint64
	}{
		{"`approve`, which `pay` needs once", func(contracts.Terms) uint64 {
			w.gas(payer, w.Token, w.token.PackApprove(w.Registry, new(big.Int)))
			return w.gas(payer, w.Token, w.token.PackApprove(w.Registry, big.NewInt(1_000_000)))
		}},
		{"`pay`", func(t contracts.Terms) uint64 {
			w.approve(1_000_000)
			return w.gas(payer, w.Registry, w.registry.PackPay(t))
		}},
		{"`payWithPermit`", func(t contracts.Terms) uint64 {
			w.approve(0)
			p, sig := w.permit(t.Amount.Int64())
			return w.gas(payer, w.Registry, w.registry.PackPayWithPermit(t, p.Deadline, sig.V, sig.R, sig.S))
		}},
		{"`payWithAuthorization`", func(t contracts.Terms) uint64 {
			a, sig := w.gasAuthorization(t)
			return w.gas(operator, w.Registry,
				w.registry.PackPayWithAuthorization(t, a.From, a.ValidAfter, a.ValidBefore, sig.V, sig.R, sig.S))
		}},
		{"the token's `transferWithAuthorization`", func(t contracts.Terms) uint64 {
			a, sig := w.gasAuthorization(t)
			return w.gas(operator, w.Token,
				w.token.PackTransferWithAuthorization0(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, sig.V, sig.R, sig.S))
		}},
		{"the token's `transfer`, id in the calldata", func(t contracts.Terms) uint64 {
			return w.gas(payer, w.Token, append(w.token.PackTransfer(t.Merchant, t.Amount), w.id(t).Bytes()...))
		}},
		{"the token's `transfer`", func(t contracts.Terms) uint64 {
			return w.gas(payer, w.Token, w.token.PackTransfer(t.Merchant, t.Amount))
		}},
	} {
		var used uint64
		for range 2 {
			terms := w.terms()
			w.do(operator, w.Registry, w.registry.PackOpen([][32]byte{w.id(terms)}))
			used = call.gas(terms)
		}
		table.want(call.name, used, 1)
	}
	table.sweeps()
	for _, size := range []int{1, 50} {
		all := make([]contracts.SignedAuthorization, size)
		for i := range all {
			all[i] = w.paid()
		}
		table.want(fmt.Sprintf("`relay` of %d", size), w.gas(operator, w.AuthorizationRelay, relayed(all...)), size)
	}
	table.compare()
}

// maxEventGas is the maximum gas of opening an invoice, or closing an expired one, in a batch of 200.
const maxEventGas = 2_000

// wantCheap fails if a measurement is above its limit.
func (g *gasTable) wantCheap() {
	g.Helper()
	cheap := 0
	for _, line := range g.measured {
		for _, name := range []string{"open of 200", "close of 200, expired"} {
			var used uint64
			if n, _ := fmt.Sscanf(line, name+" (gas: %d)", &used); n == 1 {
				cheap++
				if used > 200*maxEventGas {
					g.Errorf("%s takes %d gas for each, want at most %d", name, used/200, maxEventGas)
				}
			}
		}
	}
	if cheap != 2 {
		g.Errorf("%d of 2 calls were measured", cheap)
	}
}

// maxSweepGas is the maximum gas of a deposit in a batch of 50, including its deployment.
const maxSweepGas = 95_000

// sweeps measures sweeps of the token to a merchant that already holds some.
func (g *gasTable) sweeps() {
	g.Helper()
	g.fund(g.Token, g.merchant, 1)
	for _, size := range []int{1, 50, 200} {
		var sweeps []contracts.Sweep
		for _, id := range gasIDs(size) {
			sweeps = append(sweeps, contracts.Sweep{Merchant: g.merchant, Id: id, Token: g.Token})
		}
		g.fundAll(sweeps)
		used := g.gas(g.Keys.Operator, g.DepositFactory, g.factory.PackSweep(sweeps))
		g.want(fmt.Sprintf("`sweep` of %d", size), used, size)
		if each := used / uint64(size); size == 50 && each > maxSweepGas {
			g.Errorf("a sweep of 50 takes %d gas for each, want at most %d", each, maxSweepGas)
		}
		if size == 50 {
			g.fundAll(sweeps)
			g.want("`sweep` of 50, deployed before", g.gas(g.Keys.Operator, g.DepositFactory, g.factory.PackSweep(sweeps)), size)
		}
	}
}

// fundAll pays 1,000 minor units to the deposit of each sweep.
func (g *gasTable) fundAll(sweeps []contracts.Sweep) {
	g.Helper()
	for batch := range slices.Chunk(sweeps, 50) {
		for _, s := range batch {
			_, err := g.SendToken(g.Context(), g.Keys.Payer, g.depositOf(s), big.NewInt(1000), nil)
			g.must(err)
		}
		g.must(g.Seal(g.Context()))
	}
	for _, s := range sweeps {
		g.wantBalance(g.depositOf(s), 1000)
	}
}

// gasIDs returns ids that are the same in every run: zero bytes cost less.
func gasIDs(n int) [][32]byte {
	ids := make([][32]byte, n)
	for i := range ids {
		ids[i] = crypto.Keccak256Hash(binary.BigEndian.AppendUint64(nil, uint64(n)), binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	return ids
}

// gas sends a call that must succeed and returns the gas it used.
func (w *world) gas(from *ecdsa.PrivateKey, to common.Address, data []byte) uint64 {
	w.Helper()
	nonce, err := w.Client().NonceAt(w.Context(), devchain.Address(from), nil)
	w.must(err)
	tx, err := types.SignNewTx(from, types.LatestSignerForChainID(w.ChainID()), &types.DynamicFeeTx{
		ChainID: w.ChainID(), Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei),
		Gas: params.MaxTxGas, To: &to, Data: data,
	})
	w.must(err)
	w.must(w.Client().SendTransaction(w.Context(), tx))
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), tx.Hash())
	w.must(err)
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatalf("a call of %s with %d bytes failed", to, len(data))
	}
	return receipt.GasUsed
}

func (w *world) gasAuthorization(t contracts.Terms) (contracts.Authorization, contracts.Signature) {
	w.Helper()
	a := contracts.Authorization{
		From: w.payer, To: t.Merchant, Value: t.Amount, ValidAfter: new(big.Int),
		ValidBefore: new(big.Int).SetUint64(t.ExpiresAt + 1), Nonce: w.id(t),
	}
	sig, err := a.Sign(contracts.TestUSDCDomain(w.ChainID(), w.Token), w.Keys.Payer)
	w.must(err)
	return a, sig
}

// gasTable is a text with a table of calls, their gas, and the gas for each
// invoice.
type gasTable struct {
	*world
	text     string
	measured []string // lines of the snapshot
}

// compare fails the test unless the snapshot has the measured figures, or writes them.
func (g *gasTable) compare() {
	g.Helper()
	slices.Sort(g.measured)
	got := strings.Join(g.measured, "")
	if *update {
		g.must(os.WriteFile(gasSnapshot, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(gasSnapshot)
	g.must(err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		g.Errorf("the gas of calls changed (run make gas if that is meant): -was +is\n%s", diff)
	}
}

// want fails the test unless the gas of a call matches the table.
func (g *gasTable) want(call string, used uint64, invoices int) {
	g.Helper()
	g.measured = append(g.measured, fmt.Sprintf("%s (gas: %d)\n", strings.ReplaceAll(call, "`", ""), used))
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(call) + ` \| ([\d,]+) \| ([\d,]+) \|$`).FindStringSubmatch(g.text)
	if row == nil {
		g.Errorf("%s has no row for %q; want | call | %d | %d |", gasDocs, call, used, used/uint64(invoices))
		return
	}
	total, each := g.number(row[1]), g.number(row[2])
	if used > total || used < total-total/100 {
		g.Errorf("%s cost %d gas, and %s says %d", call, used, gasDocs, total)
	}
	if each != total/uint64(invoices) {
		g.Errorf("%s says %d gas for %d invoices, and %d for each", gasDocs, total, invoices, each)
	}
}

func (g *gasTable) number(text string) uint64 {
	g.Helper()
	n, err := strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 64)
	g.must(err)
	return n
}
