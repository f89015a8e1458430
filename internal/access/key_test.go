package access_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
)

func drawKey(t *rapid.T) access.Key {
	random := rapid.SliceOfN(rapid.Byte(), 21, 21).Draw(t, "random")
	k, err := access.NewKey(rapid.SampledFrom([]access.Mode{access.Live, access.Test}).Draw(t, "mode"), bytes.NewReader(random))
	expect.OK(t, err)
	return k
}

// TestKeyRoundTrip parses the text of each key as that key.
func TestKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		text := k.Reveal()
		if len(text) != access.KeyLength || !strings.HasPrefix(text, "qk_"+string(k.Mode())+"_") {
			t.Fatalf("the key is %q", text)
		}
		got, err := access.ParseKey(text)
		if err != nil || got != k {
			t.Fatalf("parsed %q, %v", got.Reveal(), err)
		}
		if k.Hash() != sha256.Sum256([]byte(text)) || !strings.HasPrefix(text, k.Hint()) || len(k.Hint()) > access.KeyLength/3 {
			t.Fatalf("hash %x, hint %q", k.Hash(), k.Hint())
		}
	})
}

// TestKeyTypo changes one character of a key, swaps two neighbours, or drops one.
func TestKeyTypo(t *testing.T) {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABC_- \n"
	rapid.Check(t, func(t *rapid.T) {
		text := drawKey(t).Reveal()
		at := rapid.IntRange(0, len(text)-2).Draw(t, "at")
		c := rapid.SampledFrom([]byte(alphabet)).Draw(t, "character")
		for name, typo := range map[string]string{
			"changed": text[:at] + string(c) + text[at+1:],
			"swapped": text[:at] + string(text[at+1]) + string(text[at]) + text[at+2:],
			"dropped": text[:at] + text[at+1:],
			"doubled": text[:at+1] + text[at:],
		} {
			if typo == text {
				continue
			}
			if k, err := access.ParseKey(typo); err == nil || k != (access.Key{}) {
				t.Fatalf("%s at %d: %q is parsed as a key", name, at, typo)
			} else if strings.Contains(err.Error(), typo) {
				t.Fatalf("the error shows the key: %v", err)
			}
		}
	})
}

func TestParseKeyErrors(t *testing.T) {
	k, err := access.NewKey(access.Live, rand.Reader)
	expect.OK(t, err)
	text := k.Reveal()
	last := byte('0')
	if text[len(text)-1] == last {
		last = '1'
	}
	for in, want := range map[string]error{
		"":                       access.ErrMalformed,
		"qk_live_":               access.ErrMalformed,
		"qk_prod_" + text[8:]:    access.ErrMalformed,
		strings.ToUpper(text):    access.ErrMalformed,
		" " + text:               access.ErrMalformed,
		text + "0":               access.ErrMalformed,
		text[:47] + "\n":         access.ErrMalformed,
		text[:47] + "u":          access.ErrMalformed,
		"qk_test_" + text[8:]:    access.ErrChecksum,
		text[:47] + string(last): access.ErrChecksum,
	} {
		if _, err := access.ParseKey(in); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
}

// TestKeyIsNotPrinted formats a key in each usual way.
func TestKeyIsNotPrinted(t *testing.T) {
	k, err := access.NewKey(access.Test, rand.Reader)
	expect.OK(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, k); strings.Contains(got, k.Reveal()[14:]) {
			t.Errorf("%s prints the key", verb)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	k, err := access.NewKey(access.Live, bytes.NewReader(make([]byte, 21)))
	expect.OK(f, err)
	f.Add(k.Reveal())
	f.Add("qk_test_")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := access.ParseKey(text)
		if (err == nil) != (k.Mode() != "") {
			t.Fatalf("%q: mode %q, %v", text, k.Mode(), err)
		}
		if err == nil && k.Reveal() != text {
			t.Fatalf("%q is parsed as %q", text, k.Reveal())
		}
	})
}

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

func TestPrincipal(t *testing.T) {
	merchant := access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Read}
	for _, c := range []struct {
		name                         string
		p                            access.Principal
		operator, reads, acme, other bool
	}{
		{"nobody", access.FromContext(context.Background()), false, false, false, false},
		{"open", access.Open(), true, true, true, true},
		{"merchant", access.FromContext(access.WithPrincipal(t.Context(), merchant)), false, true, true, false},
		{"without scopes", access.Principal{KeyID: "key_2"}, false, false, false, false},
	} {
		if c.p.IsOperator() != c.operator || c.p.Can(access.InvoicesRead) != c.reads || c.p.Sees("acme") != c.acme || c.p.Sees("globex") != c.other || c.p.Sees("") != c.operator {
			t.Errorf("%s: operator %t, reads %t, sees acme %t, globex %t", c.name, c.p.IsOperator(), c.p.Can(access.InvoicesRead), c.p.Sees("acme"), c.p.Sees("globex"))
		}
	}
}

func TestStates(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, c := range []struct {
		r    access.Record
		now  int64
		want access.State
	}{
		{access.Record{}, 5, access.Active},
		{access.Record{ExpiresAt: at(6)}, 5, access.Active},
		{access.Record{ExpiresAt: at(5)}, 5, access.Expired},
		{access.Record{RevokedAt: at(9)}, 5, access.Revoked},
		{access.Record{ExpiresAt: at(5), RevokedAt: at(3)}, 6, access.Revoked},
	} {
		if got := c.r.State(at(c.now)); got != c.want {
			t.Errorf("%+v at %d: %s, want %s", c.r, c.now, got, c.want)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"/api/invoices":                        "/api/invoices",
		"/api/invoices/qk_live_00000?x=1":      "/api/invoices/qk_REDACTED?x=1",
		"key=qk_test_ABC&k=QK_LIVE_abc_def":    "key=qk_REDACTED&k=qk_REDACTED_def",
		"a%3Dqk%5Flive%5f0123 and qk_live_":    "a%3Dqk_REDACTED and qk_live_",
		"what begins with qk_prod_abc remains": "what begins with qk_prod_abc remains",
	} {
		if got := access.Redact(in); got != want || access.ContainsKey(in) != (in != want) {
			t.Errorf("%q became %q, want %q; a key is found: %t", in, got, want, access.ContainsKey(in))
		}
	}
}

func TestRedactError(t *testing.T) {
	cause := errors.New("no qk_live_0123")
	err := access.RedactError(fmt.Errorf("look up: %w", cause))
	if err.Error() != "look up: no qk_REDACTED" || !errors.Is(err, cause) {
		t.Errorf("redacted to %v", err)
	}
	if plain := errors.New("not found"); access.RedactError(plain) != plain { //nolint:errorlint // it must be the same value
		t.Error("an error without a key is changed")
	}
}
