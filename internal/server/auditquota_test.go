package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// TestAuditQuotaOfRoutes makes the request of each route with which a merchant's key can make a
// change: for a merchant that has used up its audit entries, and for another one. If the request
// writes an entry for the second, it is refused for the first. Revoking a key is always allowed,
// because it takes access away.
func TestAuditQuotaOfRoutes(t *testing.T) {
	t.Parallel()
	table, _ := testTable(t)
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMatrixWorld(t, database(t))
			for _, merchant := range []string{"acme", "globex"} { // which the routes drop
				w.decode(w.call("POST /api/merchants/{id}/webhook/secret", merchant, "", w.key(merchant, access.Admin)), nil)
			}
			w.setAuditQuota("acme", 1)
			var writes, refused []string
			for _, r := range table {
				if r.Credential != webpage.KeyCredential || strings.HasPrefix(r.Pattern, "GET ") {
					continue
				}
				before := w.auditSeq()
				if a := w.call(r.Pattern, "globex", "", w.key("globex", access.Admin)); a.status >= http.StatusInternalServerError {
					t.Errorf("%s: %d %s", r.Pattern, a.status, a.body)
				}
				between := w.auditSeq()
				a := w.call(r.Pattern, "acme", "", w.key("acme", access.Admin))
				if between > before {
					writes = append(writes, r.Pattern)
				}
				if a.status == http.StatusTooManyRequests {
					refused = append(refused, r.Pattern)
				}
				if wrote := w.auditSeq() > between; wrote && r.Pattern != "DELETE /api/keys/{id}" {
					t.Errorf("%s writes an entry beyond the quota, and answers %d", r.Pattern, a.status)
				}
			}
			const ends = "DELETE /api/keys/{id}"
			for _, pattern := range writes {
				if pattern != ends && !slices.Contains(refused, pattern) {
					t.Errorf("%s writes an entry, and is not refused beyond the quota", pattern)
				}
			}
			if len(writes) < 12 || !slices.Contains(writes, ends) {
				t.Errorf("only these write entries: %q", writes)
			}
		})
	}
}

func (w *matrixWorld) setAuditQuota(merchantID string, bytes int64) {
	w.t.Helper()
	expect.OK(w.t, w.store.Update(w.t.Context(), func(tx *db.Tx) error {
		return access.SetQuotas(context.WithoutCancel(w.t.Context()), tx, merchantID, bytes, 0)
	}))
}

// auditSeq returns the number of the newest entry of the audit log.
func (w *matrixWorld) auditSeq() int64 {
	w.t.Helper()
	head, err := access.NewReader(w.store).AuditHead(w.t.Context())
	expect.OK(w.t, err)
	return head.Seq
}

// TestInventedTokensAreLimited presents invented cookies and sign-in links from one client address, a
// new one each time. Beyond the limit they are refused without a database read. Another client's are
// not refused. They share the limit with wrong keys.
func TestInventedTokensAreLimited(t *testing.T) {
	t.Parallel()
	cfg, now := behindProxy(), time.Now()
	cfg.Access, cfg.Now = Access{Mode: access.Live}, func() time.Time { return now } // no token comes back
	base := startServer(t, cfg).url
	invented := func(prefix string, i int) string { return fmt.Sprintf("%s_%052d", prefix, i) }
	for client, send := range map[string]func(i int, client string) int{
		"203.0.113.1": func(i int, client string) int {
			return ask(t, "GET", base+"/dashboard", "", fromClient(client), func(r *http.Request) {
				r.AddCookie(&http.Cookie{Name: "quittance", Value: invented("qs", i)})
			}).status
		},
		"203.0.113.2": func(i int, client string) int {
			form := url.Values{"link": {invented("ql", i)}}.Encode()
			return ask(t, "POST", base+"/dashboard/sign-in", form, fromClient(client), func(r *http.Request) {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}).status
		},
	} {
		for i := range maxLookups {
			if status := send(i, client); status == http.StatusTooManyRequests {
				t.Fatalf("%s: token %d of %d is refused", client, i, maxLookups)
			}
		}
		if status := send(maxLookups, client); status != http.StatusTooManyRequests {
			t.Errorf("%s: beyond the limit the answer is %d", client, status)
		}
		if status := send(maxLookups, "198.51.100.1"); status == http.StatusTooManyRequests {
			t.Error("another client is refused")
		}
	}
}
