package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/webhook"
)

// TestKeys makes a person and a key, replaces it, and revokes it.
func TestKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.person("acme", access.Admin)
	made := owner.submit(owner.get("/dashboard/keys/new?for=person"), "/dashboard/keys", url.Values{"name": {"Nadia <b>"}, "role": {"support"}}).
		want(t, 200, "shown only now", "Nadia <b>", "qk_test_", "/dashboard/sign-in?link=ql_")
	owner.get("/dashboard/keys").want(t, 200, "Nadia <b>", "Support", "you")
	form := owner.get("/dashboard/keys/new?for=program")
	owner.submit(form, "/dashboard/keys", url.Values{"name": {"once"}}).want(t, 200, "qk_test_")
	owner.submit(form, "/dashboard/keys", url.Values{"name": {"once"}}).want(t, 409, "This form was sent before")
	link := made.Links()[slices.IndexFunc(made.Links(), func(a string) bool { return strings.Contains(a, "link=ql_") })]
	nadia := w.guest()
	nadia.submit(nadia.get(strings.TrimPrefix(link, w.url)), "/dashboard/sign-in", nil).want(t, 200)
	nadia.get("/dashboard/events").want(t, 200)
	nadia.get("/dashboard/keys").want(t, 403, "Your key does not allow this")
	if slices.ContainsFunc(nadia.get("/dashboard/events").Links(), func(a string) bool { return strings.HasPrefix(a, "/dashboard/keys") }) {
		t.Error("a support person has a link to the keys")
	}

	program := owner.submit(owner.get("/dashboard/keys/new?for=program"), "/dashboard/keys", url.Values{"name": {"shop"}, "scope": {"invoices:read"}, "lifetime": {"86400"}}).want(t, 200, "qk_test_")
	if strings.Contains(program.body, "ql_") {
		t.Error("a program has a link that signs in")
	}
	var page string
	for _, a := range owner.get("/dashboard/keys").Named("a") {
		if a.Words() == "shop" {
			page = a.Attrs["href"]
		}
	}
	owner.submit(owner.get(page).want(t, 200, "invoices:read"), page+"/rotate", url.Values{"overlap": {"3600"}}).want(t, 200, "qk_test_", "before the old key ends")
	shown := owner.get(page).want(t, 200, "being replaced")
	if slices.Contains(shown.Actions(), page+"/rotate") {
		t.Error("a key that was replaced can be replaced again")
	}
	owner.submit(shown, page+"/revoke", nil).want(t, 200, "Revoked")
	if again := owner.get(page).want(t, 200, "Revoked"); slices.Contains(again.Actions(), page+"/revoke") {
		t.Error("a key that was revoked can be revoked again")
	}
	owner.submit(owner.get("/dashboard/keys/new?for=program"), "/dashboard/keys", url.Values{"name": {""}}).want(t, 400, "Name must")
	stranger := w.person("globex", access.Admin)
	stranger.get(page).want(t, 404)
	stranger.post(page+"/revoke", nil).want(t, 404)
	stranger.post(page+"/link", nil).want(t, 404)

	owner.post("/dashboard/keys/"+owner.id+"/revoke", nil).want(t, 200, "Sign in")
	owner.get("/dashboard/keys").want(t, 200, "Sign in")
}

// harmless are the routes with a form that need no fresh sign-in, and the reason. Money moves only by a
// wallet's signature, or to addresses that a fresh sign-in has allowed.
var harmless = map[string]string{
	"/dashboard/language":                                          "of the session",
	"/dashboard/sign-out":                                          "ends access",
	"/dashboard/sessions/{id}/end":                                 "ends access",
	"/dashboard/confirm":                                           "is the fresh sign-in",
	"/dashboard/confirm/passkey":                                   "is the fresh sign-in",
	"/dashboard/passkeys/confirm":                                  "is the fresh sign-in",
	"/dashboard/filters/save":                                      "of the person",
	"/dashboard/filters/remove":                                    "of the person",
	"/dashboard/invoices/new":                                      "payers have not seen it",
	"/dashboard/invoices/{id}/edit":                                "payers have not seen a draft",
	"/dashboard/invoices/{id}/finalize":                            "creates an invoice",
	"/dashboard/invoices/{id}/void":                                "payers can be sent another",
	"/dashboard/invoices/{id}/delete":                              "payers have not seen a draft",
	"/dashboard/invoices/{id}/send":                                "limits bound the mails, and the customer can stop them",
	"/dashboard/invoices/{id}/reminders/drop":                      "sends less",
	"/dashboard/inbox/decide":                                      "can be undone",
	"/dashboard/inbox/decisions/{id}/undo":                         "undoes",
	"/dashboard/payments/{id}/refund":                              "needs one for a typed address; a wallet signs it",
	"/dashboard/refunds/{id}/cancel":                               "needs one while it waits for an approval",
	"/dashboard/refunds/{id}/submissions":                          "a wallet signs it",
	"/dashboard/refunds/{id}/submissions/{submission}/transaction": "a wallet has signed it",
	"/dashboard/refunds/{id}/submissions/{submission}/withdraw":    "nothing is sent",
	"/dashboard/links/new":                                         "needs one for an address that it names",
	"/dashboard/links/{id}/archive":                                "nobody pays it any more",
	"/dashboard/settings":                                          "texts that payers see",
	"/dashboard/settings/logo":                                     "payers see it",
	"/dashboard/settings/logo/remove":                              "payers see it",
	"/dashboard/webhook/ping":                                      "goes to the endpoint",
	"/dashboard/events/redeliver":                                  "goes to the endpoint",
	"/dashboard/events/{id}/redeliver":                             "goes to the endpoint",
	"/dashboard/operator/audit/verify":                             "reads",
	"/dashboard/scenarios":                                         "only at quittance dev",
}

