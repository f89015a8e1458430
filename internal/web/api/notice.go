package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/webhook"
)

// testNotice is the type of the notice that a provider sends to test a subscription. It is not about a transfer.
const testNotice = "webhooks.test"

// probeNotices answers HEAD /api/webhooks/{provider}, with which a provider checks that the address takes notices.
func (a *API) probeNotices(w http.ResponseWriter, r *http.Request) error {
	if _, ok := a.providers[r.PathValue("provider")]; !ok {
		return problemf(apitypes.CodeNotFound, "No provider has this name.")
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// receiveNotice answers POST /api/webhooks/{provider}. It verifies the signature before it parses the body.
func (a *API) receiveNotice(w http.ResponseWriter, r *http.Request) error {
	provider, ok := a.providers[r.PathValue("provider")]
	if !ok {
		return problemf(apitypes.CodeNotFound, "No provider has this name.")
	}
	body, err := readBody(w, r)
	if err != nil {
		return invalidPayload(err)
	}
	// Repeated header lines are equivalent to one list (RFC 9110, section 5.3).
	signature := strings.Join(r.Header.Values(webhook.HeaderProviderSignature), ",")
	err = webhook.Verify(provider.Secret, signature, body, a.conf.SignatureNow())
	if errors.Is(err, webhook.ErrBadSignature) && provider.OtherSecret != "" {
		err = webhook.Verify(provider.OtherSecret, signature, body, a.conf.SignatureNow())
	}
	if err != nil {
		return problemf(apitypes.CodeInvalidSignature, "%s does not prove who sent the notice: %v.", webhook.HeaderProviderSignature, err)
	}
	if err := wantJSON(r); err != nil {
		return err
	}
	notice, err := a.parseNotice(provider, body)
	if err != nil {
		return invalidPayload(err)
	}
	if notice.Type != testNotice {
		if err := a.conf.Ledger.ReceiveNotice(r.Context(), notice); err != nil {
			return fmt.Errorf("receive notice: %w", err)
		}
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.NoticeResponse{Ok: true}, nil)
}

// invalidPayload returns the problem of a notice that is incomplete or does not parse.
func invalidPayload(err error) error {
	if known := (*problemError)(nil); errors.As(err, &known) {
		return err
	}
	return problemf(apitypes.CodeInvalidPayload, "The notice cannot be read: %v.", err)
}

// parseNotice parses a provider's notice and translates its names of chain and currency
// into ours. Unknown names become empty.
func (a *API) parseNotice(p Provider, body []byte) (invoice.Notice, error) {
	o, err := parseObject(body)
	if err != nil {
		return invoice.Notice{}, err
	}
	n := invoice.Notice{Provider: p.Name}
	if o["type"] == testNotice {
		n.Type = testNotice
		return n, nil
	}
	var destinationType string // required, but not used
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
		text(destination, "data.destination.", "address", &n.Destination, noticeText),
		text(destination, "data.destination.", "chain", &n.ProviderChain, noticeText),
	)
	if err != nil {
		return invoice.Notice{}, err
	}
	n.ChainKey = a.knownChain(p.Chains[n.ProviderChain])
	decimals, known := a.decimals(n.ChainKey, p.Currencies[n.ProviderCurrency])
	if known {
		n.Currency = p.Currencies[n.ProviderCurrency]
	}
	if n.Amount, err = majorUnits(n.AmountText, decimals, known); err != nil {
		return invoice.Notice{}, invalidField("data.amount.amount", "%v", err)
	}
	return n, nil
}

// noticeText reads a text that can be stored and logged: not empty, at most MaxNoticeText
// long, and without control characters.
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

// knownChain returns the key if the chain is configured.
func (a *API) knownChain(key string) string {
	if _, ok := a.chains[key]; !ok {
		return ""
	}
	return key
}

// decimals returns a currency's decimals on a chain, or on any chain if that one is
// unknown. known is false if the currency is not configured there.
func (a *API) decimals(chainKey, currency string) (int, bool) {
	if chainKey != "" {
		token, ok := a.chains[chainKey].TokenNamed(currency)
		return token.Decimals, ok
	}
	for _, c := range a.chains {
		if token, ok := c.TokenNamed(currency); ok {
			return token.Decimals, true
		}
	}
	return 0, false
}

// majorUnits converts a decimal number of major units to minor units, exactly. The amount
// of an unknown currency is only checked to be a decimal number.
func majorUnits(text string, decimals int, known bool) (invoice.Amount, error) {
	if known {
		return invoice.ParseDecimal(text, decimals)
	}
	if _, err := invoice.ParseDecimal(text, len(text)); errors.Is(err, invoice.ErrDecimalSyntax) {
		return invoice.Amount{}, err
	}
	return invoice.Amount{}, nil
}
