package invoice

import (
	"regexp"
	"strings"
	"time"
)

// PrefixPaymentLink begins the id of a payment link.
const PrefixPaymentLink = "lnk_"

// Limits of a payment link. Its texts are bounded by MaxLabel and MaxDescription.
const (
	MaxSlug = 64 // characters
	// MaxReferencePrefix leaves room for the serial that PaymentLink.Draft appends.
	MaxReferencePrefix = 180 // characters
	// MinLinkLifetime bounds how long invoices of a link can be paid; MaxLifetime is the
	// other bound.
	MinLinkLifetime = time.Minute
	// DefaultLinkLifetime is how long they can be paid by default.
	DefaultLinkLifetime = time.Hour
)

// MetadataPaymentLink is the metadata key under which an invoice has the id of the payment link that made it.
const MetadataPaymentLink = "paymentLink"

// PaymentLink is a page on which payers make invoices of a merchant.
type PaymentLink struct {
	ID         string
	MerchantID string
	Slug       string // unique among the merchant's links that are not archived
	PaymentLinkTerms
	Archived             bool
	CreatedAt, ChangedAt time.Time
}

// PaymentLinkTerms are the terms of a payment link's invoices.
type PaymentLinkTerms struct {
	Title       string
	Description string // empty without one
	Amount      Amount // zero: the payer enters it
	// Minimum and Maximum bound an amount that the payer enters; zero for no bound.
	Minimum, Maximum     Amount
	Currency, ChainKey   string
	Merchant             Address    // zero: the merchant's default address
	LineItem             string     // label of the one line item; empty without one
	ReferencePrefix      string     // empty: the invoices have no reference
	Collection           Collection // empty: the merchant's
	ReturnURL, CancelURL string
	Lifetime             time.Duration // of the invoices
}

var slug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// ValidSlug reports whether a text has the form of a slug.
func ValidSlug(text string) bool { return len(text) <= MaxSlug && slug.MatchString(text) }

// Check checks the rules of a link that depend only on the link; Draft.Check checks the rules of its invoices. It
// returns a *FieldError for the first invalid field.
func (l PaymentLink) Check() error {
	switch {
	case !ValidMerchantID(l.MerchantID):
		return fieldErrorf("merchantId", "must be 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", MaxMerchantID)
	case strings.Trim(l.MerchantID, ".") == "":
		return fieldErrorf("merchantId", "cannot be part of a URL, so the merchant can have no links")
	case !ValidSlug(l.Slug):
		return fieldErrorf("slug", "must be 1 to %d lower-case letters, digits and single hyphens between them", MaxSlug)
	}
	return l.PaymentLinkTerms.check()
}

func (t PaymentLinkTerms) check() error {
	if err := CheckLabel("title", t.Title); err != nil {
		return err
	}
	for _, f := range []struct {
		field, text string
		limit       int
	}{{"description", t.Description, MaxDescription}, {"lineItem", t.LineItem, MaxLabel}, {"referencePrefix", t.ReferencePrefix, MaxReferencePrefix}} {
		if f.text == "" {
			continue
		}
		if err := checkText(f.field, f.text, f.limit); err != nil {
			return err
		}
	}
	switch {
	case !t.Amount.IsZero() && !t.Minimum.IsZero():
		return fieldErrorf("minAmount", "must not be given with a fixed amount")
	case !t.Amount.IsZero() && !t.Maximum.IsZero():
		return fieldErrorf("maxAmount", "must not be given with a fixed amount")
	case !t.Maximum.IsZero() && t.Maximum.Less(t.Minimum):
		return fieldErrorf("maxAmount", "must not be below minAmount; it is %s and minAmount is %s", t.Maximum, t.Minimum)
	case t.Lifetime < MinLinkLifetime || t.Lifetime > MaxLifetime:
		return fieldErrorf("expiresIn", "must be %d to %d seconds", MinLinkLifetime/time.Second, MaxLifetime/time.Second)
	}
	return nil
}

// IsFree reports whether the payer enters the amount.
func (t PaymentLinkTerms) IsFree() bool { return t.Amount.IsZero() }

// Takes reports whether an amount that the payer enters is within the link's bounds.
func (t PaymentLinkTerms) Takes(a Amount) bool {
	return !a.IsZero() && !a.Less(t.Minimum) && (t.Maximum.IsZero() || !t.Maximum.Less(a))
}

// Sample returns an amount that the link accepts.
func (t PaymentLinkTerms) Sample() Amount {
	for _, a := range []Amount{t.Amount, t.Minimum, t.Maximum} {
		if !a.IsZero() {
			return a
		}
	}
	return NewAmount(1)
}

// Draft returns the request for an invoice of the link, without its expiry. serial makes its reference differ from the
// references of the link's other invoices.
func (l PaymentLink) Draft(amount Amount, serial string) Draft {
	d := Draft{
		MerchantID: l.MerchantID, Merchant: l.Merchant, AddressOmitted: l.Merchant.IsZero(), Amount: amount, Currency: l.Currency,
		ChainKey: l.ChainKey, Collection: l.Collection, Details: Details{
			Description: l.Description, ReturnURL: l.ReturnURL, CancelURL: l.CancelURL, Metadata: map[string]string{MetadataPaymentLink: l.ID},
		},
	}
	if d.Details.Description == "" {
		d.Details.Description = l.Title
	}
	if l.LineItem != "" {
		d.LineItems = []LineItem{{Label: l.LineItem, Amount: amount}}
	}
	if l.ReferencePrefix != "" {
		d.Details.Reference = l.ReferencePrefix + serial
	}
	return d
}

// PaymentLinkChange is a change of a payment link. Nil members stay as they are; zero values remove optional members.
type PaymentLinkChange struct {
	Title, Description        *string
	Amount, Minimum, Maximum  *Amount
	Currency, ChainKey        *string
	Merchant                  *Address
	LineItem, ReferencePrefix *string
	Collection                *Collection
	ReturnURL, CancelURL      *string
	Lifetime                  *time.Duration
	Archived                  bool
}

// Change returns the terms with a change.
func (t PaymentLinkTerms) Change(c PaymentLinkChange) PaymentLinkTerms {
	for dst, src := range map[*string]*string{
		&t.Title: c.Title, &t.Description: c.Description, &t.Currency: c.Currency, &t.ChainKey: c.ChainKey, &t.LineItem: c.LineItem,
		&t.ReferencePrefix: c.ReferencePrefix, &t.ReturnURL: c.ReturnURL, &t.CancelURL: c.CancelURL,
	} {
		SetIfGiven(dst, src)
	}
	SetIfGiven(&t.Amount, c.Amount)
	SetIfGiven(&t.Minimum, c.Minimum)
	SetIfGiven(&t.Maximum, c.Maximum)
	SetIfGiven(&t.Merchant, c.Merchant)
	SetIfGiven(&t.Collection, c.Collection)
	SetIfGiven(&t.Lifetime, c.Lifetime)
	return t
}
