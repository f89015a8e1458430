// Package screening asks an operator's hook about the payers of new payments. A payment waits for the verdict before it
// counts: the ledger holds it, and a Worker here asks the hook and records the verdict.
//
// The hook is asked at least once about each payment, and possibly more often, also by several replicas. The mode
// decides about a payment if there is no verdict within the patience.
package screening

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

const (
	// Timeout bounds one call of the hook, to the end of its answer.
	Timeout = 5 * time.Second
	// MaxAnswer bounds the hook's answer, in bytes.
	MaxAnswer = 64 << 10
	// EventType is the X-Service-Event of a question.
	EventType = "payment.screening"
)

// Hook is an operator's endpoint that gives verdicts. All fields are required.
type Hook struct {
	URL    string
	Secret string           // key of the signatures
	Client *http.Client     // follows no redirect
	Now    func() time.Time // dates the signatures
}

// question is what the hook is asked. invoiceId and merchantId are absent without an invoice.
type question struct {
	PaymentID  string `json:"paymentId"`
	ChainKey   string `json:"chainKey"`
	TxHash     string `json:"txHash"`
	From       string `json:"from"`
	To         string `json:"to"`
	Amount     string `json:"amount"`
	Currency   string `json:"currency"`
	MerchantID string `json:"merchantId,omitempty"`
	InvoiceID  string `json:"invoiceId,omitempty"`
}

// ask returns the hook's verdict about a payment and its reason. The error has no URL, which may hold a secret.
func (h Hook) ask(ctx context.Context, p ledger.PaymentRow) (verdict invoice.Screening, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	body, err := json.Marshal(question{
		PaymentID: p.ID, ChainKey: p.ChainKey, TxHash: p.TxHash.String(), From: chain.Checksum(p.From), To: chain.Checksum(p.To),
		Amount: p.Amount.String(), Currency: p.Currency, MerchantID: p.MerchantID, InvoiceID: p.InvoiceID,
	})
	if err != nil {
		return "", "", fmt.Errorf("encode the question: %w", err)
	}
	target, err := url.Parse(h.URL)
	if err != nil {
		return "", "", withoutURL(err)
	}
	// The guard checks an address more strictly without TLS.
	req, err := http.NewRequestWithContext(webhooks.WithScheme(ctx, target.Scheme), http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return "", "", withoutURL(err)
	}
	now := h.Now()
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "Quittance-Screening",
		webhook.HeaderEvent: EventType, webhook.HeaderDelivery: p.ID,
		webhook.HeaderTimestamp: strconv.FormatInt(now.Unix(), 10), webhook.HeaderSignature: webhook.Sign(h.Secret, now, body),
	} {
		req.Header.Set(name, value)
	}
	resp, err := h.Client.Do(req)
	if err != nil {
		return "", "", withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read
	if resp.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("answered %d, expected 200", resp.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return "", "", withoutURL(err)
	case len(answer) > MaxAnswer:
		return "", "", fmt.Errorf("answered more than %d bytes", MaxAnswer)
	}
	return parseAnswer(answer)
}

// parseAnswer reads a verdict and its reason.
func parseAnswer(answer []byte) (verdict invoice.Screening, reason string, err error) {
	o, err := apiconv.Object(answer)
	if err != nil {
		return "", "", fmt.Errorf("answered no JSON object: %w", err)
	}
	switch o["verdict"] {
	case "accept":
		verdict = invoice.ScreeningAccepted
	case "quarantine":
		verdict = invoice.ScreeningQuarantined
	default:
		return "", "", errors.New(`answered without a "verdict" of "accept" or "quarantine"`)
	}
	if given, ok := o["reason"]; ok {
		if reason, ok = given.(string); !ok || !invoice.ValidScreeningReason(reason) {
			return "", "", fmt.Errorf(`answered a "reason" that is not a printable text of at most %d characters`, invoice.MaxScreeningReason)
		}
	}
	return verdict, reason, nil
}

// withoutURL returns the cause of an error of net/http.
func withoutURL(err error) error {
	if with := (*url.Error)(nil); errors.As(err, &with) {
		return with.Err
	}
	return err
}
