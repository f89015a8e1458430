package access_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
)

func key(t *testing.T) access.MasterKey {
	t.Helper()
	text, err := access.NewMasterKey(rand.Reader)
	expect.OK(t, err)
	k, err := access.ParseMasterKey(text + "\n")
	expect.OK(t, err)
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
