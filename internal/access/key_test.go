package access_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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
	k := expect.Must(access.NewKey(rapid.SampledFrom([]access.Mode{access.Live, access.Test}).Draw(t, "mode"), bytes.NewReader(random)))
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
	k := expect.Must(access.NewKey(access.Live, rand.Reader))
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
	k := expect.Must(access.NewKey(access.Test, rand.Reader))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, k); strings.Contains(got, k.Reveal()[14:]) {
			t.Errorf("%s prints the key", verb)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	k := expect.Must(access.NewKey(access.Live, bytes.NewReader(make([]byte, 21))))
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

func key(t *testing.T) access.MasterKey {
	t.Helper()
	text, err := access.NewMasterKey(rand.Reader)
	expect.OK(t, err)
	k := expect.Must(access.ParseMasterKey(text + "\n"))
	return k
}

// TestSealed opens sealed text only with its merchant and version.
func TestSealed(t *testing.T) {
	v := access.NewKeyring(key(t))
	rapid.Check(t, func(t *rapid.T) {
		merchant := rapid.StringMatching(`[A-Za-z0-9_.-]{1,64}`)
		id, version := merchant.Draw(t, "merchant"), rapid.Int64Min(1).Draw(t, "version")
		secret := rapid.String().Draw(t, "secret")
		sealed := v.Seal(id, version, secret)
		if got, err := v.Open(id, version, sealed); err != nil || got != secret {
			t.Fatalf("opened %q, %v; want %q", got, err, secret)
		}
		if again := v.Seal(id, version, secret); bytes.Equal(again.Data, sealed.Data) {
			t.Fatal("sealing twice gives the same bytes")
		}
		other, next := merchant.Draw(t, "another merchant"), rapid.Int64Min(1).Draw(t, "another version")
		if other == id && next == version {
			return
		}
		if got, err := v.Open(other, next, sealed); !errors.Is(err, access.ErrBroken) || got != "" {
			t.Fatalf("for %q version %d it opens as %q, %v", other, next, got, err)
		}
	})
}

// TestPurpose uses merchants and versions that are equal when concatenated.
func TestPurpose(t *testing.T) {
	v := access.NewKeyring(key(t))
	if _, err := v.Open("shop", 11, v.Seal("shop1", 1, "s")); !errors.Is(err, access.ErrBroken) {
		t.Errorf("the secret of another merchant opens: %v", err)
	}
}

// TestChanged flips each bit of sealed text.
func TestChanged(t *testing.T) {
	v := access.NewKeyring(key(t))
	sealed := v.Seal("shop", 1, "whsec_shop")
	for i := range len(sealed.Data) * 8 {
		sealed.Data[i/8] ^= 1 << (i % 8)
		if got, err := v.Open("shop", 1, sealed); !errors.Is(err, access.ErrBroken) {
			t.Fatalf("with bit %d changed it opens as %q, %v", i, got, err)
		}
		sealed.Data[i/8] ^= 1 << (i % 8)
	}
	for n := range len(sealed.Data) {
		if got, err := v.Open("shop", 1, access.Sealed{KeyID: sealed.KeyID, Data: sealed.Data[:n]}); !errors.Is(err, access.ErrBroken) {
			t.Errorf("cut to %d bytes it opens as %q, %v", n, got, err)
		}
	}
}

// TestRotation replaces the master key.
func TestRotation(t *testing.T) {
	first, second, stranger := key(t), key(t), key(t)
	if first.ID == second.ID || len(first.ID) != 16 {
		t.Errorf("ids are %q and %q", first.ID, second.ID)
	}
	old := access.NewKeyring(first).Seal("shop", 1, "whsec_shop")
	v := access.NewKeyring(second, first)
	if got, err := v.Open("shop", 1, old); err != nil || got != "whsec_shop" {
		t.Errorf("what the older key sealed opens as %q, %v", got, err)
	}
	if s := v.Seal("shop", 1, "whsec_shop"); s.KeyID != second.ID || v.KeyID() != second.ID {
		t.Errorf("sealed under %s; want the newest, %s", s.KeyID, second.ID)
	}
	if _, err := access.NewKeyring(stranger).Open("shop", 1, old); !errors.Is(err, access.ErrNoKey) || !strings.Contains(err.Error(), first.ID) {
		t.Errorf("without its key: %v", err)
	}
	forged := access.Sealed{KeyID: second.ID, Data: old.Data}
	if _, err := v.Open("shop", 1, forged); !errors.Is(err, access.ErrBroken) {
		t.Errorf("under the wrong key's name: %v", err)
	}
}

func TestParseKey(t *testing.T) {
	good := strings.Repeat("0aF", 21) + "1"
	for text, ok := range map[string]bool{
		good: true, " " + good + "\r\n": true, "": false, good + "00": false, good[2:]: false, good[:63]: false,
		"g" + good[1:]: false, "0x" + good[2:]: false,
	} {
		_, err := access.ParseMasterKey(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && len(text) > 8 && strings.Contains(err.Error(), text[2:8]) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

func TestNewSecret(t *testing.T) {
	s, err := access.NewSecret(bytes.NewReader(bytes.Repeat([]byte{0xff}, access.SecretSize)))
	if err != nil || s != "whsec_"+strings.Repeat("/", 42)+"8=" {
		t.Errorf("made %q, %v", s, err)
	}
	for _, random := range []io.Reader{strings.NewReader(""), bytes.NewReader(make([]byte, access.SecretSize-1))} {
		if s, err := access.NewSecret(random); err == nil {
			t.Errorf("made %q of too little randomness", s)
		}
	}
}

func TestCheckRandom(t *testing.T) {
	var sequence, pairs string
	for i := range access.KeySize {
		sequence += fmt.Sprintf("%02x", i)
		pairs += fmt.Sprintf("%02x", 3*i+7)
	}
	for name, text := range map[string]string{
		"zeros": strings.Repeat("00", access.KeySize), "ones": strings.Repeat("ff", access.KeySize), "a word": strings.Repeat("deadbeef", 8),
		"digits": strings.Repeat("0123456789abcdef", 4), "a sequence": sequence, "another": pairs, "a small number": fmt.Sprintf("%064x", 12345678),
	} {
		if access.CheckRandom(text) == nil {
			t.Errorf("%s is taken for random", name)
		}
	}
	for range 10_000 {
		text, err := access.NewMasterKey(rand.Reader)
		expect.OK(t, err)
		if err := access.CheckRandom(text + "\n"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSign verifies signatures under the newest key and an older one.
func TestSign(t *testing.T) {
	t.Parallel()
	old, newer, other := key(t), key(t), key(t)
	text := []byte("a text")
	public, signature := access.NewKeyring(old).Sign(text)
	both := access.NewKeyring(newer, old)
	if err := both.Verify(public, text, signature); err != nil {
		t.Errorf("under an older key: %v", err)
	}
	if next, _ := both.Sign(text); next.Equal(public) {
		t.Error("it signs under the older key")
	}
	if again, _ := access.NewKeyring(old).Sign(nil); !again.Equal(public) {
		t.Error("a key has two public keys")
	}
	if err := both.Verify(public, []byte("b text"), signature); !errors.Is(err, access.ErrBroken) {
		t.Errorf("another text: %v", err)
	}
	if err := both.Verify(public, text, signature[1:]); !errors.Is(err, access.ErrBroken) {
		t.Errorf("a part of the signature: %v", err)
	}
	for _, k := range []*access.Keyring{access.NewKeyring(newer), access.NewKeyring(other)} {
		if err := k.Verify(public, text, signature); !errors.Is(err, access.ErrNoKey) {
			t.Errorf("without the key: %v", err)
		}
	}
	if err := both.Verify(nil, text, signature); !errors.Is(err, access.ErrNoKey) {
		t.Errorf("without a public key: %v", err)
	}
}
