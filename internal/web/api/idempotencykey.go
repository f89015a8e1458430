package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/ledger"
)

// HeaderIdempotencyKey is the header of draft-ietf-httpapi-idempotency-key-header.
const HeaderIdempotencyKey = "Idempotency-Key"

// headerReplayed marks the response to a request that an earlier one with the same key carried out.
const headerReplayed = "Idempotency-Replayed"

// markReplay sets headerReplayed if the request was carried out before.
func markReplay(w http.ResponseWriter, once ledger.Once) {
	if once.Replayed != nil && *once.Replayed {
		w.Header().Set(headerReplayed, "true")
	}
}

// idempotencyKey returns the request's key, or "" without one. A key is visible
// ASCII, bare or quoted as a string of RFC 9651; both forms are the same key.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values(HeaderIdempotencyKey)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", invalidField(HeaderIdempotencyKey, "must occur once")
	}
	key := values[0]
	if strings.HasPrefix(key, `"`) {
		var err error
		if key, err = unquote(key); err != nil {
			return "", invalidField(HeaderIdempotencyKey, "%v", err)
		}
	}
	if key == "" || len(key) > MaxIdempotencyKey || !isVisibleASCII(key) {
		return "", invalidField(HeaderIdempotencyKey, "must be 1 to %d visible ASCII characters", MaxIdempotencyKey)
	}
	return key, nil
}

// onceFor returns the Idempotency-Key of a request, in the scope of its principal.
func onceFor(r *http.Request) (ledger.Once, error) {
	key, err := idempotencyKey(r.Header)
	return ledger.Once{Key: key, Scope: idempotencyScope(access.FromContext(r.Context())), Replayed: new(bool)}, err
}

// unquote returns the text of a quoted string, in which a backslash escapes a quote or a
// backslash.
func unquote(s string) (string, error) {
	malformed := errors.New(`must be a bare key or one quoted string such as "abc"`)
	var text strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i != len(s)-1 {
				return "", malformed
			}
			return text.String(), nil
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", malformed
			}
		}
		text.WriteByte(s[i])
	}
	return "", malformed
}

// isVisibleASCII reports whether s is ASCII without spaces and control characters.
func isVisibleASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}
