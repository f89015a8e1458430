package invoice

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of an invoice's details. MaxLabel bounds a reference and a customer's id.
const (
	MaxDescription   = 500  // characters
	MaxEmail         = 254  // characters
	MaxReturnURL     = 2048 // bytes
	MaxMetadata      = 50   // pairs
	MaxMetadataKey   = 40   // characters
	MaxMetadataValue = 500  // characters
)

// Details are the fields of an invoice that a merchant sets in addition to its terms. No rule about payments depends on
// them.
type Details struct {
	Reference string // what the merchant calls the invoice; empty without one
	// UniqueReference is set if no other draft or open invoice of the merchant with UniqueReference may have the same
	// reference.
	UniqueReference bool
	Description     string // for payers; empty without one
	Customer        Customer
	// ReturnURL and CancelURL are the checkout page's links after the invoice is paid, and before. They are empty
	// without a link.
	ReturnURL, CancelURL string
	Metadata             map[string]string
}

// Customer is who an invoice is for. Either member may be empty.
type Customer struct {
	ID    string // what the merchant calls the customer
	Email string
}

// Key returns the key that identifies a merchant's customer: the id, or else the e-mail address. It is empty without
// both.
func (c Customer) Key() string { return cmp.Or(c.ID, c.Email) }

// IsZero reports whether all details are empty.
func (d Details) IsZero() bool {
	return d.Reference == "" && !d.UniqueReference && d.Description == "" && d.Customer == Customer{} &&
		d.ReturnURL == "" && d.CancelURL == "" && len(d.Metadata) == 0
}

// Equal reports whether two invoices have the same details.
func (d Details) Equal(other Details) bool {
	pairs, others := d.Metadata, other.Metadata
	d.Metadata, other.Metadata = nil, nil
	return maps.Equal(pairs, others) && reflect.DeepEqual(d, other)
}

// Check checks the rules of details that do not depend on the merchant. It returns a *FieldError for the first invalid
// field.
func (d Details) Check() error {
	if d.UniqueReference && d.Reference == "" {
		return fieldErrorf("uniqueReference", "needs a reference")
	}
	for _, f := range []struct{ field, text string }{{"reference", d.Reference}, {"customer.id", d.Customer.ID}} {
		if f.text == "" {
			continue
		}
		if err := CheckLabel(f.field, f.text); err != nil {
			return err
		}
	}
	if d.Description != "" {
		if err := checkText("description", d.Description, MaxDescription); err != nil {
			return err
		}
	}
	if err := d.Customer.checkEmail(); err != nil {
		return err
	}
	for _, f := range []struct{ field, text string }{{"returnUrl", d.ReturnURL}, {"cancelUrl", d.CancelURL}} {
		if f.text == "" {
			continue
		}
		if _, err := parseReturnURL(f.field, f.text); err != nil {
			return err
		}
	}
	return d.checkMetadata()
}

// Erased replaces the text of a label or reason, which cannot be empty, when the personal data of a customer is erased.
const Erased = "erased"

// Erase returns the invoice without its customer's personal data, that is, without the merchant's texts about it. The
// reference stays, because the merchant's books refer to the invoice by it.
func (inv Invoice) Erase() Invoice {
	inv.Details = Details{Reference: inv.Details.Reference, UniqueReference: inv.Details.UniqueReference}
	inv.LineItems = slices.Clone(inv.LineItems)
	for i := range inv.LineItems {
		inv.LineItems[i].Label = Erased
	}
	return inv
}

// CheckCustomerKey checks that a text can be the Key of a Customer, or the beginning of a Key. It returns a *FieldError
// otherwise.
func CheckCustomerKey(text string) error { return checkText("customer", text, MaxEmail) }

// checkEmail checks only properties that every address has: an invoice can have an address to which the service cannot send mails.
func (c Customer) checkEmail() error {
	if c.Email == "" {
		return nil
	}
	if err := checkText("customer.email", c.Email, MaxEmail); err != nil {
		return err
	}
	name, host, ok := strings.Cut(c.Email, "@")
	if !ok || name == "" || host == "" || strings.ContainsFunc(c.Email, unicode.IsSpace) {
		return fieldErrorf("customer.email", "must be an e-mail address")
	}
	return nil
}

func (d Details) checkMetadata() error {
	if len(d.Metadata) > MaxMetadata {
		return fieldErrorf("metadata", "must be at most %d pairs; there are %d", MaxMetadata, len(d.Metadata))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
		field := fmt.Sprintf("metadata[%.40s]", key)
		if n := utf8.RuneCountInString(key); n < 1 || n > MaxMetadataKey {
			return fieldErrorf("metadata", "must have keys of 1 to %d characters; %.60q has %d", MaxMetadataKey, key, n)
		}
		if strings.ContainsFunc(key, func(c rune) bool { return unicode.IsControl(c) || c == '[' || c == ']' }) {
			return fieldErrorf("metadata", "must have keys without control characters and square brackets; there is %q", key)
		}
		value := d.Metadata[key]
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fieldErrorf("metadata", "must be UTF-8; the pair of %.60q is not", key)
		}
		if n := utf8.RuneCountInString(value); n > MaxMetadataValue {
			return fieldErrorf(field, "must be at most %d characters; it has %d", MaxMetadataValue, n)
		}
		if strings.ContainsFunc(value, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t' }) {
			return fieldErrorf(field, "must not hold control characters, except for line breaks and tabs")
		}
	}
	return nil
}

// DetailsChange is a change of details. Nil members stay as they are; an empty text
// removes one.
type DetailsChange struct {
	Reference, Description    *string
	UniqueReference           *bool
	CustomerID, CustomerEmail *string
	ReturnURL, CancelURL      *string
	Metadata                  map[string]*string // sets the values of its keys; nil removes one
	NoMetadata                bool               // removes all
}

// SetIfGiven sets dst to the value that src points to, or leaves dst unchanged if src is nil.
func SetIfGiven[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// Change returns the details with a change.
func (d Details) Change(c DetailsChange) Details {
	for dst, src := range map[*string]*string{
		&d.Reference: c.Reference, &d.Description: c.Description, &d.Customer.ID: c.CustomerID, &d.Customer.Email: c.CustomerEmail,
		&d.ReturnURL: c.ReturnURL, &d.CancelURL: c.CancelURL,
	} {
		SetIfGiven(dst, src)
	}
	SetIfGiven(&d.UniqueReference, c.UniqueReference)
	pairs := make(map[string]string)
	if !c.NoMetadata {
		maps.Copy(pairs, d.Metadata)
	}
	for key, value := range c.Metadata {
		if delete(pairs, key); value != nil {
			pairs[key] = *value
		}
	}
	if d.Metadata = nil; len(pairs) > 0 {
		d.Metadata = pairs
	}
	return d
}
