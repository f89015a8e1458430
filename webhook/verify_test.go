package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

const secret = "whsec_4e1b0f6c9d2a7385"

var at = time.Unix(1_700_000_000, 0)

func TestErrors(t *testing.T) {
	all := map[string]*webhook.Error{
		"missing_header":   webhook.ErrMissingHeader,
		"malformed_header": webhook.ErrMalformedHeader,
		"stale_timestamp":  webhook.ErrStaleTimestamp,
		"bad_signature":    webhook.ErrBadSignature,
	}
	good := webhook.Sign(secret, at, nil)
	returned := map[string]error{
		"missing_header":   webhook.Verify(secret, "", nil, at),
		"malformed_header": webhook.Verify(secret, "t=1", nil, at),
		"stale_timestamp":  webhook.Verify(secret, good, nil, at.Add(time.Hour)),
		"bad_signature":    webhook.Verify(secret, good, []byte("x"), at),
	}
	for name, sentinel := range all {
		if sentinel.Code() != name {
			t.Errorf("Code() = %s, want %s", sentinel.Code(), name)
		}
		for other, err := range returned {
			wrapped := fmt.Errorf("deliver: %w", err)
			if got, want := errors.Is(wrapped, sentinel), name == other; got != want {
				t.Errorf("errors.Is(%v, %s) = %v, want %v", wrapped, name, got, want)
			}
		}
	}
	if other := errors.New("bad_signature"); errors.Is(other, webhook.ErrBadSignature) || webhook.ErrBadSignature.Is(other) {
		t.Error("an error of another type is taken for ErrBadSignature")
	}
}

func TestStaleErrorTellsTheSkew(t *testing.T) {
	err := webhook.Verify(secret, webhook.Sign(secret, at, nil), nil, at.Add(-301*time.Second))
	if err == nil || !strings.Contains(err.Error(), "-301 s") {
		t.Errorf("got %v, want the skew of -301 s", err)
	}
}

// The interface's times are whole seconds: neither side's fraction of a second counts.
func TestFractionsOfASecond(t *testing.T) {
	late := at.Add(999 * time.Millisecond)
	header := webhook.Sign(secret, late, nil)
	if want := webhook.Sign(secret, at, nil); header != want {
		t.Errorf("Sign = %s, want %s", header, want)
	}
	if err := webhook.Verify(secret, header, nil, late.Add(webhook.Tolerance)); err != nil {
		t.Errorf("Verify at 300.999 s: %v", err)
	}
}

func TestVerifierTakesAnySecret(t *testing.T) {
	body := []byte("{}")
	clock := func() time.Time { return at }
	v := webhook.Verifier{Secrets: []string{"", "new", "old"}, Now: clock}
	for _, key := range []string{"new", "old"} {
		if err := v.Verify(webhook.Sign(key, at, body), body); err != nil {
			t.Errorf("signed with %q: %v", key, err)
		}
	}
	for _, key := range []string{"other", "newold"} {
		if err := v.Verify(webhook.Sign(key, at, body), body); !errors.Is(err, webhook.ErrBadSignature) {
			t.Errorf("signed with %q: got %v, want bad_signature", key, err)
		}
	}
	if err := v.Verify("", body); !errors.Is(err, webhook.ErrMissingHeader) {
		t.Errorf("no header: got %v, want missing_header", err)
	}
	anyones := "t=1700000000,v1=" + digestWith(nil, "1700000000."+string(body))
	for name, v := range map[string]webhook.Verifier{"zero": {Now: v.Now}, "of the empty secret": {Secrets: []string{""}, Now: v.Now}, "of others": v} {
		if err := v.Verify(anyones, body); !errors.Is(err, webhook.ErrBadSignature) {
			t.Errorf("the verifier %s: got %v, want bad_signature", name, err)
		}
	}
}

// digestWith is a digest that anyone can compute.
func digestWith(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// An empty key, which anyone has, must not sign.
func TestEmptyKeySignsNothing(t *testing.T) {
	if got := webhook.Sign("", at, nil); got != "" {
		t.Errorf("the empty secret signs %q", got)
	}
	good := webhook.SignStandard([]string{secret}, "dlv_1", at, nil)
	if got := webhook.SignStandard([]string{"", secret, webhook.SecretPrefix}, "dlv_1", at, nil); got != good || good == "" {
		t.Errorf("signed %q with empty keys, want %q", got, good)
	}
}

func TestStandardKey(t *testing.T) {
	for secret, want := range map[string]string{
		"": "", "whsec_": "", "whsec_a2V5": "key", "whsec_a2V": "whsec_a2V", "a2V5": "a2V5", "whsec_no base64": "whsec_no base64",
	} {
		if got := string(webhook.StandardKey(secret)); got != want {
			t.Errorf("the key of %q is %q, want %q", secret, got, want)
		}
	}
}

func TestSignedVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringN(1, -1, 200).Draw(t, "secret")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		signedAt := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "t")
		skew := rapid.Int64Range(-400, 400).Draw(t, "skew")
		header := webhook.Sign(key, time.Unix(signedAt, 0), body)
		err := webhook.Verify(key, header, body, time.Unix(signedAt+skew, 0))
		if skew < -300 || skew > 300 {
			if !errors.Is(err, webhook.ErrStaleTimestamp) {
				t.Fatalf("got %v, want stale_timestamp", err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	})
}

func TestFlippedBitFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := map[string][]byte{
			"secret": []byte(rapid.StringN(1, -1, 80).Draw(t, "secret")),
			"body":   rapid.SliceOfN(rapid.Byte(), 1, -1).Draw(t, "body"),
		}
		parts["header"] = []byte(webhook.Sign(string(parts["secret"]), at, parts["body"]))
		part := parts[rapid.SampledFrom([]string{"secret", "body", "header"}).Draw(t, "part")]
		bit := rapid.IntRange(0, len(part)*8-1).Draw(t, "bit")
		part[bit/8] ^= 1 << (bit % 8)
		if err := webhook.Verify(string(parts["secret"]), string(parts["header"]), parts["body"], at); err == nil {
			t.Fatalf("%q verifies", parts)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	body := make([]byte, 1024)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		webhook.Sign(secret, at, body)
	}
}

func BenchmarkVerify(b *testing.B) {
	body := make([]byte, 1024)
	header := webhook.Sign(secret, at, body)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		expect.OK(b, webhook.Verify(secret, header, body, at))
	}
}
