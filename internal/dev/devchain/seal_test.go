package devchain

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestSealAt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := start(t, Config{Now: func() time.Time { return now }})
	if got := c.head().Time; got != uint64(now.Unix()) {
		t.Fatalf("first block is dated %d, want the clock's %d", got, now.Unix())
	}
	if err := c.SealAt(t.Context(), now); err == nil {
		t.Error("SealAt accepted the parent's own time")
	}
	expect.OK(t, c.SealAt(t.Context(), now.Add(time.Hour)))
	expect.Equal(t, c.head().Time, uint64(now.Add(time.Hour).Unix()), "block is dated")
	seal(t, c)
	expect.Equal(t, c.head().Time, uint64(now.Add(time.Hour).Unix())+1, "block after it is dated")
}

// tick runs one tick of the periodic sealer, and returns the number of added blocks.
func tick(t testing.TB, c *Chain) uint64 {
	t.Helper()
	before := c.head().Number.Uint64()
	expect.OK(t, c.sealOnTime(t.Context()))
	return c.head().Number.Uint64() - before
}

// tickUntilQuiet ticks and advances the clock until all transactions are final and the head is not ahead of the clock.
func tickUntilQuiet(t testing.TB, c *Chain, now *time.Time) {
	t.Helper()
	for range FinalityDepth + uint64(maxAhead/time.Second) + 1 {
		*now = now.Add(time.Second)
		tick(t, c)
	}
	if got := int64(c.head().Time); got != now.Unix() {
		t.Fatalf("head is dated %d after a while without transactions, want the clock's %d", got, now.Unix())
	}
}

func TestPeriodicSealingWaitsForTheClock(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := start(t, Config{Now: func() time.Time { return now }})
	tickUntilQuiet(t, c, &now)
	for _, step := range []struct {
		advance time.Duration
		blocks  uint64
	}{
		{0, 0}, {999 * time.Millisecond, 0}, {time.Millisecond, 1}, {0, 0}, {5 * time.Second, 1}, {0, 0},
	} {
		now = now.Add(step.advance)
		expect.Equal(t, tick(t, c), step.blocks, "after %s: sealed … blocks:", step.advance)
	}
}

func TestPeriodicSealingHurriesForPayments(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := start(t, Config{Now: func() time.Time { return now }})
	tickUntilQuiet(t, c, &now)
	now = now.Add(time.Second)
	hash, err := c.SendToken(t.Context(), c.Keys.Payer, Address(c.Keys.Merchant), big.NewInt(5), nil)
	expect.OK(t, err)
	for range 1 + FinalityDepth {
		if tick(t, c) != 1 {
			t.Fatal("no block, though a payment waits or is not final")
		}
	}
	receipt, err := c.Mined(t.Context(), hash)
	expect.OK(t, err)
	if final := c.node.blocks.CurrentFinalBlock().Number; receipt.BlockNumber.Cmp(final) != 0 {
		t.Errorf("payment is in block %s, but %s is the newest final one", receipt.BlockNumber, final)
	}
	if tick(t, c) != 0 {
		t.Error("a block ahead of the clock, though the payment is final")
	}
}

// TestPeriodicSealingKeepsNearTheClock draws ticks, clock changes, transactions and restarts.
func TestPeriodicSealingKeepsNearTheClock(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	conf := Config{Now: func() time.Time { return now }, DataDir: t.TempDir()}
	c := start(t, conf)
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 20).Draw(r, "ticks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(r, "milliseconds")) * time.Millisecond)
			if rapid.Bool().Draw(r, "pay") {
				expect.Success(r)(c.SendToken(t.Context(), c.Keys.Payer, Address(c.Keys.Merchant), common.Big1, nil))
			}
			tick(t, c)
			if ahead := int64(c.head().Time) - now.Unix(); ahead > 2 {
				r.Fatalf("head is %d s ahead of the clock", ahead)
			}
		}
	})
	for sealed := uint64(1); sealed > 0; { // until it is maxAhead
		sealed = tick(t, c)
	}
	expect.OK(t, c.Close())
	again := start(t, conf)
	now = now.Add(maxAhead + time.Second)
	if tick(t, again) != 1 {
		t.Error("no block after a restart, though the clock has got past the head")
	}
}

