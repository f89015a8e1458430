package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Handler returns a handler that calls next with requests that are signed with secret, and rejects others. See
// [Verifier.Handler]. It panics if secret is empty, because the handler would reject every request.
func Handler(secret string, next http.Handler) http.Handler {
	if secret == "" {
		panic("webhook: the secret is empty; pass the one that was shown when the endpoint was set")
	}
	return Verifier{Secrets: []string{secret}}.Handler(next)
}

// Verifier verifies signatures with configurable secrets and clock. The zero value rejects every request.
type Verifier struct {
	// Secrets are the valid secrets; any of them may match. There are several during a rotation. Empty secrets never
	// match.
	Secrets []string
	// Lookup, if set, returns a request's secrets instead of Secrets, such as the secrets of the provider in the path.
	// It is called before the signature is verified, so it must not trust the request. An error is answered with 500.
	Lookup func(*http.Request) ([]string, error)
	// Header is the name of the signature header; empty means [HeaderSignature].
	Header string
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
	// Logger logs failed Lookups as errors and rejected requests at level debug; nil means [slog.Default].
	Logger *slog.Logger
}

// Verify is [Verify] with the verifier's Secrets and clock.
func (v Verifier) Verify(header string, body []byte) error {
	sig, err := parseFresh(header, v.now())
	if err != nil {
		return err
	}
	return sig.match(v.Secrets, body)
}

// Handler returns a handler that calls next only with requests that have a valid signature; next can read the body,
// byte for byte. Others are answered with a problem (RFC 9457) with a code: 401 with the code of the [*Error], 413
// body_too_large over [MaxBody], 400 invalid_payload if the body is incomplete, 500 internal if Lookup fails. The
// header is checked before the body is read.
func (v Verifier) Handler(next http.Handler) http.Handler {
	if v.Header == "" {
		v.Header = HeaderSignature
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := v.signedBody(w, r)
		if err != nil {
			v.refuse(w, r, err)
			return
		}
		verified := *r
		verified.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, &verified)
	})
}

// signedBody returns the request's body if its signature is valid.
func (v Verifier) signedBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// Repeated header lines are equivalent to one list (RFC 9110, section 5.3): a second signature is malformed.
	sig, err := parseFresh(strings.Join(r.Header.Values(v.Header), ","), v.now())
	if err != nil {
		return nil, err
	}
	secrets := v.Secrets
	if v.Lookup != nil {
		if secrets, err = v.Lookup(r); err != nil {
			return nil, fmt.Errorf("%w: %w", errLookup, err)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return body, sig.match(secrets, body)
}

// errLookup marks an error of Verifier.Lookup. Its text is not shown to the client.
var errLookup = errors.New("look up the secrets")

func (v Verifier) now() time.Time {
	if v.Now == nil {
		return time.Now()
	}
	return v.Now()
}

// refuse answers with the problem for an error of signedBody.
func (v Verifier) refuse(w http.ResponseWriter, r *http.Request, err error) {
	log := v.Logger
	if log == nil {
		log = slog.Default()
	}
	if errors.Is(err, errLookup) {
		log.ErrorContext(r.Context(), "webhook not checked", "path", r.URL.Path, "error", err)
		problem(w, http.StatusInternalServerError, "internal", "the signature could not be checked")
		return
	}
	log.DebugContext(r.Context(), "webhook refused", "path", r.URL.Path, "error", err)
	var refused *Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &refused):
		// RFC 9110, section 15.5.2, requires a challenge with every 401.
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("HMAC-SHA256 header=%q", v.Header))
		problem(w, http.StatusUnauthorized, refused.Code(), refused.detail)
	case errors.As(err, &tooLarge):
		problem(w, http.StatusRequestEntityTooLarge, "body_too_large",
			fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit))
	default:
		problem(w, http.StatusBadRequest, "invalid_payload", "the body could not be read to its end")
	}
}

// problem writes an RFC 9457 problem. Its type is about:blank, so its title is the status text.
func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// It fails only if the client has disconnected.
	_ = json.NewEncoder(w).Encode(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{"about:blank", http.StatusText(status), status, detail, code})
}
