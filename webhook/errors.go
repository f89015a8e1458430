package webhook

// Errors of signature verification. A returned error matches one of them by [errors.Is], and [errors.As] with an
// [*Error] returns its code. They are checked in this order: a missing header is not malformed, a malformed one is not
// stale, and the digest of a stale one is not compared.
var (
	// ErrMissingHeader (missing_header): there is no signature header, or it is blank.
	ErrMissingHeader = &Error{"missing_header", "the signature header is missing"}
	// ErrMalformedHeader (malformed_header): the header cannot be parsed, t is not a finite number, or v1 is absent.
	ErrMalformedHeader = &Error{"malformed_header", "the signature header is malformed"}
	// ErrStaleTimestamp (stale_timestamp): t differs by more than [Tolerance] from the receiver's clock.
	ErrStaleTimestamp = &Error{"stale_timestamp", "the signature's timestamp is too far from the receiver's clock"}
	// ErrBadSignature (bad_signature): no v1 is the digest of the timestamp and body under any of the secrets.
	ErrBadSignature = &Error{"bad_signature", "the signature does not match: check the secret, and that the body is raw"}
)

// Error is the reason why a signature was rejected. It contains no secret and no digest, so it may be logged and sent
// to the client.
type Error struct {
	code   string
	detail string
}

// Code returns the error's code: missing_header, malformed_header, stale_timestamp or bad_signature.
func (e *Error) Code() string { return e.code }

// Error returns the reason as text.
func (e *Error) Error() string { return "webhook: " + e.detail }

// Is reports whether target has the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.code == e.code
}

// because returns the error with a detail.
func (e *Error) because(detail string) *Error {
	return &Error{e.code, e.detail + ": " + detail}
}
