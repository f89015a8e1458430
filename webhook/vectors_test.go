package webhook_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

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
	text, err := os.ReadFile("testdata/vectors.json")
	expect.OK(t, err)
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
