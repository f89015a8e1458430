package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/webhook"
)

// receiveNotice answers POST /api/webhooks/{provider}. Nothing about the body
// is judged before its signature has been.
func (a *API) receiveNotice(w http.ResponseWriter, r *http.Request) error {
	provider, ok := a.providers[r.PathValue("provider")]
	if !ok {
		return problemf(apitypes.CodeNotFound, "No provider has this name.")
	}
	body, err := readBody(w, r)
	if err != nil {
		return badPayload(err)
	}
	// Repeated header lines mean the same as one list (RFC 9110, section 5.3).
	signature := strings.Join(r.Header.Values(webhook.HeaderProviderSignature), ",")
	if err := webhook.Verify(provider.Secret, signature, body, a.now()); err != nil {
		return problemf(apitypes.CodeInvalidSignature, "%s does not prove who sent the notice: %v.", webhook.HeaderProviderSignature, err)
	}
	if err := wantJSON(r); err != nil {
		return err
	}
	notice, err := a.parseNotice(provider, body)
	if err != nil {
		return badPayload(err)
	}
	if err := a.ledger.ReceiveNotice(r.Context(), notice); err != nil {
		return fmt.Errorf("receive notice: %w", err)
	}
	a.writeJSON(w, r, http.StatusOK, apitypes.NoticeResponse{Ok: true})
	return nil
}

// badPayload returns the problem of a notice that breaks off or cannot be
// read.
func badPayload(err error) error {
	if known := (*problemError)(nil); errors.As(err, &known) {
		return err
	}
	return problemf(apitypes.CodeInvalidPayload, "The notice cannot be read: %v.", err)
}

// parseNotice reads a provider's notice and translates its names of chain and
// currency into ours, which stay empty when they are unknown.
func (a *API) parseNotice(p Provider, body []byte) (settle.Notice, error) {
	o, err := parseObject(body)
	if err != nil {
		return settle.Notice{}, err
	}
	n := settle.Notice{Provider: p.Name}
	var destinationType string // required, but nothing depends on it
	data, noData := o.object("", "data")
	amount, noAmount := data.object("data.", "amount")
	destination, noDestination := data.object("data.", "destination")
	err = cmp.Or(
		text(o, "", "type", &n.Type, noticeText),
		noData,
		text(data, "data.", "id", &n.TransferID, noticeText),
		noAmount,
		text(amount, "data.amount.", "amount", &n.AmountText, noticeText),
		text(amount, "data.amount.", "currency", &n.ProviderCurrency, noticeText),
		noDestination,
		text(destination, "data.destination.", "type", &destinationType, noticeText),
		text(destination, "data.destination.", "address", &n.Address, noticeText),
		text(destination, "data.destination.", "chain", &n.ProviderChain, noticeText),
	)
	if err != nil {
		return settle.Notice{}, err
	}
	n.ChainKey = a.knownChain(p.Chains[n.ProviderChain])
	decimals, known := a.decimals(n.ChainKey, p.Currencies[n.ProviderCurrency])
	if known {
		n.Currency = p.Currencies[n.ProviderCurrency]
	}
	if n.Amount, err = majorUnits(n.AmountText, decimals, known); err != nil {
		return settle.Notice{}, invalidField("data.amount.amount", "%v", err)
	}
	return n, nil
}

// noticeText takes a text that can be kept: not empty, not overlong, and
// without the control characters that PostgreSQL and log lines dislike.
func noticeText(s string) (string, error) {
	switch {
	case s == "":
		return "", errors.New("must not be empty")
	case len(s) > MaxNoticeText:
		return "", fmt.Errorf("must be at most %d bytes", MaxNoticeText)
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "", errors.New("must not hold control characters")
	}
	return s, nil
}

// knownChain returns the key if the service is configured with that chain.
func (a *API) knownChain(key string) string {
	if _, ok := a.chains[key]; !ok {
		return ""
	}
	return key
}

// decimals returns how many decimals a currency has on a chain, or on any
// chain when that one is not known, and whether the currency is known there.
func (a *API) decimals(chainKey, currency string) (int, bool) {
	if chainKey != "" {
		token, ok := a.chains[chainKey].Token(currency)
		return token.Decimals, ok
	}
	for _, c := range a.chains {
		if token, ok := c.Token(currency); ok {
			return token.Decimals, true
		}
	}
	return 0, false
}

// majorUnits converts a decimal number of major units exactly. That of an
// unknown currency cannot be converted; it need only be a decimal number.
func majorUnits(text string, decimals int, known bool) (invoice.Amount, error) {
	if known {
		return invoice.ParseDecimal(text, decimals)
	}
	if _, err := invoice.ParseDecimal(text, len(text)); errors.Is(err, invoice.ErrDecimalSyntax) {
		return invoice.Amount{}, err
	}
	return invoice.Amount{}, nil
}
