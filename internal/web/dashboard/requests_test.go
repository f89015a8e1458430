package dashboard_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
)

// TestRequests shows people the requests of programs of their merchant only: all, those of one key, and refused ones.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, support, stranger := w.person("acme", access.Admin), w.person("acme", access.Support), w.person("globex", access.Admin)
	w.invoice("acme", member{"reference": "order-1"})
	owner.api("GET", "/api/payments?limit=1", nil, nil)
	if status, text := owner.ask("GET", "/api/payments?limit=0", nil); status != 400 {
		t.Fatalf("limit=0 is answered %d %s", status, text)
	}
	w.await("the requests", func() bool {
		return strings.Contains(owner.get("/dashboard/requests").words(), "limit must be an integer")
	})
	list := support.get("/dashboard/requests").want(t, 200, "GET /api/payments", "400", "limit must be an integer", "invalid_field", "req_", "127.0.0.1")
	if strings.Contains(list.body, "limit=0") || strings.Contains(list.body, owner.key) {
		t.Errorf("the page shows a query or a key:\n%s", list.words())
	}
	if slices.ContainsFunc(list.links(), func(a string) bool { return strings.HasPrefix(a, "/dashboard/keys/") }) {
		t.Error("a support person has a link to a key")
	}
	failed := owner.submit(owner.get("/dashboard/requests"), "/dashboard/requests", url.Values{"status": {"failed"}, "keyId": {owner.id}}).want(t, 200, "limit must be an integer")
	if strings.Count(failed.words(), "GET /api/payments") != 1 {
		t.Errorf("the refused requests are\n%s", failed.words())
	}
	owner.get("/dashboard/keys/"+owner.id).want(t, 200, "GET /api/payments", "All Sign-in link")
	stranger.get("/dashboard/requests").want(t, 200, "Nothing was found")
	stranger.get("/dashboard/requests?keyId="+owner.id).want(t, 200, "Nothing was found")
	stranger.get("/dashboard/requests?merchantId=acme").want(t, 200, "Nothing was found")
	support.get("/dashboard/requests?status=teapot").want(t, 400, "Status ")
	w.await("the create without an Idempotency-Key", func() bool {
		return strings.Contains(w.operator.get("/dashboard/requests").words(), "No Idempotency-Key")
	})
	w.operator.get("/dashboard/requests").want(t, 200, "POST /api/invoices", "Some requests created something without the header")
}
