package dev

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/x402"
)

// runAgent pays as a program does, by the x402 protocol: with a signature, and without coins for gas.
func runAgent(ctx context.Context, a *actor) error {
	if err := a.create(ctx, order{amount: "50000", label: "A weather forecast"}); err != nil {
		return err
	}
	offer, err := a.requestUnpaid(ctx)
	if err != nil {
		return err
	}
	payment, err := a.sign(offer)
	if err != nil {
		return err
	}
	settled, err := a.requestPaid(ctx, payment)
	if err != nil {
		return err
	}
	a.printStep("agent signs", "200 with the invoice, transaction "+settled.Transaction)
	if err := a.paid(ctx, common.HexToHash(settled.Transaction)); err != nil {
		return err
	}
	if _, err := a.requestPaid(ctx, payment); err != nil {
		return err
	}
	n := 0
	for _, err := range a.api.Payments(ctx, client.PaymentFilter{InvoiceID: a.invoice.ID, IncludePending: true}) {
		if err != nil {
			return err
		}
		n++
	}
	if n != 1 {
		return fmt.Errorf("invoice %s has %d payments after the agent repeated its request", a.invoice.ID, n)
	}
	a.printStep("agent repeats", "200 again, without a second payment")
	return nil
}

// requestUnpaid requests the invoice without a payment, and returns the payment requirements.
func (a *actor) requestUnpaid(ctx context.Context) (apitypes.X402PaymentRequirements, error) {
	status, header, err := a.requestInvoice(ctx, "")
	if err != nil {
		return apitypes.X402PaymentRequirements{}, err
	}
	var required x402.PaymentRequired
	if err := decodeHeader(header.Get(x402.HeaderRequired), &required); err != nil {
		return apitypes.X402PaymentRequirements{}, fmt.Errorf("%s: %s: %w", a.invoicePath(), x402.HeaderRequired, err)
	}
	if status != http.StatusPaymentRequired || len(required.Accepts) != 1 {
		return apitypes.X402PaymentRequirements{}, fmt.Errorf("%s answered %d with %d offers", a.invoicePath(), status, len(required.Accepts))
	}
	offer := required.Accepts[0]
	a.printStep("agent requests", fmt.Sprintf("GET %s: 402, %s on %s", a.invoicePath(), usdc(offer.Amount), offer.Network))
	return offer, nil
}

// requestPaid requests the invoice with a payment, and repeats that while the outcome is open.
func (a *actor) requestPaid(ctx context.Context, payment string) (settled apitypes.X402SettleResponse, err error) {
	for {
		status, header, err := a.requestInvoice(ctx, payment)
		if err != nil {
			return settled, err
		}
		if err := decodeHeader(header.Get(x402.HeaderResponse), &settled); err != nil {
			return settled, fmt.Errorf("%s: %s: %w", a.invoicePath(), x402.HeaderResponse, err)
		}
		if settled.ErrorReason == string(x402.Pending) {
			continue
		}
		if status != http.StatusOK || !settled.Success {
			return settled, fmt.Errorf("%s answered %d to the payment: %s %s", a.invoicePath(), status, settled.ErrorReason, settled.ErrorMessage)
		}
		return settled, nil
	}
}

// invoicePath is the path at which programs request the invoice.
func (a *actor) invoicePath() string { return "/x402/invoices/" + a.invoice.ID }

// requestInvoice requests the invoice like a program, with a payment unless it is empty, and returns the status and the
// header of the answer.
func (a *actor) requestInvoice(ctx context.Context, payment string) (status int, header http.Header, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.world.Info.BaseURL+a.invoicePath(), nil)
	if err != nil {
		return 0, nil, err
	}
	if payment != "" {
		request.Header.Set(x402.HeaderSignature, payment)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header, errors.Join(err, answer.Body.Close())
}

// sign returns the header with the agent's signature for a payment.
func (a *actor) sign(offer apitypes.X402PaymentRequirements) (string, error) {
	key := a.world.Node.Keys.Payer
	value, ok := new(big.Int).SetString(offer.Amount, 10)
	if !ok {
		return "", fmt.Errorf("the agent is asked for the amount %q", offer.Amount)
	}
	auth := contracts.Authorization{
		From: devchain.Address(key), To: common.HexToAddress(offer.PayTo), Value: value,
		ValidAfter: new(big.Int), ValidBefore: big.NewInt(a.now().Unix() + offer.MaxTimeoutSeconds),
	}
	if _, err := io.ReadFull(a.random, auth.Nonce[:]); err != nil {
		return "", err
	}
	domain := contracts.Domain{
		Name: fmt.Sprint(offer.Extra["name"]), Version: fmt.Sprint(offer.Extra["version"]),
		ChainID: a.world.Node.ChainID(), Token: common.HexToAddress(offer.Asset),
	}
	signature, err := auth.Sign(domain, key)
	if err != nil {
		return "", err
	}
	return x402.EncodeHeader(apitypes.X402PaymentPayload{X402Version: x402.Version, Accepted: offer, Payload: map[string]any{
		"signature": hexutil.Encode(signature.Bytes()),
		"authorization": map[string]string{
			"from": auth.From.Hex(), "to": auth.To.Hex(), "value": auth.Value.String(), "validAfter": auth.ValidAfter.String(),
			"validBefore": auth.ValidBefore.String(), "nonce": auth.Nonce.Hex(),
		},
	}})
}

// decodeHeader reads the message of a header.
func decodeHeader(value string, message any) error {
	text, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}
