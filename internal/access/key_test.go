package access_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

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
