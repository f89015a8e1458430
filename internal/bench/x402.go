package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/devchain"
)

// settleWindow is how long the authorizations of measureSettle are valid.
const settleWindow = 300 * time.Second

// measureSettle measures how long the facilitator takes to settle a payment by x402, besides
// the block: from the request until its transaction is in the node's pool, and from the
// sealing of its block until the answer. The payments come one at a time.
func (b *bench) measureSettle(ctx context.Context, kind string) (err error) {
	database, err := b.url(ctx, kind, "settle")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: database, Gasless: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.waitReady(ctx); err != nil {
		return err
	}
	_, key, err := w.server.api.CreateKey(ctx, apitypes.CreateKeyRequest{
		Name: "bench", MerchantID: "shop", Scopes: []string{"invoices:read", "invoices:write"},
	})
	if err != nil {
		return err
	}
	var sent, answered, all []time.Duration
	for range b.payments {
		body, err := w.purchase(ctx)
		if err != nil {
			return err
		}
		s, a, err := w.settle(ctx, key, body)
		if err != nil {
			return err
		}
		sent, answered, all = append(sent, s), append(answered, a), append(all, s+a)
	}
	b.report.row(kind, "x402 settle, besides the block", quantile(all, 0.5), "", "", fmt.Sprintf(
		"median of %d; p99 %v; medians to the node's pool %v, and from the sealed block to the answer %v",
		len(all), quantile(all, 0.99), quantile(sent, 0.5), quantile(answered, 0.5)))
	return nil
}

// purchase returns a request to settle a payment that is signed now.
func (w *world) purchase(ctx context.Context) ([]byte, error) {
	head, err := w.node.Client().HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, err
	}
	a := contracts.Authorization{
		From: devchain.Address(w.node.Keys.Payer), To: devchain.Address(w.node.Keys.Merchant), Value: big.NewInt(10_000), ValidAfter: new(big.Int),
		ValidBefore: new(big.Int).SetUint64(head.Time + uint64(settleWindow.Seconds())),
	}
	if _, err := rand.Read(a.Nonce[:]); err != nil {
		return nil, err
	}
	domain := contracts.TestUSDCDomain(w.node.ChainID(), w.node.Token)
	signature, err := a.Sign(domain, w.node.Keys.Payer)
	if err != nil {
		return nil, err
	}
	required := apitypes.X402PaymentRequirements{
		Scheme: "exact", Network: fmt.Sprintf("eip155:%d", devchain.ChainID), Amount: a.Value.String(), Asset: w.node.Token.Hex(), PayTo: a.To.Hex(),
		MaxTimeoutSeconds: int64(settleWindow.Seconds()), Extra: map[string]any{"name": domain.Name, "version": domain.Version},
	}
	return json.Marshal(apitypes.X402Request{X402Version: 2, PaymentRequirements: required, PaymentPayload: apitypes.X402PaymentPayload{
		X402Version: 2, Accepted: required, Payload: map[string]any{
			"signature": hexutil.Encode(signature.Bytes()),
			"authorization": map[string]string{
				"from": a.From.Hex(), "to": a.To.Hex(), "value": a.Value.String(), "validAfter": a.ValidAfter.String(),
				"validBefore": a.ValidBefore.String(), "nonce": a.Nonce.Hex(),
			},
		},
	}})
}

// settle has the facilitator settle a payment and seals its block. It returns how long the
// transaction took to reach the pool, and the answer after the block.
func (w *world) settle(ctx context.Context, key string, body []byte) (sent, answered time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.url+"/x402/settle", bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	sender := devchain.Address(w.node.Keys.Operator)
	nonce, err := w.node.Client().PendingNonceAt(ctx, sender)
	if err != nil {
		return 0, 0, err
	}
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- settled(request) }()
	for poll := time.NewTicker(storedPoll); ; {
		next, err := w.node.Client().PendingNonceAt(ctx, sender)
		if err != nil {
			return 0, 0, fmt.Errorf("wait for the transaction: %w", err)
		}
		if next > nonce {
			break
		}
		select {
		case <-poll.C:
		case err := <-done:
			return 0, 0, fmt.Errorf("the answer came before the transaction: %w", err)
		}
	}
	sent = time.Since(began)
	sealed, err := seal(ctx, w.node)
	if err != nil {
		return 0, 0, err
	}
	err = <-done
	return sent, time.Since(sealed), err
}

// settled sends a request to settle, and fails unless the answer is success.
func settled(request *http.Request) error {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	var answer apitypes.X402SettleResponse
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("the answer has status %d: %w", response.StatusCode, err)
	}
	if !answer.Success {
		return fmt.Errorf("the payment was not settled: %d, %+v", response.StatusCode, answer)
	}
	return nil
}
