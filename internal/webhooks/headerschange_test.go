package webhooks_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// header is a change that sets a header.
func header(name, value string) webhooks.HeaderChange {
	return webhooks.HeaderChange{Name: name, Value: &value}
}

// TestHeaders sets, keeps and removes the headers of an endpoint.
func TestHeaders(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		const id, url = "cafe", "https://cafe.example/"
		for _, step := range []struct {
			name    string
			headers []webhooks.HeaderChange
			want    []access.WebhookHeader
		}{
			{"none at first", nil, nil},
			{"two", []webhooks.HeaderChange{header("Authorization", "Bearer one"), header("X-Tenant", "cafe")}, []access.WebhookHeader{{Name: "Authorization", Value: "Bearer one"}, {Name: "X-Tenant", Value: "cafe"}}},
			{"unchanged", nil, []access.WebhookHeader{{Name: "Authorization", Value: "Bearer one"}, {Name: "X-Tenant", Value: "cafe"}}},
			{"one kept, one changed", []webhooks.HeaderChange{header("X-Tenant", "bar"), {Name: "authorization"}}, []access.WebhookHeader{{Name: "X-Tenant", Value: "bar"}, {Name: "authorization", Value: "Bearer one"}}},
			{"one removed", []webhooks.HeaderChange{{Name: "X-Tenant"}}, []access.WebhookHeader{{Name: "X-Tenant", Value: "bar"}}},
			{"all removed", []webhooks.HeaderChange{}, nil},
		} {
			v, _, err := w.Put(t.Context(), id, webhooks.Settings{URL: url, Headers: step.headers})
			if err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			expect.NoDiff(t, cmp.Diff(step.want, w.signing(t, id).Headers), "%s", step.name)
			var names []string
			for _, h := range step.want {
				names = append(names, h.Name)
			}
			expect.List(t, v.Headers, names, "%s: shown as", step.name)
		}
	})
}

func TestHeadersThatAreRefused(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		expect.Success(t)(w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://cafe.example/", Headers: []webhooks.HeaderChange{header("X-A", "kept")}}))
		for field, headers := range map[string][]webhooks.HeaderChange{
			"headers[1]":       {header("X-A", "a"), header("X-Service-Signature", "forged")},
			"headers[0]":       {header("X-A", "a\r\nX-B: b")},
			"headers[0].value": {{Name: "X-B"}},
			"headers":          slices.Repeat([]webhooks.HeaderChange{header("X-A", "a")}, webhooks.MaxHeaders+1),
		} {
			var wrong *invoice.FieldError
			if _, _, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://other.example/", Headers: headers}); !errors.As(err, &wrong) || wrong.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		if got := w.signing(t, "cafe"); got.URL != "https://cafe.example/" || len(got.Headers) != 1 || got.Headers[0].Value != "kept" {
			t.Errorf("after refusals the endpoint is %+v", got)
		}
	})
}

// TestHeadersStayAtTheirOrigin changes the URL. Stored values are only sent to the scheme, host and port that they were
// set for.
func TestHeadersStayAtTheirOrigin(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		const id, at = "cafe", "https://cafe.example/"
		put := func(url string, headers []webhooks.HeaderChange) error {
			_, _, err := w.Put(t.Context(), id, webhooks.Settings{URL: url, Headers: headers})
			return err
		}
		expect.OK(t, put(at, []webhooks.HeaderChange{header("Authorization", "Bearer of-the-gateway"), header("X-Tenant", "cafe")}))
		for _, url := range []string{"https://other.example/", "http://10.0.0.1/", "https://cafe.example:8443/", "https://cafe.example./", "https://a.cafe.example/"} {
			for _, c := range []struct {
				headers     []webhooks.HeaderChange
				field, text string
			}{
				{nil, "headers", "give their values again, or [] to remove them"},
				{[]webhooks.HeaderChange{header("X-Tenant", "bar"), {Name: "authorization"}}, "headers[1].value", `give the value of "authorization" again`},
			} {
				var wrong *invoice.FieldError
				if err := put(url, c.headers); !errors.As(err, &wrong) || wrong.Field != c.field || !strings.Contains(wrong.Detail, c.text) {
					t.Errorf("%s: %v, want %s %s", url, err, c.field, c.text)
				}
			}
			if got := w.signing(t, id); got.URL != at || len(got.Headers) != 2 {
				t.Errorf("after %s was refused, the endpoint is %s with %d headers", url, got.URL, len(got.Headers))
			}
		}
		for _, url := range []string{"https://CAFE.example:443/path?v=1", at} {
			if err := put(url, nil); err != nil {
				t.Errorf("%s: %v", url, err)
			}
			if err := put(url, []webhooks.HeaderChange{{Name: "Authorization"}, {Name: "X-Tenant"}}); err != nil || len(w.signing(t, id).Headers) != 2 {
				t.Errorf("%s keeps the headers: %v", url, err)
			}
		}
		expect.OK(t, put("https://other.example/", []webhooks.HeaderChange{header("Authorization", "Bearer other")}))
		if got := w.signing(t, id).Headers; len(got) != 1 || got[0].Value != "Bearer other" {
			t.Errorf("with values given again the headers are %v", got)
		}
		if err := put("https://third.example/", []webhooks.HeaderChange{}); err != nil || len(w.signing(t, id).Headers) != 0 {
			t.Errorf("headers removed with the move: %v", err)
		}
		if err := put(at, nil); err != nil {
			t.Errorf("a move without headers: %v", err)
		}
	})
}

