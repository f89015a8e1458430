package devchain

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestMain(m *testing.M) {
	if childRequested() {
		childMain()
		return
	}
	goleak.VerifyTestMain(m,
		// geth starts one pool of signature checkers per process.
		goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"),
		// LevelDB's goroutine ends up to a second after Close.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	)
}

// start runs a chain until the test ends, and expects Close to succeed.
func start(t *testing.T, conf Config) *Chain {
	t.Helper()
	c, err := Start(t.Context(), conf)
	expect.OK(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func seal(t *testing.T, c *Chain) {
	t.Helper()
	expect.OK(t, c.Seal(t.Context()))
}

func balance(t *testing.T, c *Chain, of common.Address) int64 {
	t.Helper()
	b, err := c.Balance(t.Context(), of)
	expect.OK(t, err)
	return b.Int64()
}

// succeed seals, and fails the test unless the transaction was mined successfully.
func succeed(t *testing.T, c *Chain, hash common.Hash, err error) *types.Receipt {
	t.Helper()
	expect.OK(t, err)
	seal(t, c)
	receipt, err := c.Mined(t.Context(), hash)
	expect.OK(t, err)
	if receipt.Status != types.ReceiptStatusSuccessful {
		t.Fatalf("transaction %s failed", hash)
	}
	return receipt
}

func TestGenesisAndDeployment(t *testing.T) {
	c := start(t, Config{})
	expect.Equal(t, balance(t, c, Address(c.Keys.Payer)), payerTokens, "payer begins with … minor units:")
	expect.Equal(t, balance(t, c, Address(c.Keys.Merchant)), 0, "merchant begins with … minor units:")
	for _, key := range c.Keys.all() {
		ether, err := c.Client().BalanceAt(t.Context(), Address(key), nil)
		expect.OK(t, err)
		if ether.Cmp(big.NewInt(1e18)) < 0 {
			t.Errorf("%s has %s wei, want at least one ether for gas", Address(key), ether)
		}
	}
	id := common.HexToHash("0x01")
	hash, err := c.Send(t.Context(), c.Keys.Operator, c.Registry,
		contracts.NewInvoiceRegistry().PackOpen([][32]byte{id}))
	receipt := succeed(t, c, hash, err)
	if opened, err := contracts.ParseOpened(*receipt.Logs[0]); err != nil || opened != id {
		t.Errorf("operator's open logged %v, %v; want %v", opened, err, id)
	}
}

// TestLeastTip pays the tip that a wallet computes from empty blocks.
func TestLeastTip(t *testing.T) {
	c := start(t, Config{})
	for range 15 {
		seal(t, c)
	}
	merchant := Address(c.Keys.Merchant)
	tx := expect.Must(types.SignNewTx(c.Keys.Payer, types.LatestSignerForChainID(c.ChainID()), &types.DynamicFeeTx{
		ChainID: c.ChainID(), GasTipCap: common.Big1, GasFeeCap: new(big.Int).Add(c.head().BaseFee, common.Big1),
		Gas: callGas, To: &c.Token, Data: contracts.NewTestUSDC().PackTransfer(merchant, big.NewInt(3)),
	}))
	expect.OK(t, c.Client().SendTransaction(t.Context(), tx))
	seal(t, c)
	if got := balance(t, c, merchant); got != 3 {
		t.Fatalf("merchant has %d minor units, want 3: a tip of 1 wei is never mined", got)
	}
	hash, err := c.SendToken(t.Context(), c.Keys.Payer, merchant, big.NewInt(4), nil)
	succeed(t, c, hash, err)
}

func TestJSONRPC(t *testing.T) {
	c := start(t, Config{})
	overHTTP, err := ethclient.DialContext(t.Context(), c.RPCURL())
	expect.OK(t, err)
	defer overHTTP.Close()
	if id, err := overHTTP.ChainID(t.Context()); err != nil || id.Cmp(c.ChainID()) != 0 {
		t.Errorf("chain id over HTTP: %v, %v; want %v", id, err, c.ChainID())
	}
}

func TestPayments(t *testing.T) {
	c := start(t, Config{})
	ctx, merchant := t.Context(), Address(c.Keys.Merchant)
	terms := func(id string) contracts.Terms {
		return contracts.Terms{Merchant: merchant, Token: c.Token, Amount: big.NewInt(7),
			ExpiresAt: c.head().Time + 3600, Salt: contracts.Salt(id)}
	}

	hash, err := c.SendToken(ctx, c.Keys.Payer, merchant, big.NewInt(5), []byte("trailing"))
	succeed(t, c, hash, err)
	tx, _, err := c.Client().TransactionByHash(ctx, hash)
	expect.OK(t, err)
	if data := tx.Data(); string(data[len(data)-8:]) != "trailing" {
		t.Errorf("calldata %x does not end in the trailing bytes", data)
	}

	hash, err = c.Pay(ctx, c.Keys.Payer, terms("a"))
	receipt := succeed(t, c, hash, err)
	if paid, err := contracts.ParsePaid(*receipt.Logs[len(receipt.Logs)-1]); err != nil || paid.Payer != Address(c.Keys.Payer) {
		t.Errorf("Pay logged %+v, %v; want the payer's payment", paid, err)
	}

	hash, err = c.PayWithAuthorization(ctx, c.Keys.Operator, c.Keys.Payer, terms("b"))
	succeed(t, c, hash, err)

	hash, err = c.TransferWithAuthorization(ctx, c.Keys.Operator, c.Keys.Payer, contracts.Authorization{
		From: Address(c.Keys.Payer), To: merchant, Value: big.NewInt(11),
		ValidAfter: new(big.Int), ValidBefore: big.NewInt(1 << 40), Nonce: common.HexToHash("0x09"),
	})
	succeed(t, c, hash, err)

	expect.Equal(t, balance(t, c, merchant), 5+7+7+11, "merchant has … minor units:")
}

func TestSendFromManyGoroutines(t *testing.T) {
	begun := time.Now()
	c := start(t, Config{BlockTime: 10 * time.Millisecond, Now: func() time.Time { // a second per tick
		return begun.Add(100 * time.Since(begun))
	}})
	const senders, each = 8, 10
	group, ctx := errgroup.WithContext(t.Context())
	for range senders {
		group.Go(func() error {
			for range each {
				hash, err := c.SendToken(ctx, c.Keys.Payer, Address(c.Keys.Merchant), common.Big1, nil)
				if err != nil {
					return err
				}
				if _, err := c.Mined(ctx, hash); err != nil {
					return err
				}
			}
			return nil
		})
	}
	expect.OK(t, group.Wait())
	expect.Equal(t, balance(t, c, Address(c.Keys.Merchant)), senders*each, "merchant has … minor units:")
}

func TestMinedEndsWithItsContext(t *testing.T) {
	c := start(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Mined(ctx, common.HexToHash("0x01")); err == nil {
		t.Error("Mined returned without error for a transaction that is nowhere")
	}
}

func TestCloseTwice(t *testing.T) {
	c := start(t, Config{BlockTime: time.Millisecond})
	for range 2 {
		expect.NoError(t, c.Close())
	}
	if err := c.Seal(t.Context()); err == nil {
		t.Error("Seal after Close returned no error")
	}
}
