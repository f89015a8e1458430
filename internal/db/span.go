package db

import (
	"math"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// Span is a span of time in whole seconds: From is its first second, and To is the one after its last.
// A zero time is no bound.
type Span struct{ From, To time.Time }

// IsZero reports whether the span has no bounds.
func (t Span) IsZero() bool { return t.From.IsZero() && t.To.IsZero() }

// First returns the first second of the span, or 0 without a bound.
func (t Span) First() int64 {
	if t.From.IsZero() {
		return 0
	}
	return t.From.Unix()
}

// End returns the second after the last one, or the largest integer without a bound.
func (t Span) End() int64 {
	if t.To.IsZero() {
		return math.MaxInt64
	}
	return t.To.Unix()
}

// idSlack is how far the time in an object's identifier may differ from the object's time of creation,
// which was read from the clock earlier.
const idSlack = time.Minute

// Ids returns bounds of the identifiers of objects created in the span: from the first, and below the
// second.
func (t Span) Ids(prefix string) (first, end string) {
	first, end = prefix, prefix+LastID
	if from := t.From.Add(-idSlack); !t.From.IsZero() && from.Unix() > 0 {
		first = invoice.FirstID(prefix, from)
	}
	if !t.To.IsZero() {
		end = invoice.FirstID(prefix, t.To.Add(idSlack))
	}
	return first, end
}

// LastID sorts after all identifiers of at most 26 characters, without their prefix.
var LastID = strings.Repeat("z", 27)
