package webhooks_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestAudit expects each change of an endpoint to be recorded, without secrets, and refused changes not to be recorded.
func TestAudit(t *testing.T) {
	each(t, func(t *testing.T, w *endpointWorld) {
		const id = "cafe"
		ctx := access.WithPrincipal(t.Context(), access.Principal{KeyID: "key_1", MerchantID: id, Scopes: access.Admin})
		var secrets []string
		ok := func(secret string, err error) {
			t.Helper()
			expect.OK(t, err)
			if secret != "" {
				secrets = append(secrets, secret)
			}
		}
		_, secret, err := w.Put(ctx, id, webhooks.Settings{URL: "https://cafe.example/a?token=hidden"})
		ok(secret, err)
		_, secret, err = w.Put(ctx, id, webhooks.Settings{URL: "https://cafe.example/b"})
		ok(secret, err)
		_, secret, err = w.Stage(ctx, id)
		ok(secret, err)
		if _, _, err := w.Stage(ctx, id); !errors.Is(err, webhooks.ErrStaged) {
			t.Errorf("stage twice: %v", err)
		}
		ok("", w.Unstage(ctx, id))
		_, secret, err = w.Stage(ctx, id)
		ok(secret, err)
		_, err = w.Promote(ctx, id)
		ok("", err)

		entries, err := access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{MerchantID: id, Limit: 99})
		ok("", err)
		const (
			a         = `{"url":"https://cafe.example/a?…","secrets":[{"version":1,"state":"active"}]}`
			b         = `{"url":"https://cafe.example/b","secrets":[{"version":1,"state":"active"}]}`
			bStaged   = `{"url":"https://cafe.example/b","secrets":[{"version":2,"state":"staged"},{"version":1,"state":"active"}]}`
			bPromoted = `{"url":"https://cafe.example/b","secrets":[{"version":2,"state":"active"},{"version":1,"state":"retiring"}]}`
		)
		want := [][3]string{
			{"endpoint.secret.promote", bStaged, bPromoted}, {"endpoint.secret.stage", b, bStaged}, {"endpoint.secret.drop", bStaged, b},
			{"endpoint.secret.stage", b, bStaged}, {"endpoint.update", a, b}, {"endpoint.update", "", a},
		}
		var got [][3]string
		for _, e := range entries {
			got = append(got, [3]string{string(e.Action), e.Before, e.After})
			if e.Actor != "key_1" || e.Object != id || e.At.Unix() != start {
				t.Errorf("entry %+v", e)
			}
			for _, secret := range append(secrets, "hidden") {
				if strings.Contains(e.Before+e.After, secret) {
					t.Errorf("entry %d shows a secret: %+v", e.Seq, e)
				}
			}
		}
		expect.NoDiff(t, cmp.Diff(want, got), "the log")
		if _, err := access.VerifyAudit(t.Context(), w.db); err != nil {
			t.Error(err)
		}
	})
}
