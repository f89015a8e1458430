package webhook

import (
	"crypto/hmac"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Verify checks a signature header against a body, as it came over the wire, and the receiver's clock. It returns nil,
// or an [*Error] that is one of [ErrMissingHeader], [ErrMalformedHeader], [ErrStaleTimestamp] and [ErrBadSignature].
//
// The header is a list of name=value pairs with commas between them and optional blanks around each. Names are
// case-sensitive; t and v1 must occur exactly once, in any order, with a value; other names are ignored. t is a finite
// decimal number of seconds: digits, with an optional sign, fraction and exponent, within the range of a float64.
// Both t and the whole second of now are compared as numbers, while t is signed as it is written. v1 is compared
// as text, so upper-case hex does not match. An empty secret matches nothing.
func Verify(secret, header string, body []byte, now time.Time) error {
	sig, err := parseFresh(header, now)
	if err != nil {
		return err
	}
	return sig.match([]string{secret}, body)
}

// signature is a parsed header.
type signature struct {
	timestamp string  // t as written, which is what was signed
	seconds   float64 // t as a number, finite
	digest    string  // v1 as written, not empty
}

// parseFresh parses a header and refuses a timestamp that is too far from now: all that can be told before the body.
func parseFresh(header string, now time.Time) (signature, error) {
	sig, err := parse(header)
	if err != nil {
		return signature{}, err
	}
	skew := float64(now.Unix()) - sig.seconds
	if math.Abs(skew) > Tolerance.Seconds() {
		return signature{}, ErrStaleTimestamp.because(fmt.Sprintf(
			"the clock minus t is %.10g s, and at most %.0f s either way are accepted", skew, Tolerance.Seconds()))
	}
	return sig, nil
}

// parse reads a signature header's value.
func parse(header string) (signature, error) {
	if strings.Trim(header, blanks) == "" {
		return signature{}, ErrMissingHeader
	}
	if len(header) > MaxHeader {
		return signature{}, ErrMalformedHeader.because(fmt.Sprintf("it is longer than %d bytes", MaxHeader))
	}
	var sig signature
	for pair := range strings.SplitSeq(header, ",") {
		name, value, found := strings.Cut(strings.Trim(pair, blanks), "=")
		if !found || name == "" {
			return signature{}, ErrMalformedHeader.because("want name=value pairs with commas between them")
		}
		var field *string
		switch name {
		case "t":
			field = &sig.timestamp
		case "v1":
			field = &sig.digest
		default: // room for other schemes than v1
			continue
		}
		// To choose among several would let two receivers read one header differently.
		if *field != "" || value == "" {
			return signature{}, ErrMalformedHeader.because(name + " must stand once, with a value")
		}
		*field = value
	}
	if sig.timestamp == "" || sig.digest == "" {
		return signature{}, ErrMalformedHeader.because("want both t=<timestamp> and v1=<digest>")
	}
	seconds, ok := finite(sig.timestamp)
	if !ok {
		return signature{}, ErrMalformedHeader.because("t is not a finite decimal number")
	}
	sig.seconds = seconds
	return sig, nil
}

// blanks is the optional white space of RFC 9110, section 5.6.3.
const blanks = " \t"

// finite reads a decimal number. [strconv.ParseFloat] alone would let infinities, NaN, hex and underscores through.
func finite(text string) (float64, bool) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil
}

// match reports [ErrBadSignature] unless the signature was made over body with one of the secrets.
func (s signature) match(secrets []string, body []byte) error {
	for _, secret := range secrets {
		// Anyone can sign with the empty key; it stands for a secret that was not configured.
		// hmac.Equal wants equal lengths, then takes the same time wherever the two differ.
		if secret != "" && hmac.Equal([]byte(digest(secret, s.timestamp, body)), []byte(s.digest)) {
			return nil
		}
	}
	return ErrBadSignature
}
