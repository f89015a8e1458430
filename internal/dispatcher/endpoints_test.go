package dispatcher_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dbtest"
	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/rowtest"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		put := func(merchant, url string, now int64, wantFirst bool) {
			t.Helper()
			if first, err := dispatcher.PutEndpointOnce(t.Context(), s, dispatcher.EndpointRow{MerchantID: merchant, URL: url, ChangedAt: invoice.Unix(now)}, sealed); first != wantFirst || err != nil {
				t.Errorf("%s: a first secret: %t, %v; want %t", url, first, err, wantFirst)
			}
		}
		put("m", "https://one.example/", 5, true)
		rowtest.Must(t, dispatcher.SaveBreaker(t.Context(), s, "m", delivery.Breaker{State: delivery.BreakerGone, Allowed: 1, Pauses: 1}))
		put("m", "https://two.example/", 6, false)
		put("without invoices", "https://three.example/", 7, true)
		got, err := dispatcher.Endpoints(t.Context(), s, []string{"m", "n", "without invoices"})
		want := map[string]dispatcher.EndpointRow{
			"m":                {MerchantID: "m", URL: "https://two.example/", ChangedAt: invoice.Unix(6), Secrets: []dispatcher.SecretRow{storedSecret("m", 1, dispatcher.SecretActive, 5)}},
			"without invoices": {MerchantID: "without invoices", URL: "https://three.example/", ChangedAt: invoice.Unix(7), Secrets: []dispatcher.SecretRow{storedSecret("without invoices", 1, dispatcher.SecretActive, 7)}},
		}
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if b, err := dispatcher.NewReader(s).Breakers(t.Context(), []string{"m"}); err != nil || b["m"].State != delivery.BreakerClosed {
			t.Errorf("after a new URL the breaker is %+v, %v; want that of a new endpoint", b["m"], err)
		}
	})
}

func TestOptionalEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		for i, c := range []struct {
			put  []invoice.EventType
			want []invoice.EventType
		}{
			{nil, nil}, // no types at first
			{[]invoice.EventType{"b", "a", "b"}, []invoice.EventType{"a", "b"}},
			{nil, []invoice.EventType{"a", "b"}}, // kept
			{[]invoice.EventType{}, nil},
			{nil, nil},
			{[]invoice.EventType{"c"}, []invoice.EventType{"c"}},
		} {
			_, err := dispatcher.PutEndpointOnce(t.Context(), s, dispatcher.EndpointRow{MerchantID: "m", URL: "https://m.example/", Optional: c.put, ChangedAt: invoice.Unix(5)}, sealed)
			rowtest.Must(t, err)
			rows, err := dispatcher.Endpoints(t.Context(), s, []string{"m"})
			rowtest.Must(t, err)
			all, err := dispatcher.OptionalEvents(t.Context(), s, []string{"n", "m"})
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

// storedSecret returns a row with the secret of sealed.
func storedSecret(merchant string, version int64, state dispatcher.SecretState, created int64) dispatcher.SecretRow {
	return dispatcher.SecretRow{
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
		want := func(what string, want ...dispatcher.SecretRow) {
			t.Helper()
			got, err := dispatcher.Secrets(t.Context(), s, []string{"m"})
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
		row := func(version int64, state dispatcher.SecretState, until int64) dispatcher.SecretRow {
			r := storedSecret("m", version, state, 9)
			if until != 0 {
				r.ValidUntil = invoice.Unix(until)
			}
			return r
		}
		stage := func(wantVersion int64) {
			t.Helper()
			if version, err := dispatcher.StageSecretOnce(t.Context(), s, "m", invoice.Unix(9), sealed); version != wantVersion || err != nil {
				t.Errorf("staged version %d, %v; want %d", version, err, wantVersion)
			}
		}
		const url = "https://shop.example/"
		for _, m := range []string{"m", "n"} {
			_, err := dispatcher.PutEndpointOnce(t.Context(), s, dispatcher.EndpointRow{MerchantID: m, URL: url, ChangedAt: invoice.Unix(9)}, sealed)
			rowtest.Must(t, err)
		}
		stage(2)
		_, err := dispatcher.StageSecretOnce(t.Context(), s, "m", invoice.Unix(9), sealed)
		conflict("a second one staged", err)
		want("staged", row(2, dispatcher.SecretStaged, 0), row(1, dispatcher.SecretActive, 0))

		conflict("promoting what is not staged", dispatcher.PromoteSecretOnce(t.Context(), s, row(3, dispatcher.SecretStaged, 0), url, invoice.Unix(100)))
		if err := dispatcher.PromoteSecretOnce(t.Context(), s, row(2, dispatcher.SecretStaged, 0), url+"old", invoice.Unix(100)); !errors.Is(err, dispatcher.ErrURLChanged) {
			t.Errorf("promoting what another URL knows: %v, want ErrURLChanged", err)
		}
		want("still staged", row(2, dispatcher.SecretStaged, 0), row(1, dispatcher.SecretActive, 0))
		rowtest.Must(t, dispatcher.PromoteSecretOnce(t.Context(), s, row(2, dispatcher.SecretStaged, 0), url, invoice.Unix(100)))
		want("promoted", row(2, dispatcher.SecretActive, 0), row(1, dispatcher.SecretRetiring, 100))
		conflict("promoting it again", dispatcher.PromoteSecretOnce(t.Context(), s, row(2, dispatcher.SecretStaged, 0), url, invoice.Unix(200)))

		stage(3)
		rowtest.Must(t, dispatcher.DropStagedSecretOnce(t.Context(), s, "m"))
		if err := dispatcher.DropStagedSecretOnce(t.Context(), s, "m"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("dropping it again: %v, want ErrNotFound", err)
		}
		for _, c := range []struct{ at, removed int64 }{{100, 0}, {101, 1}} {
			if n, err := dispatcher.NewTables(s).DropRetiredSecrets(t.Context(), time.Unix(c.at, 0)); n != c.removed || err != nil {
				t.Errorf("removed at %d: %d, %v; want %d", c.at, n, err, c.removed)
			}
		}
		want("in the end", row(2, dispatcher.SecretActive, 0))

		others, err := dispatcher.SecretsNotUnder(t.Context(), s, "key1", 10)
		if diff := gocmp.Diff([]dispatcher.SecretRow{row(2, dispatcher.SecretActive, 0)}, others); err != nil || diff != "" {
			t.Errorf("under other keys: %v (-want +got):\n%s", err, diff)
		}
		again, changed := row(2, dispatcher.SecretActive, 0), row(2, dispatcher.SecretActive, 0)
		again.Sealed, again.KeyID = []byte("other"), "key9"
		changed.Sealed = []byte("changed")
		conflict("an encryption that was replaced", dispatcher.ReplaceSealedOnce(t.Context(), s, again, changed))
		rowtest.Must(t, dispatcher.ReplaceSealedOnce(t.Context(), s, again, row(2, dispatcher.SecretActive, 0)))
		want("encrypted anew", again)
	})
}
