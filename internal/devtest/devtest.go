// Package devtest runs a development world for tests of programs that use the service.
package devtest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
)

// patience bounds a wait for the world.
const patience = 2 * time.Minute

// World is a running development world.
type World struct {
	*dev.World
	Operator *client.Client
}

// Start runs a world until the test ends.
func Start(t testing.TB) *World {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan *dev.World, 1), make(chan error, 1)
	go func() {
		ended <- dev.Run(ctx, dev.Config{
			Dir: t.TempDir(), Listen: "127.0.0.1:0", RPCListen: "127.0.0.1:0", BlockTime: 200 * time.Millisecond,
			Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		}, func(w *dev.World) { ready <- w })
	}()
	select {
	case w := <-ready:
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("devtest: the world ended with %v", err)
			}
		})
		operator, err := client.New(w.Info.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		return &World{World: w, Operator: operator}
	case err := <-ended:
		stop()
		t.Fatalf("devtest: the world did not start: %v", err)
		return nil
	}
}

// Merchant is a merchant with a default settlement address, a key and a webhook endpoint.
type Merchant struct {
	Key    string
	Secret string // of the endpoint
}

// Merchant creates a merchant whose events are posted to a URL.
func (w *World) Merchant(t testing.TB, id, webhookURL string) Merchant {
	t.Helper()
	account, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	address := crypto.PubkeyToAddress(account.PublicKey).Hex()
	_, err = w.Operator.CreateMerchant(t.Context(), apitypes.CreateMerchantRequest{
		ID: id, Name: id, DefaultAddresses: map[string]apitypes.Address{w.Info.Chain.ChainKey: address},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := w.Operator.CreateKey(t.Context(), apitypes.CreateKeyRequest{Name: "test", MerchantID: id, Scopes: []string{"standard"}})
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := w.Operator.PutWebhook(t.Context(), id, webhookURL)
	if err != nil {
		t.Fatal(err)
	}
	return Merchant{Key: key, Secret: secret}
}

// Pay transfers an invoice's transfer amount from the payer of the world.
func (w *World) Pay(t testing.TB, invoiceID string) {
	t.Helper()
	inv, err := w.Operator.Invoice(t.Context(), invoiceID)
	if err != nil {
		t.Fatal(err)
	}
	amount, ok := new(big.Int).SetString(inv.TransferAmount, 10)
	if !ok {
		t.Fatalf("devtest: %s has the transfer amount %q", invoiceID, inv.TransferAmount)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := w.Node.SendToken(ctx, w.Node.Keys.Payer, common.HexToAddress(inv.MerchantAddress), amount, nil); err != nil {
		t.Fatal(err)
	}
}
