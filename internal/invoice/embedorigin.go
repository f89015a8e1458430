package invoice

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of a merchant's list of origins that may embed the checkout.
const (
	MaxEmbedOrigins = 20
	MaxOrigin       = 300 // bytes
)

// CheckEmbedOrigins returns a *FieldError if a list of origins is invalid. An origin is https:// and a host in lower
// case, with a port if it is not 443, or http:// and a host of the payer's own computer, as browsers write them. So it
// can be compared with the origin that a browser sends, and be part of a header.
func CheckEmbedOrigins(origins []string) error {
	if len(origins) > MaxEmbedOrigins {
		return fieldErrorf("embedOrigins", "must be at most %d; there are %d", MaxEmbedOrigins, len(origins))
	}
	for i, origin := range origins {
		field := fmt.Sprintf("embedOrigins[%d]", i)
		if len(origin) > MaxOrigin {
			return fieldErrorf(field, "must be at most %d bytes; it has %d", MaxOrigin, len(origin))
		}
		u, err := parseReturnURL(field, origin)
		if err != nil {
			return err
		}
		standard := map[string]string{"https": "443", "http": "80"}[u.Scheme]
		switch {
		case origin != u.Scheme+"://"+u.Host:
			return fieldErrorf(field, "must be an origin such as https://shop.example, without a path; it is %.80q", origin)
		case strings.HasPrefix(u.Host, "["):
			return fieldErrorf(field, "must not have an IPv6 address, which Content-Security-Policy cannot name; it is %.80q", origin)
		case u.Port() == standard:
			return fieldErrorf(field, "must leave the port %s out, as browsers do", standard)
		}
	}
	return nil
}

// sortedOrigins returns a list of origins in order, each once.
func sortedOrigins(origins []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(origins)))
}
