package browsertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"log/slog"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/test/expect"
)

// World is a development world in the test's process.
type World struct {
	Info   dev.Info
	Node   *devchain.Chain
	Client *client.Client // the operator's
	t      testing.TB
}

// WorldOptions describe a world.
type WorldOptions struct {
	BlockTime time.Duration // 0: 200 ms
	NoGasless bool          // payers pay for gas
}

// Start runs a world until the test ends.
func Start(t testing.TB, o WorldOptions) *World {
	t.Helper()
	const quick = 200 * time.Millisecond
	if o.BlockTime == 0 {
		o.BlockTime = quick
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ready := make(chan *dev.World, 1)
	ended := make(chan error, 1)
	var running sync.WaitGroup
	dir := t.TempDir() // removed after the world has ended, since cleanups run in reverse order
	running.Go(func() {
		ended <- dev.Run(ctx, dev.Config{
			Dir: dir, Listen: "127.0.0.1:0", RPCListen: "127.0.0.1:0", BlockTime: o.BlockTime, NoGasless: o.NoGasless,
			Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		}, func(w *dev.World) { ready <- w })
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	select {
	case started := <-ready:
		api, err := client.New(started.Info.BaseURL)
		expect.OK(t, err)
		return &World{Info: started.Info, Node: started.Node, Client: api, t: t}
	case err := <-ended:
		t.Fatalf("browsertest: the world has ended: %v", err)
		return nil
	}
}

// CheckoutURL returns the URL of an invoice's page.
func (w *World) CheckoutURL(id string) string { return w.Info.BaseURL + "/checkout/" + id }

// Invoice creates an invoice of the world's merchant over an amount in minor units, which
// expires in 15 minutes. change may be nil.
func (w *World) Invoice(amount string, change func(*apitypes.CreateInvoiceRequest)) apitypes.CreateInvoiceResponse {
	w.t.Helper()
	const window = 15 * time.Minute
	request := apitypes.CreateInvoiceRequest{
		MerchantID: w.Info.Merchant.ID, MerchantAddress: w.Info.Merchant.Address, Amount: amount, Currency: "USDC",
		ChainKey: w.Info.Chain.ChainKey, ExpiresAt: time.Now().Add(window).Unix(),
		LineItems: []apitypes.LineItem{{Label: "Order", Amount: amount}},
	}
	if change != nil {
		change(&request)
	}
	made, err := w.Client.CreateInvoice(w.t.Context(), request)
	expect.OK(w.t, err)
	return made
}

// Read returns the current state of an invoice.
func (w *World) Read(id string) apitypes.Invoice {
	w.t.Helper()
	inv, err := w.Client.Invoice(w.t.Context(), id)
	expect.OK(w.t, err)
	return inv
}

// NewAccount returns a new key with minor units of the token and, with gas, some ether.
func (w *World) NewAccount(tokens int64, gas bool) *ecdsa.PrivateKey {
	w.t.Helper()
	key := expect.Must(crypto.GenerateKey())
	w.Fund(crypto.PubkeyToAddress(key.PublicKey), tokens, gas)
	return key
}

// Fund sends minor units of the token and, with gas, some ether to an account, and waits until they are there.
func (w *World) Fund(to common.Address, tokens int64, gas bool) {
	w.t.Helper()
	mined := func(hash common.Hash, err error) {
		if err == nil {
			_, err = w.Node.Mined(w.t.Context(), hash)
		}
		expect.OK(w.t, err)
	}
	if gas {
		mined(w.Node.SendCoins(w.t.Context(), w.Node.Keys.Payer, to, big.NewInt(params.Ether)))
	}
	if tokens > 0 {
		mined(w.Node.SendToken(w.t.Context(), w.Node.Keys.Payer, to, big.NewInt(tokens), nil))
	}
}

// Balance returns the tokens of an account.
func (w *World) Balance(of string) *big.Int {
	w.t.Helper()
	n, err := w.Node.Balance(w.t.Context(), common.HexToAddress(of))
	expect.OK(w.t, err)
	return n
}
