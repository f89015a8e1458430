package access_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
)

// TestScopesRoundTrip formats and parses sets of scopes.
func TestScopesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOf(rapid.SampledFrom(access.AllScopes)).Draw(t, "scopes")
		set := access.NewScopes(drawn...)
		got, err := access.ParseScopes(set.Names())
		if err != nil || got != set || set.String() != strings.Join(got.Names(), " ") {
			t.Fatalf("%q is parsed as %q, %v", set, got, err)
		}
		for _, s := range access.AllScopes {
			if set.Has(s) != slices.Contains(drawn, s) {
				t.Fatalf("of %q it has %s: %t", drawn, s, set.Has(s))
			}
		}
		if !set.Within(access.Admin) || set != access.Admin && access.Admin.Within(set) {
			t.Fatalf("%q within all is %t, and all within it %t", set, set.Within(access.Admin), access.Admin.Within(set))
		}
	})
}

func TestPresets(t *testing.T) {
	for names, want := range map[string]string{
		"read":                "invoices:read payments:read events:read",
		"standard":            "invoices:read invoices:write payments:read events:read events:redeliver",
		"admin":               access.Admin.String(),
		"read keys:write":     "invoices:read payments:read events:read keys:write",
		"read invoices:read":  "invoices:read payments:read events:read",
		"keys:write standard": access.Standard.String() + " keys:write",
	} {
		if got, err := access.ParseScopes(strings.Fields(names)); err != nil || got.String() != want {
			t.Errorf("%s: %q, %v; want %q", names, got, err, want)
		}
	}
	if len(access.Admin.Names()) != len(access.AllScopes) {
		t.Errorf("admin is %q", access.Admin)
	}
	for _, name := range []string{"", "Read", "invoices", "invoices:*", "read "} {
		if got, err := access.ParseScopes([]string{"read", name}); err == nil || got != 0 {
			t.Errorf("%q: %q, %v; want an error", name, got, err)
		}
	}
	if access.Admin.Has("nothing:read") {
		t.Error("admin has an unknown scope")
	}
}
