package x402

import "github.com/quittance/quittance/internal/invoice"

// Reason is why a payment is invalid or was not settled.
type Reason string

// The reasons of the protocol's specification.
const (
	InsufficientFunds   Reason = "insufficient_funds"
	NotYetValid         Reason = "invalid_exact_evm_payload_authorization_valid_after"
	NoLongerValid       Reason = "invalid_exact_evm_payload_authorization_valid_before"
	ValueMismatch       Reason = "invalid_exact_evm_payload_authorization_value_mismatch"
	InvalidSignature    Reason = "invalid_exact_evm_payload_signature"
	RecipientMismatch   Reason = "invalid_exact_evm_payload_recipient_mismatch"
	InvalidNetwork      Reason = "invalid_network"
	InvalidPayload      Reason = "invalid_payload"
	InvalidRequirements Reason = "invalid_payment_requirements"
	UnsupportedScheme   Reason = "unsupported_scheme"
	InvalidVersion      Reason = "invalid_x402_version"
	InvalidState        Reason = "invalid_transaction_state"
	UnexpectedError     Reason = "unexpected_settle_error"
)

// Reasons that the specification lacks, named as in the protocol's reference implementation.
const (
	// Pending: the outcome is not known yet. Repeating the same payment returns it.
	Pending        Reason = "settlement_pending"
	NonceUsed      Reason = "invalid_exact_evm_nonce_already_used"
	NotSupported   Reason = "invalid_exact_evm_eip3009_not_supported"
	DomainMismatch Reason = "invalid_exact_evm_token_name_mismatch"
)

// reasons are the reasons of refusals. The reason of a refusal that is missing here is UnexpectedError.
var reasons = map[invoice.Refusal]Reason{
	invoice.RefusedGaslessOff:    InvalidNetwork,
	invoice.RefusedNotPayable:    InvalidState,
	invoice.RefusedRecipient:     RecipientMismatch,
	invoice.RefusedValue:         ValueMismatch,
	invoice.RefusedSelf:          InvalidPayload,
	invoice.RefusedNotYetValid:   NotYetValid,
	invoice.RefusedExpired:       NoLongerValid,
	invoice.RefusedWindow:        NoLongerValid,
	invoice.RefusedPastInvoice:   NoLongerValid,
	invoice.RefusedMismatch:      NonceUsed,
	invoice.RefusedNonceOfOther:  NonceUsed,
	invoice.RefusedPending:       Pending,
	invoice.RefusedSignature:     InvalidSignature,
	invoice.RefusedDomain:        NotSupported,
	invoice.RefusedNonceUsed:     NonceUsed,
	invoice.RefusedBalance:       InsufficientFunds,
	invoice.RefusedBlacklisted:   InvalidState,
	invoice.RefusedPaused:        InvalidState,
	invoice.RefusedReverts:       InvalidState,
	invoice.RefusedWindowClosed:  NoLongerValid,
	invoice.RefusedInvoiceClosed: InvalidState,
}

// ReasonOf returns the reason of a refusal.
func ReasonOf(r invoice.Refusal) Reason {
	if reason, ok := reasons[r]; ok {
		return reason
	}
	return UnexpectedError
}
