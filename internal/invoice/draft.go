package invoice

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// FieldError reports which field of a request is wrong, and why. Field is a path such as lineItems[2].amount.
type FieldError struct {
	Field  string
	Detail string
}

// Error names the field and what is wrong with it.
func (e *FieldError) Error() string { return e.Field + " " + e.Detail }

func fieldErrorf(field, format string, args ...any) error {
	return &FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Draft is a merchant's request for an invoice. The token follows from the chain
// and the currency.
type Draft struct {
	// Unissued asks for a draft, which is opened later.
	Unissued bool
	// Unregistered asks for an invoice without a commitment on the chain.
	Unregistered bool
	MerchantID   string
	Merchant     Address
	// AddressOmitted is set if the request contains no address: Merchant is then the merchant's default address, or
	// zero if there is no default.
	AddressOmitted bool
	Amount         Amount
	Currency       string
	ChainKey       string
	LineItems      []LineItem
	ExpiresAt      time.Time
	Collection     Collection // empty: the merchant's default
	Details        Details
}

// Check checks the rules of an invoice that depend only on the draft and the time. It returns a *FieldError for the
// first invalid field.
func (d Draft) Check(now time.Time) error {
	switch {
	case !ValidMerchantID(d.MerchantID):
		return fieldErrorf("merchantId", "must be 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", MaxMerchantID)
	case d.Merchant.IsZero() && d.AddressOmitted:
		return fieldErrorf("merchantAddress", "is required: the merchant has no default address on this chain")
	case d.Merchant.IsZero():
		return fieldErrorf("merchantAddress", "must not be the zero address")
	case d.Amount.IsZero():
		return fieldErrorf("amount", "must be more than 0")
	case !d.ExpiresAt.After(now):
		return fieldErrorf("expiresAt", "must lie in the future; it is %d and the time is %d", d.ExpiresAt.Unix(), now.Unix())
	case d.ExpiresAt.After(now.Add(MaxLifetime)):
		return fieldErrorf("expiresAt", "must lie within 366 days, that is at or before %d", now.Add(MaxLifetime).Unix())
	}
	if err := d.checkLineItems(); err != nil {
		return err
	}
	if d.Collection != "" {
		if err := CheckCollection(d.Collection); err != nil {
			return err
		}
	}
	return d.Details.Check()
}

func (d Draft) checkLineItems() error {
	if len(d.LineItems) == 0 {
		return nil
	}
	if len(d.LineItems) > MaxLineItems {
		return fieldErrorf("lineItems", "must be at most %d items; there are %d", MaxLineItems, len(d.LineItems))
	}
	var sum Amount
	for i, item := range d.LineItems {
		if err := CheckLabel(fmt.Sprintf("lineItems[%d].label", i), item.Label); err != nil {
			return err
		}
		if item.Amount.IsZero() {
			return fieldErrorf(fmt.Sprintf("lineItems[%d].amount", i), "must be more than 0")
		}
		var ok bool
		if sum, ok = sum.Add(item.Amount); !ok {
			return fieldErrorf("lineItems", "add up to more than fits an unsigned 256-bit integer")
		}
	}
	if sum != d.Amount {
		return fieldErrorf("lineItems", "must add up to amount; they add up to %s and amount is %s", sum, d.Amount)
	}
	return nil
}

// CheckLabel checks the rules of a label, a text that is shown to people: 1 to MaxLabel characters, at least one of
// them visible, and no character that can make it look like another text. It returns a *FieldError for the field
// otherwise.
func CheckLabel(field, text string) error {
	return checkText(field, text, MaxLabel)
}

// checkText checks the rules of a label of at most limit characters.
func checkText(field, text string, limit int) error {
	if !utf8.ValidString(text) {
		return fieldErrorf(field, "must be UTF-8")
	}
	if n := utf8.RuneCountInString(text); n < 1 || n > limit {
		return fieldErrorf(field, "must be 1 to %d characters; it has %d", limit, n)
	}
	if at := strings.IndexFunc(text, disguises); at >= 0 {
		c, _ := utf8.DecodeRuneInString(text[at:])
		return fieldErrorf(field, "must not hold control characters, nor overrides or isolates of the writing direction; it has %U", c)
	}
	if strings.IndexFunc(text, isVisible) < 0 {
		return fieldErrorf(field, "must hold a character that can be seen; it has spaces and invisible ones alone")
	}
	return nil
}

// isVisible reports whether the character c shows a mark on the screen: letters, marks, numbers, punctuation and
// symbols, except those that Unicode allows fonts to leave blank (Other_Default_Ignorable_Code_Point, variation
// selectors and the blank Braille pattern).
func isVisible(c rune) bool {
	return unicode.IsGraphic(c) && !unicode.IsSpace(c) && !unicode.Is(unicode.Zs, c) &&
		!unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) && c != '\u2800'
}

// disguises reports whether c can make a label look like another text: control characters, and characters that embed,
// override or isolate the writing direction. The plain direction marks (U+061C, U+200E, U+200F) cannot.
func disguises(c rune) bool {
	return unicode.IsControl(c) || '\u202a' <= c && c <= '\u202e' || '\u2066' <= c && c <= '\u2069'
}

// ValidMerchantID reports whether id is a valid merchant id.
func ValidMerchantID(id string) bool {
	if len(id) < 1 || len(id) > MaxMerchantID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}