// TestFreshSignIn waits a while after the sign-in: all changes but the harmless ones then need the key
// again, and are not made.
func TestFreshSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, table := w.person("acme", access.Admin), newRouteTable()
	w.forgetConfirmations()
	for _, pattern := range table.patterns() {
		path, isForm := strings.CutPrefix(pattern, "POST ")
		if _, ok := harmless[path]; !isForm || ok || table.routes[pattern].Credential == webpage.NoCredential {
			continue
		}
		path = strings.NewReplacer("{id}", owner.id, "{chainKey}", "house").Replace(path)
		for _, p := range []*person{owner, w.operator} {
			if got := p.post(path, url.Values{"name": {"x"}, "role": {"owner"}, "url": {"https://evil.example/"}}); got.status != http.StatusForbidden {
				got.want(t, http.StatusOK, "Is it still you?")
			}
		}
	}
	asked := owner.get("/dashboard/keys/new?for=program").want(t, 200, "Is it still you?")
	owner.submit(asked, "/dashboard/confirm", url.Values{"key": {owner.key}}).want(t, 200, "Create a key")
	if page := owner.get("/dashboard/webhook"); strings.Contains(page.body, "evil.example") {
		t.Error("the endpoint was changed without a fresh sign-in")
	}
}

// TestEvents filters events, shows attempts, and redelivers failed ones.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, support, reader := w.person("acme", access.Admin), w.person("acme", access.Support), w.person("acme", access.Read)
	w.receiver.status <- http.StatusGone
	created := w.invoice("acme", member{"reference": "<script>alert(1)</script>"}).Invoice.ID
	w.await("a failed attempt", func() bool {
		return strings.Contains(owner.get("/dashboard/events?invoiceId="+created+"&type=invoice.created").Words(), "invoice.created")
	})
	list := support.get("/dashboard/events?type=invoice.created&invoiceId="+created).want(t, 200, "invoice.created")
	support.get("/dashboard/events?type=invoice.paid").want(t, 200, "Nothing was found")
	support.get("/dashboard/events?type=nonsense").want(t, 400, "Type ")
	page := list.Links()[slices.IndexFunc(list.Links(), func(a string) bool { return strings.HasPrefix(a, "/dashboard/events/evt_") })]
	w.await("an attempt", func() bool { return strings.Contains(support.get(page).Words(), "410") })
	support.get(page).want(t, 200, "invoice.created", "410", "curl 'http", "X-Service-Event: invoice.created", "X-Service-Delivery: dlv_")
	if got := support.get(page + "/json"); !strings.Contains(got.body, `"attempts"`) || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("the JSON is %s", got.body)
	}
	w.person("globex", access.Admin).get(page).want(t, 404)
	if slices.Contains(reader.get(page).Actions(), page+"/redeliver") {
		t.Error("who may only read has a button that sends again")
	}
	reader.post(page+"/redeliver", nil).want(t, 403)
	support.get("/dashboard/events/redeliver").want(t, 200)
	support.post("/dashboard/events/redeliver", nil).want(t, 200, "Sent again: ")
}

