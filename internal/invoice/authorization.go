package invoice

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Limits of an authorization.
const (
	// MaxAuthorizationSignature is the maximum length of a signature in bytes, including its ERC-6492 wrapper.
	MaxAuthorizationSignature = 8 << 10
	// MinAuthorizationWindow is how much of its window an authorization must have left, so
	// that a transaction can be sent and mined in it.
	MinAuthorizationWindow = 20 * time.Second
	// MaxAuthorizationWindow is how far validBefore may lie ahead. Until validBefore the outcome of a sent
	// authorization can be unknown.
	MaxAuthorizationWindow = time.Hour
)

// Authorization is an EIP-3009 transfer that its payer has signed and anyone can submit to the token. It is valid in
// blocks with a time strictly between ValidAfter and ValidBefore.
type Authorization struct {
	From, To    Address
	Value       Amount
	ValidAfter  time.Time
	ValidBefore time.Time
	Nonce       Hash   // the token accepts each nonce of From once
	Signature   []byte // of From's key, or as ERC-1271 or ERC-6492 define it
}

// ParseAuthorizationSignature parses a signature: 0x and hex digits.
func ParseAuthorizationSignature(s string) ([]byte, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	signature, err := hex.DecodeString(digits)
	if !ok || err != nil || len(signature) == 0 || len(signature) > MaxAuthorizationSignature {
		return nil, fmt.Errorf("must be 0x and the hex digits of 1 to %d bytes", MaxAuthorizationSignature)
	}
	return signature, nil
}

// Normal returns the authorization with a key's signature in the form that tokens take: some
// wallets write the recovery id as 0 or 1, and tokens want 27 or 28.
func (a Authorization) Normal() Authorization {
	const keyLen, offset = 65, 27
	if n := len(a.Signature); n == keyLen && a.Signature[n-1] < 2 {
		a.Signature = bytes.Clone(a.Signature)
		a.Signature[n-1] += offset
	}
	return a
}

// Equal reports whether two authorizations are the same, signatures included.
func (a Authorization) Equal(b Authorization) bool {
	a, b = a.Normal(), b.Normal()
	return a.From == b.From && a.To == b.To && a.Value == b.Value && a.ValidAfter.Equal(b.ValidAfter) &&
		a.ValidBefore.Equal(b.ValidBefore) && a.Nonce == b.Nonce && bytes.Equal(a.Signature, b.Signature)
}

// Refusal is why an authorization does not pay an invoice.
type Refusal string

// The refusals of an authorization. The first group needs no node, the second is based on the chain's state, and the
// last can occur after the authorization was accepted.
const (
	RefusedGaslessOff    Refusal = "gasless_off"
	RefusedNotPayable    Refusal = "invoice_not_payable"
	RefusedRecipient     Refusal = "wrong_recipient"
	RefusedValue         Refusal = "wrong_value"
	RefusedSelf          Refusal = "payer_is_recipient"
	RefusedNotYetValid   Refusal = "not_yet_valid"
	RefusedExpired       Refusal = "expired"
	RefusedWindow        Refusal = "window_too_long"
	RefusedPastInvoice   Refusal = "window_past_invoice"
	RefusedMismatch      Refusal = "nonce_bound"
	RefusedNonceOfOther  Refusal = "nonce_of_another_invoice"
	RefusedPending       Refusal = "authorization_pending"
	RefusedBudget        Refusal = "budget_exhausted"
	RefusedSignature     Refusal = "invalid_signature"
	RefusedDomain        Refusal = "unsupported_token"
	RefusedNonceUsed     Refusal = "nonce_used"
	RefusedBalance       Refusal = "insufficient_balance"
	RefusedBlacklisted   Refusal = "blacklisted"
	RefusedPaused        Refusal = "token_paused"
	RefusedGas           Refusal = "too_expensive"
	RefusedReverts       Refusal = "transfer_reverts"
	RefusedNotDeployed   Refusal = "account_not_deployed"
	RefusedWindowClosed  Refusal = "window_closed"
	RefusedInvoiceClosed Refusal = "invoice_closed"
)

