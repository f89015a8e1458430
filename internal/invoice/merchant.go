package invoice

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a merchant's profile.
const (
	MaxSupportContact = 200 // bytes
	MaxStatement      = 500 // characters
	MaxStatementLines = 10
)

// Merchant is a merchant's profile, and the rules of its invoices.
type Merchant struct {
	ID             string
	Configured     bool   // set in the service's configuration, so that the API cannot change it
	Name           string // shown to payers; empty shows ID
	Color          string // #rrggbb, or empty
	SupportContact string // e-mail address, https URL or phone number for payers, or empty
	Statement      string // text for payers, of several lines, or empty
	Timezone       string // name of the time zone in which its days begin; empty is UTC
	Tolerance      Tolerance
	Collection     Collection // for invoices created without one; empty is Direct
	// DefaultAddresses are the settlement addresses, by chain key, of invoices created without one.
	DefaultAddresses map[string]Address
	PendingDefaults  *PendingDefaults // nil if no change is pending
	// Allowed are the only addresses that invoices may settle to. If it is empty, every
	// address is allowed.
	Allowed []AllowedAddress
	Pending *PendingAddresses // nil if no change is pending
	Logo    *Logo             // nil without one
	// ReturnHosts are the only hosts of return URLs. If it is empty, every host is
	// allowed with https.
	ReturnHosts []string
	// EmbedOrigins are the origins of pages that may show the checkout in a frame.
	EmbedOrigins []string
	// ReminderHours are when invoices that were sent by e-mail are reminded of, in hours from the end of the time to
	// pay; negative is before it.
	ReminderHours []int
	// LoopbackReturns allows return URLs that lead to the payer's own computer. It is
	// for development.
	LoopbackReturns bool

	CreatedAt, ChangedAt time.Time // zero if configured
}

// Logo describes a merchant's logo.
type Logo struct {
	SHA256        string // of the PNG, in hex
	Width, Height int    // in pixels
}

// MerchantChange is a change of a merchant. Nil members stay as they are.
type MerchantChange struct {
	Name, Color, SupportContact, Statement, Timezone *string

	Tolerance        *Tolerance
	Collection       *Collection
	DefaultAddresses map[string]Address // replaces all
	// DelayDefaults applies DefaultAddresses after the delay, if they could redirect money.
	DelayDefaults bool
	Allowed       []AllowedAddress // replaces all, after the delay
	// Immediately applies Allowed without the delay.
	Immediately bool
	ReturnHosts []string // replaces all
	// EmbedOrigins replaces all.
	EmbedOrigins  []string
	ReminderHours []int // replaces all
}

// Change returns the merchant with a change. A new list of allowed addresses takes effect after the delay. It takes
// effect immediately with c.Immediately, or if there was no list, because then it only restricts. Passing the list in
// force again cancels the pending one. The error is a *FieldError if the result would be invalid.
func (m Merchant) Change(c MerchantChange, now time.Time, delay time.Duration) (Merchant, error) {
	m = m.At(now)
	for dst, src := range map[*string]*string{&m.Name: c.Name, &m.Color: c.Color, &m.SupportContact: c.SupportContact, &m.Statement: c.Statement, &m.Timezone: c.Timezone} {
		SetIfGiven(dst, src)
	}
	m.Color, m.Statement = strings.ToLower(m.Color), strings.ReplaceAll(m.Statement, "\r\n", "\n")
	SetIfGiven(&m.Tolerance, c.Tolerance)
	SetIfGiven(&m.Collection, c.Collection)
	if c.DefaultAddresses != nil {
		m = m.changeDefaults(c, now, delay)
	}
	if c.Allowed != nil {
		if len(c.Allowed) == 0 {
			return m, fieldErrorf("allowedAddresses", "must not be empty: no invoice could be created; without a list every address is allowed")
		}
		list := sortedAddresses(c.Allowed)
		switch {
		case len(m.Allowed) == 0, c.Immediately, slices.Equal(list, m.Allowed):
			m.Allowed, m.Pending = list, nil
		case m.Pending != nil && slices.Equal(list, m.Pending.Allowed): // a repeated request
		default:
			m.Pending = &PendingAddresses{Allowed: list, EffectiveAt: now.Add(delay)}
			m = m.At(now) // without a delay
		}
	}
	if c.ReturnHosts != nil {
		m.ReturnHosts = slices.Compact(slices.Sorted(slices.Values(c.ReturnHosts)))
		if err := CheckReturnHosts(c.ReturnHosts); err != nil {
			return m, err
		}
	}
	if c.EmbedOrigins != nil {
		m.EmbedOrigins = sortedOrigins(c.EmbedOrigins)
		if err := CheckEmbedOrigins(c.EmbedOrigins); err != nil {
			return m, err
		}
	}
	if c.ReminderHours != nil {
		m.ReminderHours = slices.Sorted(slices.Values(c.ReminderHours))
	}
	m.ChangedAt = now
	return m, m.check()
}

var hexColor = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// check returns a *FieldError for the first member that is invalid.
func (m Merchant) check() error {
	switch {
	case !ValidMerchantID(m.ID):
		return fieldErrorf("id", "must be 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", MaxMerchantID)
	case m.Color != "" && !hexColor.MatchString(m.Color):
		return fieldErrorf("color", "must be a color such as #1a73e8")
	case m.SupportContact != "" && ContactURL(m.SupportContact) == "":
		return fieldErrorf("supportContact", "must be an e-mail address, a URL that begins with https://, or a phone number such as +1 202 555 0100, of at most %d bytes", MaxSupportContact)
	case utf8.RuneCountInString(m.Statement) > MaxStatement || strings.ContainsFunc(strings.ReplaceAll(m.Statement, "\n", ""), disguises):
		return fieldErrorf("statement", "must be at most %d characters, without control characters but line breaks, and without overrides of the writing direction", MaxStatement)
	case strings.Count(m.Statement, "\n") >= MaxStatementLines:
		return fieldErrorf("statement", "must have at most %d lines", MaxStatementLines)
	}
	if err := CheckTimezone(m.Timezone); err != nil {
		return err
	}
	if err := CheckCollection(cmp.Or(m.Collection, Direct)); err != nil {
		return err
	}
	if err := CheckReminderHours(m.ReminderHours); err != nil {
		return err
	}
	if err := CheckLabel("name", m.Name); err != nil {
		return err
	}
	return m.checkAddresses()
}