// TestWebhook sets the endpoint and its headers, and takes the steps of a rotation of its secret. What signs events
// meanwhile is proved by package webhooks, and by TestExtraRotateInBrowser.
func TestWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.person("acme", access.Admin)
	endpoint := w.receiver.URL
	secretOf := func(a answer) string {
		t.Helper()
		shown := a.Classed("secret")
		if len(shown) != 1 || !strings.HasPrefix(shown[0].Words(), "whsec_") {
			t.Fatalf("the page shows no secret:\n%s", a.Words())
		}
		return shown[0].Words()
	}
	owner.post("/dashboard/webhook", url.Values{"url": {endpoint}, "headers": {"X-Api-Key: open-sesame\r\n\r\nX-Tenant:cafe\r\n"}}).want(t, 200, endpoint, "X-Api-Key, X-Tenant")
	if page := owner.post("/dashboard/webhook", url.Values{"url": {endpoint}, "headers": {"X-Api-Key:"}}).want(t, 200, "X-Api-Key"); strings.Contains(page.body, "sesame") || strings.Contains(page.body, "X-Tenant") {
		t.Error("the page shows the value of a header, or one that was removed")
	}
	owner.post("/dashboard/webhook", url.Values{"url": {endpoint}, "headers": {"Host: evil.example"}}).want(t, 409, "must not be Host")
	refused := owner.post("/dashboard/webhook", url.Values{"url": {"https://other.example/"}, "headers": {"X-Api-Key:\r\nX-Own: typed"}, "event": {"payment.unattributed"}}).want(t, 409, `give the value of "X-Api-Key" again`)
	if !strings.Contains(refused.body, "X-Own: typed") || !strings.Contains(refused.body, `value="payment.unattributed" checked`) {
		t.Errorf("what was typed is lost:\n%s", refused.body)
	}
	secretOf(owner.post("/dashboard/webhook/secret", nil).want(t, 200, "shown only now", "signed with both"))
	owner.post("/dashboard/webhook/secret", nil).want(t, 409, "There is a new secret already")
	owner.post("/dashboard/webhook/secret/promote", nil).want(t, 200, "Active", "Retiring")
	dropped := secretOf(owner.post("/dashboard/webhook/secret", nil))
	if page := owner.post("/dashboard/webhook/secret/drop", nil).want(t, 200, "Create a secret"); strings.Contains(page.body, dropped) {
		t.Error("a secret is shown twice")
	}
	owner.post("/dashboard/webhook/ping", nil).want(t, 200, "The endpoint took it", "200")
	support := w.person("acme", access.Support)
	if actions := support.get("/dashboard/webhook").want(t, 200, endpoint).Actions(); slices.Contains(actions, "/dashboard/webhook") {
		t.Error("support can change the endpoint")
	}
	support.post("/dashboard/webhook/secret", nil).want(t, 403)
	w.operator.get("/dashboard/webhook").want(t, 200, "Merchant")
	w.operator.get("/dashboard/webhook?merchantId=acme").want(t, 200, endpoint)
}

// signedWith reports whether a delivery has a signature by a secret.
func signedWith(t *testing.T, secret string, h http.Header, body []byte) bool {
	t.Helper()
	at, err := strconv.ParseInt(h.Get(webhook.HeaderStandardTimestamp), 10, 64)
	expect.NoError(t, err)
	want := webhook.SignStandard([]string{secret}, h.Get(webhook.HeaderStandardID), time.Unix(at, 0), body)
	return slices.Contains(strings.Fields(h.Get(webhook.HeaderStandardSignature)), want)
}

// forgetConfirmations makes every session need its key again.
func (w *world) forgetConfirmations() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	for _, merchant := range []string{"acme", "globex", "initech", ""} {
		all, err := access.Sessions(ctx, w.store, access.SessionFilter{MerchantID: merchant, Limit: 100})
		expect.OK(w.t, err)
		for _, s := range all {
			expect.OK(w.t, access.ConfirmSession(ctx, w.store, s.ID, w.now().Add(-access.ConfirmedFor)))
		}
	}
}

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
		return strings.Contains(owner.get("/dashboard/requests").Words(), "limit must be an integer")
	})
	list := support.get("/dashboard/requests").want(t, 200, "GET /api/payments", "400", "limit must be an integer", "invalid_field", "req_", "127.0.0.1")
	if strings.Contains(list.body, "limit=0") || strings.Contains(list.body, owner.key) {
		t.Errorf("the page shows a query or a key:\n%s", list.Words())
	}
	if slices.ContainsFunc(list.Links(), func(a string) bool { return strings.HasPrefix(a, "/dashboard/keys/") }) {
		t.Error("a support person has a link to a key")
	}
	failed := owner.submit(owner.get("/dashboard/requests"), "/dashboard/requests", url.Values{"status": {"failed"}, "keyId": {owner.id}}).want(t, 200, "limit must be an integer")
	if strings.Count(failed.Words(), "GET /api/payments") != 1 {
		t.Errorf("the refused requests are\n%s", failed.Words())
	}
	owner.get("/dashboard/keys/"+owner.id).want(t, 200, "GET /api/payments", "All Sign-in link")
	stranger.get("/dashboard/requests").want(t, 200, "Nothing was found")
	stranger.get("/dashboard/requests?keyId="+owner.id).want(t, 200, "Nothing was found")
	stranger.get("/dashboard/requests?merchantId=acme").want(t, 404)
	support.get("/dashboard/requests?status=teapot").want(t, 400, "Status ")
	w.await("the create without an Idempotency-Key", func() bool {
		return strings.Contains(w.operator.get("/dashboard/requests").Words(), "No Idempotency-Key")
	})
	w.operator.get("/dashboard/requests").want(t, 200, "POST /api/invoices", "Some requests created something without the header")
}