// refusals holds a sentence for each refusal that needs no figures.
var refusals = map[Refusal]string{
	RefusedGaslessOff:    "This service sends no authorizations on this chain; pay by a transfer.",
	RefusedSelf:          "The payer is the address that is to be paid.",
	RefusedMismatch:      "This nonce was used with another authorization or for another invoice; sign with a new nonce.",
	RefusedNonceOfOther:  "The nonce is the on-chain id of another invoice; sign with this invoice's, or with a random one.",
	RefusedPending:       "Another authorization for this invoice is being carried out; do not sign again before it has ended.",
	RefusedSignature:     "The signature is not the payer's for this authorization, token and chain.",
	RefusedDomain:        "The token does not take authorizations in the form of EIP-3009.",
	RefusedNonceUsed:     "The token has seen this nonce of the payer: an authorization by it was carried out or canceled. Look whether it has paid before you sign another.",
	RefusedBlacklisted:   "The token has blocked the payer or the recipient.",
	RefusedPaused:        "The token is paused by its issuer.",
	RefusedGas:           "The payer's account uses too much gas to be paid for.",
	RefusedReverts:       "The token refuses the transfer.",
	RefusedNotDeployed:   "The payer's account is not deployed, and the service has no contract on this chain that would deploy it.",
	RefusedWindowClosed:  "The authorization's window closed before it was carried out; nothing was charged, and it never can be.",
	RefusedInvoiceClosed: "The invoice was paid otherwise or closed before the authorization was sent; it was not sent and will not be.",
}

// Detail returns a sentence about the refusal.
func (r Refusal) Detail() string { return refusals[r] }

// RefusalError means that an authorization does not pay an invoice. No data was stored or sent.
type RefusalError struct {
	Reason Refusal
	Detail string // a sentence
}

// Error returns the reason and the detail.
func (e *RefusalError) Error() string { return string(e.Reason) + ": " + e.Detail }

// Refuse returns a RefusalError with the reason's sentence, or the given one.
func Refuse(reason Refusal, detail ...any) error {
	if len(detail) == 0 {
		return &RefusalError{reason, reason.Detail()}
	}
	return &RefusalError{reason, fmt.Sprintf(detail[0].(string), detail[1:]...)}
}

// Due returns what an authorization for the invoice must pay: its amount, or the remainder. It is zero if the invoice
// awaits no payment.
func (inv Invoice) Due() Amount {
	switch {
	case inv.Status != Open || inv.Covered() || inv.EndedInLostPast():
		return Amount{}
	case !inv.Remaining.IsZero():
		return inv.Remaining
	}
	return inv.Amount
}

// CheckAuthorization checks the authorization's terms, and returns a *RefusalError if it cannot pay the invoice now.
// now is the later of the service's clock and the time of the chain's newest block, and earliest is the earlier one.
//
// An authorization may not be valid after the invoice's last second, so that it cannot pay an expired invoice.
func (inv Invoice) CheckAuthorization(a Authorization, earliest, now time.Time) error {
	last := inv.ExpiresAt.Add(time.Second)
	switch due := inv.Due(); {
	case due.IsZero():
		return Refuse(RefusedNotPayable, "The invoice is %s and awaits no payment.", inv.describe())
	case a.To != inv.PayTo():
		return Refuse(RefusedRecipient, "The invoice is paid to %s, and the authorization pays another address.", inv.PayTo())
	case a.From == a.To:
		return Refuse(RefusedSelf)
	case a.Value != due:
		return Refuse(RefusedValue, "The authorization is over %s minor units, and the invoice asks for %s.", a.Value, due)
	case !earliest.After(a.ValidAfter):
		return Refuse(RefusedNotYetValid, "The authorization is valid after %d, and it is %d.", a.ValidAfter.Unix(), earliest.Unix())
	case a.ValidBefore.Before(now.Add(MinAuthorizationWindow)):
		return Refuse(RefusedExpired, "The authorization is valid before %d, it is %d, and sending takes up to %d seconds.",
			a.ValidBefore.Unix(), now.Unix(), int(MinAuthorizationWindow/time.Second))
	case a.ValidBefore.After(last):
		return Refuse(RefusedPastInvoice, "The authorization is valid before %d, and the invoice must be paid before %d.", a.ValidBefore.Unix(), last.Unix())
	case a.ValidBefore.After(now.Add(MaxAuthorizationWindow)):
		return Refuse(RefusedWindow, "The authorization is valid before %d; want at most %d seconds from now.",
			a.ValidBefore.Unix(), int(MaxAuthorizationWindow/time.Second))
	}
	return nil
}

// IsNamedByNonce reports whether the nonce of an authorization names the invoice on the chain.
func (inv Invoice) IsNamedByNonce(nonce Hash) bool { return inv.hasCommitment(nonce) }

// describe returns the invoice's state for a sentence.
func (inv Invoice) describe() string {
	if inv.Status == Open {
		return "covered by payments"
	}
	return string(inv.Status)
}
