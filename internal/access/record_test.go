package access_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
)

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