func TestFork(t *testing.T) {
	c := start(t, Config{})
	ctx, merchant := t.Context(), Address(c.Keys.Merchant)
	replaced, err := c.SendToken(ctx, c.Keys.Payer, merchant, big.NewInt(5), nil)
	orphan := succeed(t, c, replaced, err)
	seal(t, c)

	// The other branch uses the same nonce, so that the first transfer is invalid there.
	nonce, err := c.Client().NonceAt(ctx, Address(c.Keys.Payer), new(big.Int).Sub(orphan.BlockNumber, common.Big1))
	expect.OK(t, err)
	other, err := c.Sign(c.Keys.Payer, nonce, c.Token, contracts.NewTestUSDC().PackTransfer(merchant, big.NewInt(3)))
	expect.OK(t, err)
	expect.OK(t, c.Fork(ctx, 2, nil, []*types.Transaction{other}, nil))
	expect.Equal(t, balance(t, c, merchant), 3, "merchant has … minor units after the fork:")
	if _, err := c.Client().TransactionReceipt(ctx, replaced); err == nil {
		t.Error("the replaced transfer still has a receipt")
	}
	receipt, err := c.Mined(ctx, other.Hash())
	expect.OK(t, err)
	if receipt.BlockNumber.Uint64() != orphan.BlockNumber.Uint64()+1 {
		t.Errorf("the other transfer is in block %s, want the fork's second", receipt.BlockNumber)
	}
	seal(t, c)
	expect.Equal(t, balance(t, c, merchant), 3, "merchant has … minor units after another block:")
}

func TestForkGivesTransactionsBackToThePool(t *testing.T) {
	for name, drop := range map[string]bool{"kept": false, "dropped": true} {
		t.Run(name, func(t *testing.T) {
			c := start(t, Config{})
			hash, err := c.SendToken(t.Context(), c.Keys.Payer, Address(c.Keys.Merchant), big.NewInt(5), nil)
			succeed(t, c, hash, err)
			expect.OK(t, c.Fork(t.Context(), 1, nil, nil))
			want := int64(5)
			if drop {
				c.DropPending()
				want = 0
			}
			seal(t, c)
			expect.Equal(t, balance(t, c, Address(c.Keys.Merchant)), want, "merchant has … minor units:")
		})
	}
}

func TestExtraForkManyTimes(t *testing.T) {
	c := start(t, Config{})
	for range 40 {
		seal(t, c)
	}
	for depth := range uint64(30) {
		if err := c.Fork(t.Context(), depth, make([][]*types.Transaction, depth+1)...); err != nil {
			t.Fatalf("fork %d deep: %v", depth, err)
		}
		seal(t, c)
	}
	number := c.head().Number.Uint64()
	expect.OK(t, c.Fork(t.Context(), 10))
	if got := c.head().Number.Uint64(); got != number-10 {
		t.Errorf("head is %d after stepping back by 10 from %d", got, number)
	}
	if err := c.Fork(t.Context(), number-9); err == nil {
		t.Error("a fork deeper than the chain was accepted")
	}
}

func TestFinalityTags(t *testing.T) {
	c := start(t, Config{})
	for range 5 {
		seal(t, c)
	}
	for _, tag := range []rpc.BlockNumber{rpc.SafeBlockNumber, rpc.FinalizedBlockNumber} {
		header, err := c.Client().HeaderByNumber(t.Context(), big.NewInt(int64(tag)))
		expect.OK(t, err)
		expect.Equal(t, header.Number.Uint64(), c.head().Number.Uint64()-FinalityDepth, "%s is block", tag)
	}
}
