package webhooks_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		put := func(merchant, url string, now int64, wantFirst bool) {
			t.Helper()
			if first, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: merchant, URL: url, ChangedAt: invoice.Unix(now)}, sealed); first != wantFirst || err != nil {
				t.Errorf("%s: a first secret: %t, %v; want %t", url, first, err, wantFirst)
			}
		}
		put("m", "https://one.example/", 5, true)
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "m", webhooks.Breaker{State: webhooks.BreakerGone, Allowed: 1, Pauses: 1}))
		put("m", "https://two.example/", 6, false)
		put("without invoices", "https://three.example/", 7, true)
		got, err := webhooks.Endpoints(t.Context(), s, []string{"m", "n", "without invoices"})
		want := map[string]webhooks.EndpointRow{
			"m":                {MerchantID: "m", URL: "https://two.example/", ChangedAt: invoice.Unix(6), Secrets: []webhooks.SecretRow{storedSecret("m", 1, webhooks.SecretActive, 5)}},
			"without invoices": {MerchantID: "without invoices", URL: "https://three.example/", ChangedAt: invoice.Unix(7), Secrets: []webhooks.SecretRow{storedSecret("without invoices", 1, webhooks.SecretActive, 7)}},
		}
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if b, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"}); err != nil || b["m"].State != webhooks.BreakerClosed {
			t.Errorf("after a new URL the breaker is %+v, %v; want that of a new endpoint", b["m"], err)
		}
	})
}

func TestStoredOptionalEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		for i, c := range []struct {
			put  []invoice.EventType
			want []invoice.EventType
		}{
			{nil, nil}, // the first time, none
			{[]invoice.EventType{"b", "a", "b"}, []invoice.EventType{"a", "b"}},
			{nil, []invoice.EventType{"a", "b"}}, // kept
			{[]invoice.EventType{}, nil},
			{nil, nil},
			{[]invoice.EventType{"c"}, []invoice.EventType{"c"}},
		} {
			_, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: "m", URL: "https://m.example/", Optional: c.put, ChangedAt: invoice.Unix(5)}, sealed)
			rowtest.Must(t, err)
			rows, err := webhooks.Endpoints(t.Context(), s, []string{"m"})
			rowtest.Must(t, err)
			all, err := webhooks.OptionalEvents(t.Context(), s, []string{"n", "m"})
			rowtest.Must(t, err)
			want := map[string][]invoice.EventType{}
			if c.want != nil {
				want["m"] = c.want
			}
			if diff := gocmp.Diff(c.want, rows["m"].Optional) + gocmp.Diff(want, all); diff != "" {
				t.Errorf("change %d, of %q (-want +got):\n%s", i, c.put, diff)
			}
		}
	})
}

// storedSecret returns a row whose secret is that of sealed.
func storedSecret(merchant string, version int64, state webhooks.SecretState, created int64) webhooks.SecretRow {
	return webhooks.SecretRow{
		MerchantID: merchant, Version: version, Sealed: []byte{0, 255, byte(version)}, KeyID: fmt.Sprint("key", version), State: state, CreatedAt: invoice.Unix(created),
	}
}

// sealed returns a sealed secret that depends on the version.
func sealed(version int64) ([]byte, string, error) {
	return []byte{0, 255, byte(version)}, fmt.Sprint("key", version), nil
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		want := func(what string, want ...webhooks.SecretRow) {
			t.Helper()
			got, err := webhooks.Secrets(t.Context(), s, []string{"m"})
			if diff := gocmp.Diff(want, got["m"]); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
			}
		}
		conflict := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, db.ErrConflict) {
				t.Errorf("%s: %v, want ErrConflict", what, err)
			}
		}
		row := func(version int64, state webhooks.SecretState, until int64) webhooks.SecretRow {
			r := storedSecret("m", version, state, 9)
			if until != 0 {
				r.ValidUntil = invoice.Unix(until)
			}
			return r
		}
		stage := func(wantVersion int64) {
			t.Helper()
			if version, err := webhooks.StageSecretOnce(t.Context(), s, "m", invoice.Unix(9), sealed); version != wantVersion || err != nil {
				t.Errorf("staged version %d, %v; want %d", version, err, wantVersion)
			}
		}
		const url = "https://shop.example/"
		for _, m := range []string{"m", "n"} {
			_, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: m, URL: url, ChangedAt: invoice.Unix(9)}, sealed)
			rowtest.Must(t, err)
		}
		stage(2)
		_, err := webhooks.StageSecretOnce(t.Context(), s, "m", invoice.Unix(9), sealed)
		conflict("a second one staged", err)
		want("staged", row(2, webhooks.SecretStaged, 0), row(1, webhooks.SecretActive, 0))

		conflict("promoting what is not staged", webhooks.PromoteSecretOnce(t.Context(), s, row(3, webhooks.SecretStaged, 0), url, invoice.Unix(100)))
		if err := webhooks.PromoteSecretOnce(t.Context(), s, row(2, webhooks.SecretStaged, 0), url+"old", invoice.Unix(100)); !errors.Is(err, webhooks.ErrURLChanged) {
			t.Errorf("promoting what another URL knows: %v, want ErrURLChanged", err)
		}
		want("still staged", row(2, webhooks.SecretStaged, 0), row(1, webhooks.SecretActive, 0))
		rowtest.Must(t, webhooks.PromoteSecretOnce(t.Context(), s, row(2, webhooks.SecretStaged, 0), url, invoice.Unix(100)))
		want("promoted", row(2, webhooks.SecretActive, 0), row(1, webhooks.SecretRetiring, 100))
		conflict("promoting it again", webhooks.PromoteSecretOnce(t.Context(), s, row(2, webhooks.SecretStaged, 0), url, invoice.Unix(200)))

		stage(3)
		rowtest.Must(t, webhooks.DropStagedSecretOnce(t.Context(), s, "m"))
		if err := webhooks.DropStagedSecretOnce(t.Context(), s, "m"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("dropping it again: %v, want ErrNotFound", err)
		}
		for _, c := range []struct{ at, removed int64 }{{100, 0}, {101, 1}} {
			if n, err := webhooks.NewTables(s).DropRetiredSecrets(t.Context(), time.Unix(c.at, 0)); n != c.removed || err != nil {
				t.Errorf("removed at %d: %d, %v; want %d", c.at, n, err, c.removed)
			}
		}
		want("in the end", row(2, webhooks.SecretActive, 0))

		others, err := webhooks.SecretsNotUnder(t.Context(), s, "key1", 10)
		if diff := gocmp.Diff([]webhooks.SecretRow{row(2, webhooks.SecretActive, 0)}, others); err != nil || diff != "" {
			t.Errorf("under other keys: %v (-want +got):\n%s", err, diff)
		}
		again, changed := row(2, webhooks.SecretActive, 0), row(2, webhooks.SecretActive, 0)
		again.Sealed, again.KeyID = []byte("other"), "key9"
		changed.Sealed = []byte("changed")
		conflict("an encryption that was replaced", webhooks.ReplaceSealedOnce(t.Context(), s, again, changed))
		rowtest.Must(t, webhooks.ReplaceSealedOnce(t.Context(), s, again, row(2, webhooks.SecretActive, 0)))
		want("encrypted anew", again)
	})
}
