package access

import (
	"fmt"
	"math/bits"
	"strings"
)

// Scope is a permission of a key.
type Scope string

// Scopes of keys. Each value is the scope's name in the API.
const (
	InvoicesRead     Scope = "invoices:read"
	InvoicesWrite    Scope = "invoices:write"
	PaymentsRead     Scope = "payments:read"
	EventsRead       Scope = "events:read"
	EventsRedeliver  Scope = "events:redeliver"
	WebhooksWrite    Scope = "webhooks:write"
	AttributionWrite Scope = "attribution:write"
	KeysWrite        Scope = "keys:write"
)

// AllScopes are all scopes, in the order in which they are listed.
var AllScopes = []Scope{
	InvoicesRead, InvoicesWrite, PaymentsRead, EventsRead, EventsRedeliver, WebhooksWrite, AttributionWrite, KeysWrite,
}

// Scopes is a set of scopes. The zero value is the empty set.
type Scopes uint32

// Names of the presets, which ParseScopes accepts in the place of scopes.
const (
	PresetRead     = "read"     // reads invoices, payments and events
	PresetStandard = "standard" // reads, creates invoices, and redelivers events
	PresetAdmin    = "admin"    // everything
)

// Names of the presets for people.
const (
	PresetOwner     = "owner"     // everything
	PresetFinance   = "finance"   // reads, makes invoices and refunds, and attributes payments
	PresetDeveloper = "developer" // reads, creates invoices, redelivers events, and sets the endpoint
	PresetSupport   = "support"   // reads, and redelivers events
	PresetReadOnly  = "read-only" // reads
)

// Presets.
var (
	Read      = NewScopes(InvoicesRead, PaymentsRead, EventsRead)
	Standard  = Read | NewScopes(InvoicesWrite, EventsRedeliver)
	Admin     = NewScopes(AllScopes...)
	Finance   = Read | NewScopes(InvoicesWrite, AttributionWrite)
	Developer = Standard | NewScopes(WebhooksWrite)
	Support   = Read | NewScopes(EventsRedeliver)
)

// Roles are the presets for people, from the most permissions to the fewest.
var Roles = []string{PresetOwner, PresetFinance, PresetDeveloper, PresetSupport, PresetReadOnly}

var presets = map[string]Scopes{
	PresetRead: Read, PresetStandard: Standard, PresetAdmin: Admin,
	PresetOwner: Admin, PresetFinance: Finance, PresetDeveloper: Developer, PresetSupport: Support, PresetReadOnly: Read,
}

// Role returns the name of the preset for people that is the set, or "".
func (set Scopes) Role() string {
	for _, name := range Roles {
		if presets[name] == set {
			return name
		}
	}
	return ""
}

// bit returns the set that holds only s, or the empty set if there is no such scope.
func (s Scope) bit() Scopes {
	for i, known := range AllScopes {
		if s == known {
			return 1 << i
		}
	}
	return 0
}

// NewScopes returns the set of the given scopes. It ignores unknown ones.
func NewScopes(scopes ...Scope) (set Scopes) {
	for _, s := range scopes {
		set |= s.bit()
	}
	return set
}

// ParseScopes parses names of scopes and presets. The error names the first that is neither.
func ParseScopes(names []string) (set Scopes, err error) {
	for _, name := range names {
		add := Scope(name).bit() | presets[name]
		if add == 0 {
			return 0, fmt.Errorf("%.40q is not a scope or a preset; want %s, or %s, %s, %s, %s", name,
				strings.Join(Admin.Names(), ", "), PresetRead, PresetStandard, PresetAdmin, strings.Join(Roles, ", "))
		}
		set |= add
	}
	return set, nil
}

// Has reports whether the set holds a scope.
func (set Scopes) Has(s Scope) bool {
	bit := s.bit()
	return bit != 0 && set&bit == bit
}

// Within reports whether every scope of the set is in other.
func (set Scopes) Within(other Scopes) bool { return set&^other == 0 }

// Names returns the scopes' names, in the order of AllScopes.
func (set Scopes) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(set)))
	for _, s := range AllScopes {
		if set.Has(s) {
			names = append(names, string(s))
		}
	}
	return names
}

// String returns the scopes' names, separated by spaces.
func (set Scopes) String() string { return strings.Join(set.Names(), " ") }