// TestHeadersOfAnEndpointMadeMeanwhile has two requests create an endpoint at the same time. The one that keeps the
// headers must not send the other's headers to its host.
func TestHeadersOfAnEndpointMadeMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		for i := range 20 {
			id := fmt.Sprint("cafe", i)
			var both sync.WaitGroup
			both.Go(func() {
				if _, _, err := w.Put(t.Context(), id, webhooks.Settings{URL: "https://cafe.example/", Headers: []webhooks.HeaderChange{header("X-A", "cafe's")}}); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				var wrong *invoice.FieldError
				if _, _, err := w.Put(t.Context(), id, webhooks.Settings{URL: "https://other.example/"}); err != nil && !errors.As(err, &wrong) {
					t.Error(err)
				}
			})
			both.Wait()
			if got := w.signing(t, id); got.URL != "https://cafe.example/" && len(got.Headers) > 0 {
				t.Fatalf("%s gets the headers of another host", got.URL)
			}
		}
	})
}

// TestHeadersAreSealed expects no value in the database, in the audit log or in a view, and the headers resealed under
// a new master key.
func TestHeadersAreSealed(t *testing.T) {
	for name, url := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := url(t)
			store := dbtest.Open(t, at)
			old, newer := keyringtest.Key(t), keyringtest.Key(t)
			w := &endpointWorld{db: store, now: time.Unix(start, 0)}
			expect.OK(t, w.openWith(t, access.NewKeyring(old)))
			v, _, err := w.Put(t.Context(), "cafe", webhooks.Settings{URL: "https://cafe.example/", Headers: []webhooks.HeaderChange{header("X-Api-Key", "open-sesame")}})
			if err != nil || !slices.Equal(v.Headers, []string{"X-Api-Key"}) {
				t.Fatalf("%+v, %v", v, err)
			}
			var sealed, key string
			row := dbtest.SQL(t, at).QueryRowContext(t.Context(), "SELECT sealed, key_id FROM endpoint_headers WHERE merchant_id = 'cafe'")
			if err := row.Scan(&sealed, &key); err != nil || key != old.ID {
				t.Fatalf("under %s, %v", key, err)
			}
			if raw, err := base64.StdEncoding.DecodeString(sealed); err != nil || strings.Contains(string(raw), "sesame") {
				t.Errorf("stored %q, %v", raw, err)
			}
			entries, err := access.NewReader(store).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionEndpointUpdate, Limit: 9})
			if err != nil || len(entries) != 1 || !strings.Contains(entries[0].After, `"headers":["X-Api-Key"]`) || strings.Contains(entries[0].After, "sesame") {
				t.Errorf("the log has %+v, %v", entries, err)
			}
			if n, err := webhooks.Reseal(t.Context(), store, access.NewKeyring(newer, old), time.Now); err != nil || n != 2 {
				t.Fatalf("resealed %d, %v; want the secret and the headers", n, err)
			}
			expect.OK(t, w.openWith(t, access.NewKeyring(newer)))
			if got := w.signing(t, "cafe").Headers; len(got) != 1 || got[0].Value != "open-sesame" {
				t.Errorf("with the new key the headers are %v", got)
			}
		})
	}
}
