package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestParseEvent(t *testing.T) {
	body := `{"id":"evt_1","type":"invoice.paid","createdAt":1700000000,"new":[1],"data": {"amount":"18446744073709551616"}}`
	got, err := webhook.ParseEvent([]byte(body))
	expect.OK(t, err)
	want := webhook.Event{
		ID: "evt_1", Type: webhook.InvoicePaid, CreatedAt: 1_700_000_000,
		Data: json.RawMessage(`{"amount":"18446744073709551616"}`),
	}
	expect.NoDiff(t, cmp.Diff(want, got), "event")
}

// eventVectors are bodies of deliveries. The tests of the TypeScript client use them, too.
func eventVectors(t *testing.T) (vectors []struct {
	Name, Body string
	BodyBase64 []byte
	Valid      bool
}) {
	t.Helper()
	text := expect.Must(os.ReadFile("testdata/events.json"))
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 40 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	return vectors
}

// TestEventVectors parses bodies with and without their signature.
func TestEventVectors(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	verifier := webhook.Verifier{Secrets: []string{"whsec_new", "whsec_old"}, Now: func() time.Time { return now }}
	for _, v := range eventVectors(t) {
		body := v.BodyBase64
		if body == nil {
			body = []byte(v.Body)
		}
		parsed, err := webhook.ParseEvent(body)
		constructed, err2 := verifier.ConstructEvent(body, webhook.Sign("whsec_old", now, body))
		if v.Valid {
			if err != nil || err2 != nil || parsed.ID != "evt_1" {
				t.Errorf("%s: %+v, %v, %v", v.Name, parsed, err, err2)
			}
		} else if !errors.Is(err, webhook.ErrInvalidEvent) || !errors.Is(err2, webhook.ErrInvalidEvent) {
			t.Errorf("%s: got %v and %v, want ErrInvalidEvent", v.Name, err, err2)
		}
		if diff := cmp.Diff(parsed, constructed); diff != "" || !v.Valid && !cmp.Equal(parsed, webhook.Event{}) {
			t.Errorf("%s: %+v, and constructed %s", v.Name, parsed, diff)
		}
	}
}

// TestConstructEvent verifies signatures by the system's clock.
func TestConstructEvent(t *testing.T) {
	body := []byte(`{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":{}}`)
	header := webhook.Sign("whsec_1", time.Now(), body)
	if e, err := webhook.ConstructEvent(body, header, "whsec_2", "whsec_1"); err != nil || e.ID != "evt_1" {
		t.Errorf("%+v, %v", e, err)
	}
	_, digest, _ := strings.Cut(webhook.Sign("whsec_2", time.Now(), body), "v1=")
	if _, err := webhook.ConstructEvent(body, header+",v1="+digest, "whsec_1"); err != nil {
		t.Errorf("a header with two v1: %v", err)
	}
	for name, test := range map[string]struct {
		header  string
		secrets []string
		want    error
	}{
		"another secret": {header, []string{"whsec_2"}, webhook.ErrBadSignature},
		"no secret":      {header, nil, webhook.ErrBadSignature},
		"empty secret":   {header, []string{""}, webhook.ErrBadSignature},
		"no header":      {"", []string{"whsec_1"}, webhook.ErrMissingHeader},
		"old":            {webhook.Sign("whsec_1", time.Now().Add(-time.Hour), body), []string{"whsec_1"}, webhook.ErrStaleTimestamp},
	} {
		if e, err := webhook.ConstructEvent(body, test.header, test.secrets...); !errors.Is(err, test.want) || e.ID != "" {
			t.Errorf("%s: %+v, %v, want %v", name, e, err, test.want)
		}
	}
}

// vectors is testdata/vectors.json, which testdata/README.md describes.
type vectors struct {
	ToleranceSeconds int64    `json:"toleranceSeconds"`
	Vectors          []vector `json:"vectors"`
}

type vector struct {
	Name       string  `json:"name"`
	Basis      string  `json:"basis"`
	Secret     string  `json:"secret"`
	Header     *string `json:"header"`
	Body       *string `json:"body"`
	BodyBase64 []byte  `json:"bodyBase64"`
	Now        int64   `json:"now"`
	Want       string  `json:"want"`
	Canonical  bool    `json:"canonical"`
}

func (v vector) body() []byte {
	if v.Body != nil {
		return []byte(*v.Body)
	}
	return v.BodyBase64
}

func (v vector) header() string {
	if v.Header == nil {
		return ""
	}
	return *v.Header
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	text := expect.Must(os.ReadFile("testdata/vectors.json"))
	var all vectors
	expect.OK(t, json.Unmarshal(text, &all))
	return all
}

// code returns ok for no error, and an error's code otherwise.
func code(t testing.TB, err error) string {
	t.Helper()
	var refused *webhook.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &refused):
		return refused.Code()
	}
	t.Fatalf("got %v (%T), want a *webhook.Error", err, err)
	return ""
}

func TestVectors(t *testing.T) {
	all := readVectors(t)
	if got := time.Duration(all.ToleranceSeconds) * time.Second; got != webhook.Tolerance {
		t.Errorf("toleranceSeconds is %v, want %v", got, webhook.Tolerance)
	}
	seen := map[string]bool{}
	wants := map[string]int{}
	for _, v := range all.Vectors {
		if seen[v.Name] || v.Name == "" {
			t.Errorf("name %q is empty or used twice", v.Name)
		}
		if v.Basis != "contract" && v.Basis != "decision" {
			t.Errorf("%s: basis %q", v.Name, v.Basis)
		}
		if (v.Body == nil) == (v.BodyBase64 == nil) {
			t.Errorf("%s: want one of body and bodyBase64", v.Name)
		}
		seen[v.Name] = true
		wants[v.Want]++
		t.Run(v.Name, func(t *testing.T) {
			now := time.Unix(v.Now, 0)
			if got := code(t, webhook.Verify(v.Secret, v.header(), v.body(), now)); got != v.Want {
				t.Errorf("Verify(%q) = %s, want %s", v.header(), got, v.Want)
			}
			if got := webhook.Sign(v.Secret, now, v.body()); v.Canonical && got != v.header() {
				t.Errorf("Sign = %q, want %q", got, v.header())
			}
		})
	}
	if len(seen) < 40 {
		t.Errorf("%d vectors, want 40 at least", len(seen))
	}
	for _, want := range []string{"ok", "missing_header", "malformed_header", "stale_timestamp", "bad_signature"} {
		if wants[want] == 0 {
			t.Errorf("no vector wants %s", want)
		}
	}
}
