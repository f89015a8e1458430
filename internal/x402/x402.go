package x402

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Version is the version of the protocol.
const Version = 2

// Scheme is the scheme of payment: exactly the required amount is transferred.
const Scheme = "exact"

// TransferMethod is how the scheme transfers the amount: by an EIP-3009 authorization.
const TransferMethod = "eip3009"

// ExtraClientSecret is the member of extra with Requirements.ClientSecret. The protocol requires clients to return the
// requirements that they accept, so each client returns its secret.
const ExtraClientSecret = "clientSecret"

// Headers of the HTTP transport. Each carries one message as JSON in base64.
const (
	HeaderRequired  = "PAYMENT-REQUIRED"
	HeaderSignature = "PAYMENT-SIGNATURE"
	HeaderResponse  = "PAYMENT-RESPONSE"
)

// Limits of messages.
const (
	// MaxHeader bounds a header's value, in bytes.
	MaxHeader = 12 << 10
	// MinTimeout and MaxTimeout bound maxTimeoutSeconds of requirements: clients sign for that long.
	MinTimeout = invoice.MinAuthorizationWindow
	MaxTimeout = invoice.MaxAuthorizationWindow
	// MaxURL bounds the URL of a resource, in bytes.
	MaxURL = 2048
	// MaxText bounds other texts of a message, in bytes.
	MaxText = 1024
)

// networkPrefix is the namespace of EVM chains in CAIP-2.
const networkPrefix = "eip155:"

// Network returns the CAIP-2 identifier of an EVM chain.
func Network(chainID uint64) string { return networkPrefix + strconv.FormatUint(chainID, 10) }

// ParseNetwork returns the chain id of the CAIP-2 identifier of an EVM chain.
func ParseNetwork(text string) (chainID uint64, err error) {
	digits, ok := strings.CutPrefix(text, networkPrefix)
	id, parseErr := strconv.ParseUint(digits, 10, 64)
	if !ok || parseErr != nil || id == 0 || Network(id) != text {
		return 0, fmt.Errorf("must be eip155: and a chain id; it is %.60q", text)
	}
	return id, nil
}

// Domain is the name and the version of a token's EIP-712 domain.
type Domain struct{ Name, Version string }

// Requirements are a payment that a resource asks for.
type Requirements struct {
	ChainID uint64
	Token   invoice.Address
	PayTo   invoice.Address
	Amount  invoice.Amount
	Timeout time.Duration // the maximum duration of the payment; whole seconds
	Domain  Domain        // of the token
	// ClientSecret is a secret that the server gave only to the paying client; empty without one.
	ClientSecret string
}

// JSON returns the requirements in the protocol's form.
func (r Requirements) JSON() apitypes.X402PaymentRequirements {
	extra := map[string]any{"assetTransferMethod": TransferMethod, "name": r.Domain.Name, "version": r.Domain.Version}
	if r.ClientSecret != "" {
		extra[ExtraClientSecret] = r.ClientSecret
	}
	return apitypes.X402PaymentRequirements{
		Scheme: Scheme, Network: Network(r.ChainID), Amount: r.Amount.String(), Asset: chain.Checksum(r.Token),
		PayTo: chain.Checksum(r.PayTo), MaxTimeoutSeconds: int64(r.Timeout / time.Second), Extra: extra,
	}
}

// Payment is a payment that a client offers.
type Payment struct {
	Resource      string // URL; empty if the client does not name one
	Accepted      Requirements
	Authorization invoice.Authorization
}

// Request is the body of a facilitator's operations.
type Request struct {
	Payment      Payment
	Requirements Requirements // of the resource
	Key          string       // of the server's request; repetitions have the same; empty without one
}

// Check returns an *Error unless the payment's terms match the requirements.
func (r Request) Check() error {
	a, want := r.Payment.Authorization, r.Requirements
	accepted := r.Payment.Accepted
	switch {
	case accepted.ChainID != want.ChainID:
		return errorf(InvalidNetwork, "the payment is for %s, and %s is required", Network(accepted.ChainID), Network(want.ChainID))
	case accepted.Token != want.Token:
		return errorf(InvalidRequirements, "the payment is in %s, and %s is required", accepted.Token, want.Token)
	case a.To != want.PayTo:
		return errorf(RecipientMismatch, "the authorization pays %s, and %s is required", a.To, want.PayTo)
	case a.Value != want.Amount:
		return errorf(ValueMismatch, "the authorization is over %s, and %s is required", a.Value, want.Amount)
	case want.ClientSecret != "" && accepted.ClientSecret != want.ClientSecret:
		return errorf(InvalidRequirements, "the payment's %s is not the one that is required", ExtraClientSecret)
	}
	return nil
}

// PaymentRequired is the message of an answer with status 402 that asks for a payment.
type PaymentRequired struct {
	Version  int                                `json:"x402Version"`
	Error    string                             `json:"error,omitempty"`
	Resource apitypes.X402Resource              `json:"resource"`
	Accepts  []apitypes.X402PaymentRequirements `json:"accepts"`
}

// Error is the reason why a message or a payment is refused.
type Error struct {
	Reason Reason
	Detail string
}

// Error returns the reason and the detail.
func (e *Error) Error() string { return string(e.Reason) + ": " + e.Detail }

func errorf(reason Reason, format string, args ...any) error {
	return &Error{reason, fmt.Sprintf(format, args...)}
}
