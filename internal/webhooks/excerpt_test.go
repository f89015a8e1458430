package webhooks

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
)

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ begin, want string }{
		"nothing":                 {"", ""},
		"text":                    {"thanks ☕\n", "thanks ☕\n"},
		"cut in a character":      {"caf\xc3", "caf"},
		"cut in a long character": {"x\xf0\x9f\xa7", "x"},
		"compressed":              {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "(10 bytes that are no text)"},
		"a zero":                  {"a\x00b", "(3 bytes that are no text)"},
		"bad in the middle":       {"a\xffbcdefgh", "(9 bytes that are no text)"},
	} {
		if got := excerpt([]byte(c.begin)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	e := Endpoint{Secret: "whsec_c2VjcmV0LWtleQ==", Others: []string{"an older one", "whsec_YS9i/2M+ZA=="}}
	for text, want := range map[string]string{
		"bad signature":                                 "bad signature",
		"expected whsec_c2VjcmV0LWtleQ== ":              "expected [redacted] ",
		"key c2VjcmV0LWtleQ== of you":                   "key [redacted] of you",
		"not an older one either":                       "not [redacted] either",
		`{"secret":"whsec_YS9i\/2M+ZA=="}`:              `{"secret":"[redacted]"}`,
		`{"key":"YS9i\/2M+ZA=="}`:                       `{"key":"[redacted]"}`,
		"key=YS9i%2F2M%2BZA%3D%3D&x":                    "key=[redacted]&x",
		`whsec_c29t\/ZQ\u003d%3D.`:                      "[redacted].",
		"whsec_c29tZWJvZHkgZWxzZQ==":                    "[redacted]",
		`{"Authorization":"Bearer sk_live_0123456789"}`: `{"Authorization":"[redacted]"}`,
		"t=1,v1=" + strings.Repeat("0a", 32) + ";":      "t=1,[redacted];",
		"v1," + strings.Repeat("Ab+/", 11) + "=":        "[redacted]",
	} {
		if got := e.redact(text, false); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// Parts of the URL are as secret as the signing secrets.
func TestRedactURL(t *testing.T) {
	t.Parallel()
	e := Endpoint{
		Secret: `a "quoted" secret`,
		URL:    "https://us%65r-name:pass-word@0123456789abcdef.hooks.example/short/segment/sk_live_01234567?key=hush-hush%2F7&v=1&loose-value",
	}
	for text, want := range map[string]string{
		"lookup 0123456789abcdef.hooks.example: no such host":        "lookup [redacted].hooks.example: no such host",
		"no /short/segment/sk_live_01234567 here":                    "no /short/segment/[redacted] here",
		"GET ?key=hush-hush%2F7&v=1":                                 "GET ?key=[redacted]&v=1",
		`{"key":"hush-hush/7","v":1}`:                                `{"key":"[redacted]","v":1}`,
		"user-name and pass-word, loose-value":                       "[redacted] and [redacted], [redacted]",
		`malformed HTTP status code "a \"quoted\" secret"`:           `malformed HTTP status code "[redacted]"`,
		"0123456789abcde and hush-hu are not the whole of anything.": "0123456789abcde and hush-hu are not the whole of anything.",
	} {
		if got := e.redact(text, false); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for url, want := range map[string]string{
		"https://h.example/" + strings.Repeat("s", minSecretWord-1):     "kept",
		"https://h.example/" + strings.Repeat("s", minSecretWord):       "[redacted]",
		"https://h.example/?k=" + strings.Repeat("s", minSecretValue-1): "kept",
		"https://h.example/?k=" + strings.Repeat("s", minSecretValue):   "[redacted]",
	} {
		word := strings.TrimPrefix(strings.TrimPrefix(url, "https://h.example/"), "?k=")
		if want == "kept" {
			want = word
		}
		if got := (Endpoint{URL: url, Secret: "another secret"}).redact(word, false); got != want {
			t.Errorf("%q of %s became %q, want %q", word, url, got, want)
		}
	}
}

// Whole values of headers are redacted unless they are very short, and long words of them.
func TestRedactHeaders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Repeat("s", minHeaderValue-1):            "kept",
		strings.Repeat("s", minHeaderValue):              "[redacted]",
		"Token " + strings.Repeat("s", minSecretValue-1): "[redacted]",
	} {
		if want == "kept" {
			want = text
		}
		e := Endpoint{URL: "https://h.example/", Secret: "another secret", Headers: []access.WebhookHeader{{Name: "X-A", Value: text}}}
		if got := e.redact("got "+text+".", false); got != "got "+want+"." {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for n, want := range map[int]string{minSecretValue - 1: "kept", minSecretValue: "[redacted]"} {
		word := strings.Repeat("s", n)
		if want == "kept" {
			want = word
		}
		e := Endpoint{URL: "https://h.example/", Secret: "another secret", Headers: []access.WebhookHeader{{Name: "X-A", Value: "Token " + word}}}
		if got := e.redact("got "+word, false); got != "got "+want {
			t.Errorf("the word %q became %q, want %q", word, got, want)
		}
	}
}

// A secret at the edge of an excerpt is not shown in part.
func TestRedactCut(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	e := Endpoint{Secret: secret}
	for text, want := range map[string]string{
		"key " + secret[:15]:               "key [redacted]",
		"key " + secret[:minSecretBegin]:   "key [redacted]",
		"key " + secret[:minSecretBegin-1]: "key " + secret[:minSecretBegin-1],
		secret[:9]:                         "[redacted]",
		"key " + secret[1:9]:               "key " + secret[1:9],
	} {
		if got := e.redact(text, true); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
