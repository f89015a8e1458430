package webhook

import (
	"crypto/hmac"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Verify verifies a signature header for a body, as received, by the receiver's clock. It returns nil,
// or an [*Error] that is one of [ErrMissingHeader], [ErrMalformedHeader], [ErrStaleTimestamp] and [ErrBadSignature].
//
// The header is a list of name=value pairs, separated by commas and optional white space. Names are case-sensitive; t
// must occur exactly once and v1 at least once, in any order, with a value; other names are ignored. t is a finite
// decimal number of seconds: digits, with an optional sign, fraction and exponent, within the range of a float64. Both
// t and the whole second of now are compared as numbers, while the signed text has t as written. If there are several
// v1, one must match: a sender that rotates its secret signs with both. v1 is compared as text, so upper-case hex does
// not match. An empty secret never matches.
func Verify(secret, header string, body []byte, now time.Time) error {
	sig, err := parseFresh(header, now)
	if err != nil {
		return err
	}
	return sig.match([]string{secret}, body)
}

// signature is a parsed header.
type signature struct {
	timestamp string   // t as written, which is the signed text
	seconds   float64  // t as a number, finite
	digests   []string // each v1 as written, not empty
}

// parseFresh parses a header and checks its timestamp, before the body is read.
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

// parse parses a signature header.
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
		switch {
		case name != "t" && name != "v1": // other schemes than v1 may be added
		case value == "":
			return signature{}, ErrMalformedHeader.because(name + " has no value")
		case name == "v1":
			sig.digests = append(sig.digests, value)
		case sig.timestamp != "": // two receivers could interpret one header differently
			return signature{}, ErrMalformedHeader.because("t must occur once")
		default:
			sig.timestamp = value
		}
	}
	if sig.timestamp == "" || len(sig.digests) == 0 {
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

// finite parses a decimal number. [strconv.ParseFloat] also accepts infinities, NaN, hex and underscores.
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
		if secret == "" { // a secret that was not configured: anyone could sign with it
			continue
		}
		want := []byte(digest(secret, s.timestamp, body))
		for _, given := range s.digests {
			// hmac.Equal requires equal lengths and takes constant time.
			if hmac.Equal(want, []byte(given)) {
				return nil
			}
		}
	}
	return ErrBadSignature
}
