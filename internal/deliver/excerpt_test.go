package deliver

import (
	"strings"
	"testing"
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
		if got := e.redact(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
