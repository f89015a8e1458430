package limits

import (
	"context"
	"net/http"
	"strings"
)

// Secure reports whether the client sent the request by HTTPS: to the service itself, or to a trusted
// proxy that reports so. With several proxies, the first one counts.
func (p Proxies) Secure(r *http.Request) bool {
	if r.TLS != nil || !p.Trust(r) {
		return r.TLS != nil
	}
	schemes := strings.Split(strings.Join(r.Header.Values(xForwardedProto), ","), ",")
	if p.Header == Forwarded {
		schemes = forwardedValues(strings.Join(r.Header.Values(Forwarded), ","), "proto")
	}
	return strings.EqualFold(strings.TrimSpace(schemes[0]), "https")
}

// secureKey is the key of a context of a request that the client sent by HTTPS.
type secureKey struct{}

// WithSecure returns a context of a request that the client sent by HTTPS.
func WithSecure(ctx context.Context) context.Context {
	return context.WithValue(ctx, secureKey{}, true)
}

// BaseURL returns the scheme and the host at which the client reached the service, such as
// https://pay.example.com. The host must have been checked.
func BaseURL(r *http.Request) string {
	if secure, _ := r.Context().Value(secureKey{}).(bool); secure || r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// forwardedValues returns a parameter, such as for, of each element of a Forwarded header
// (RFC 7239, section 4). An element that lacks it, has two or is malformed gives an
// empty text. An unterminated quoted string makes everything from its element on one
// malformed element.
func forwardedValues(header, parameter string) (values []string) {
	for rest, more := header, true; more; {
		var value string
		value, rest, more = forwardedElement(rest, parameter)
		values = append(values, value)
	}
	return values
}

// forwardedElement returns a parameter of the first element of a list, and the elements
// after it.
func forwardedElement(list, parameter string) (hop, rest string, more bool) {
	var seen, bad bool
	for {
		name, value, tail, ok := forwardedPair(list)
		if !ok {
			return "", "", false
		}
		if strings.EqualFold(name, parameter) {
			bad = bad || seen
			hop, seen = value, true
		}
		if bad {
			hop = ""
		}
		if tail == "" {
			return hop, "", false
		}
		list = tail[1:]
		if tail[0] == ',' {
			return hop, list, true
		}
	}
}

// forwardedPair returns the first name and value, and what follows them, which begins
// with ';' or ',' or is empty. ok is false if a quoted string does not end.
func forwardedPair(text string) (name, value, tail string, ok bool) {
	end := strings.IndexAny(text, "=;,")
	if end < 0 {
		return "", "", "", true
	}
	if text[end] != '=' {
		return "", "", text[end:], true
	}
	name, text = strings.TrimSpace(text[:end]), text[end+1:]
	if strings.HasPrefix(text, `"`) {
		if value, text, ok = quotedString(text[1:]); !ok {
			return "", "", "", false
		}
	}
	end = strings.IndexAny(text, ";,")
	if end < 0 {
		end = len(text)
	}
	return name, value + strings.TrimSpace(text[:end]), text[end:], true
}

// quotedString returns the value of a quoted string (RFC 9110, section 5.6.4) without its first quote,
// and the text after its last quote.
func quotedString(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}
