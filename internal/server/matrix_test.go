package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// matrixRow is the request that TestMatrix makes of a route, and the status for a key of the merchant
// acme with only the route's scope.
type matrixRow struct {
	query  string
	body   string // {expires}, {scope}, {address} and {invoice} are replaced; {merchant} by "" or by a member merchantId
	status int
}

// matrix has a row for each route that wants a key. A route without {id} in its path takes
// merchantId, in the query or in the body.
var matrix = map[string]matrixRow{
	"POST /api/invoices": {body: `{"merchantAddress":"{address}","amount":"1000000","currency":"USDC","chainKey":"house","expiresAt":{expires}{merchant}}`, status: 201},
	"GET /api/invoices":  {status: 200}, "GET /api/invoices/{id}": {status: 200},
	"PATCH /api/invoices/{id}": {body: `{"metadata":{"a":"b"}}`, status: 200}, "DELETE /api/invoices/{id}": {status: 409}, // it is open
	"POST /api/invoices/{id}/finalize": {status: 200}, "POST /api/invoices/{id}/void": {status: 200},
	"GET /api/invoices/{id}/mails": {status: 200}, "POST /api/invoices/{id}/mails": {body: `{"email":"a@example.com"}`, status: 409}, // without a mail server
	"DELETE /api/invoices/{id}/mails": {status: 409},
	"GET /api/invoices/{id}/payments": {status: 200}, "GET /api/invoices/{id}/timeline": {status: 200},
	"GET /api/payments": {query: "include=pending,unattributed", status: 200}, "GET /api/payments/{id}": {status: 200},
	"POST /api/payments/{id}/attribution": {body: `{"invoiceId":"{invoice}","by":"maria"}`, status: 409}, // a refund of it is prepared
	"GET /api/claims":                     {status: 200},
	"GET /api/inbox":                      {status: 200},
	"GET /api/inbox/counts":               {status: 200},
	"GET /api/inbox/decisions":            {status: 200},
	"POST /api/customers/erase":           {body: `{"customer":"c-77"{merchant}}`, status: 200},
	"POST /api/inbox/decisions":           {body: `{"kind":"late","objectId":"{invoice}","version":"x","decision":"dismissed","reason":"x"{merchant}}`, status: 409}, // it needs no decision
	"POST /api/inbox/decisions/{id}/undo": {status: 200},
	"POST /api/payment-links":             {body: `{"title":"Coffee","amount":"1000000","currency":"USDC","chainKey":"house","merchantAddress":"{address}"{merchant}}`, status: 201},
	"GET /api/payment-links":              {status: 200}, "GET /api/payment-links/{id}": {status: 200},
	"PATCH /api/payment-links/{id}": {body: `{"title":"Tea"}`, status: 200},
	"GET /api/events":               {status: 200}, "GET /api/events/{id}": {status: 200},
	"GET /api/customers":              {status: 200},
	"GET /api/reports/invoices":       {status: 200},
	"GET /api/reports/statement":      {query: "month=" + time.Now().UTC().Format("2006-01"), status: 200},
	"GET /api/reports/settlement":     {query: "from=0&to=86400", status: 200},
	"GET /api/reports/summary":        {query: "from=" + time.Now().UTC().Format(time.DateOnly), status: 200},
	"GET /api/events/stream":          {status: 200},
	"POST /api/payments/{id}/refunds": {body: `{"amount":"1"}`, status: 201}, "GET /api/payments/{id}/refunds": {status: 200},
	"GET /api/refunds": {status: 200}, "GET /api/refunds/{id}": {status: 200},
	"POST /api/refunds/{id}/cancel":                              {status: 200},
	"POST /api/refunds/{id}/approve":                             {body: `{"to":"0x00000000000000000000000000000000000000AA"}`, status: 409}, // it awaits no approval
	"POST /api/refunds/{id}/submissions":                         {body: `{}`, status: 409},                                                  // it is submitted
	"PUT /api/refunds/{id}/submissions/{submissionId}":           {body: `{"txHash":"0x0100000000000000000000000000000000000000000000000000000000000000"}`, status: 200},
	"POST /api/refunds/{id}/submissions/{submissionId}/withdraw": {status: 409}, // its transaction may be on its way
	"POST /api/events/redeliver":                                 {body: `{"failedOnly":true{merchant}}`, status: 200},
	"POST /api/events/{id}/redeliver":                            {status: 409}, // it is pending
	"GET /api/audit":                                             {status: 200},
	"GET /api/approvals":                                         {status: 200}, "GET /api/approvals/{id}": {status: 200},
	"GET /api/operator/status": {status: 403}, "GET /api/operator/merchants": {status: 403}, // only for the operator
	"POST /api/operator/mails/report": {body: "x", status: 403},
	"POST /api/operator/audit/verify": {body: `{}`, status: 403}, "POST /api/operator/chains/{chainKey}/rescan": {body: `{"from":0}`, status: 403}, "POST /api/operator/chains/{chainKey}/resume": {status: 403},
	"GET /api/requests":          {status: 200},
	"POST /api/keys":             {body: `{"name":"x","scopes":["{scope}"]{merchant}}`, status: 201},
	"GET /api/keys":              {status: 200},
	"POST /api/sign-in-links":    {body: `{}`, status: 201},
	"POST /api/keys/{id}/rotate": {body: `{}`, status: 201}, "DELETE /api/keys/{id}": {status: 204},
	"GET /api/merchants": {status: 200}, "POST /api/merchants": {body: `{"id":"initech"{merchant}}`, status: 403}, // only for the operator
	"GET /api/merchants/{id}": {status: 200}, "PATCH /api/merchants/{id}": {body: `{"name":"Shop"}`, status: 409},
	"GET /api/merchants/{id}/logo": {status: 404},                                                               // it has no logo
	"PUT /api/merchants/{id}/logo": {body: `{}`, status: 409}, "DELETE /api/merchants/{id}/logo": {status: 409}, // it is set in the configuration
	"DELETE /api/merchants/{id}/addresses/{address}": {status: 403}, // only for the operator
	"GET /api/merchants/{id}/webhook":                {status: 200}, "PUT /api/merchants/{id}/webhook": {body: `{"url":"http://127.0.0.1:1/"}`, status: 200},
	"GET /x402/supported": {status: 200}, "POST /x402/verify": {body: x402Body, status: 200}, "POST /x402/settle": {body: x402Body, status: 200},
	"POST /api/merchants/{id}/webhook/ping":           {status: 200},
	"POST /api/merchants/{id}/webhook/secret":         {status: 201},
	"DELETE /api/merchants/{id}/webhook/secret":       {status: 204},
	"POST /api/merchants/{id}/webhook/secret/promote": {status: 409}, // no secret is staged
}

// x402Body is a payment to the merchant's address on a chain that takes no x402 payments.
const x402Body = `{"x402Version":2,"paymentRequirements":` + x402Terms + `,"paymentPayload":{"x402Version":2,"accepted":` + x402Terms + `,"payload":{"signature":"0x00",
	"authorization":{"from":"0x0000000000000000000000000000000000000009","to":"{address}","value":"1","validAfter":"0","validBefore":"{expires}",
	"nonce":"0x0000000000000000000000000000000000000000000000000000000000000001"}}}}`

const x402Terms = `{"scheme":"exact","network":"eip155:7","amount":"1","asset":"{token}","payTo":"{address}","maxTimeoutSeconds":60}`

// matrixWorld is a service with the merchants acme and globex, which have an object of each kind.
type matrixWorld struct {
	log   logtest.Buffer
	t     *testing.T
	url   string
	store *db.DB
	keys  *access.KeyManager
	past  *access.KeyManager           // creates keys as of two hours ago
	ids   map[string]map[string]string // of objects, by merchant and first part of the path
	made  map[access.Principal]string  // headers with keys, by merchant and scopes
}

func newMatrixWorld(t *testing.T, database string) *matrixWorld {
	t.Helper()
	text, err := access.NewMasterKey(rand.Reader)
	expect.OK(t, err)
	master := expect.Must(access.ParseMasterKey(text))
	chain, _ := scripted(t, "house", 7)
	merchants := Merchants{Configured: map[string]access.MerchantSettings{"acme": {}, "globex": {}}}
	w := &matrixWorld{t: t, ids: make(map[string]map[string]string), made: make(map[access.Principal]string)}
	w.url = startServer(t, Config{
		Database: database, Chains: []Chain{chain}, Merchants: merchants, Keyring: access.NewKeyring(master), WebhookAllow: webhooks.Loopback(),
		Access: Access{Mode: access.Live}, Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}).url
	await(t, w.url, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Confirmed > 0 })
	w.store = dbtest.Open(t, database)
	manager := func(now func() time.Time) *access.KeyManager {
		return access.NewKeyManager(access.KeyManagerConfig{Store: w.store, Mode: access.Live, Known: func(string) bool { return true }, Now: now, Rand: rand.Reader})
	}
	w.keys, w.past = manager(time.Now), manager(func() time.Time { return time.Now().Add(-2 * time.Hour) })
	for n, merchant := range []string{"acme", "globex"} {
		w.fill(merchant, byte(0x11*(n+1)))
	}
	w.ids["unknown"] = map[string]string{
		"invoices": "inv_06gzm3qz9dvav7zw89t2fgt6g8", "payments": "pay_n2n7pq8xacvckv9v6qs5bxznfg", "refunds": "ref_n2n7pq8xacvckv9v6qs5bxznfg", "events": "evt_06gzm3qz9dvav7zw89t2fgt6g8",
		"keys": "key_06gzm3qz9dvav7zw89t2fgt6g8", "merchants": "nobody", "payment-links": "lnk_06gzm3qz9dvav7zw89t2fgt6g8", "inbox": "dec_06gzm3qz9dvav7zw89t2fgt6g8",
		"approvals": "apr_06gzm3qz9dvav7zw89t2fgt6g8",
		"submitted": "ref_n2n7pq8xacvckv9v6qs5bxznfg", "submission": "sub_06gzm3qz9dvav7zw89t2fgt6g8",
	}
	w.ids["NUL"], w.ids["not UTF-8"] = make(map[string]string), make(map[string]string) // texts that no database takes
	for kind, id := range w.ids["unknown"] {
		w.ids["NUL"][kind], w.ids["not UTF-8"][kind] = id+"%00", id+"%ff"
	}
	return w
}

// fill gives a merchant an object of each kind.
func (w *matrixWorld) fill(merchant string, n byte) {
	w.t.Helper()
	var to invoice.Address
	for i := range to {
		to[i] = n
	}
	ids := map[string]string{"merchants": merchant, "address": to.String()}
	w.ids[merchant] = ids
	admin := w.key(merchant, access.Admin)
	var made struct{ ID string }
	w.decode(w.call("POST /api/invoices", merchant, "", admin), &made)
	w.decode(w.call("PUT /api/merchants/{id}/webhook", merchant, "", admin), nil)
	var events struct {
		Events []struct{ Event struct{ ID string } }
	}
	w.decode(w.call("GET /api/events", merchant, "", admin), &events)
	payment := ledger.PaymentRow{SeenID: "seen_" + merchant, Payment: invoice.Payment{
		ID: invoice.TransferID(invoice.PrefixPayment, merchant, invoice.Hash{}, 0), Status: invoice.Confirmed, ObservedAt: time.Unix(100, 0), ConfirmedAt: time.Unix(100, 0),
		Transfer: invoice.Transfer{
			ChainKey: "house", TxHash: invoice.Hash{n}, Position: invoice.Position{BlockNumber: 1, BlockHash: invoice.Hash{1}, BlockTime: time.Unix(100, 0)},
			Token: testToken, Currency: "USDC", From: invoice.Address{9}, To: to, Amount: invoice.NewAmount(1_000_000),
		},
	}}
	decision := invoice.Decision{
		ID: fmt.Sprintf("dec_%026d", n), MerchantID: merchant, Kind: invoice.ItemUnattributed, ObjectID: payment.ID, Version: "of another time",
		Outcome: invoice.Dismissed, Reason: "test", By: "maria", At: time.Now(),
	}
	approval := access.Approval{
		ID: fmt.Sprintf("apr_%026d", n), MerchantID: merchant, Kind: access.OfPolicy, Subject: "{}", Hash: fmt.Sprintf("%064d", n), State: access.ApprovalRequested,
		People: 2, RequestedBy: "maria", RequestedAt: time.Now(), ExpiresAt: time.Now().Add(access.ApprovalLifetime),
	}
	expect.OK(w.t, w.store.Update(w.t.Context(), func(tx *db.Tx) error {
		if err := ledger.SavePayments(context.WithoutCancel(w.t.Context()), tx, []ledger.PaymentRow{payment}); err != nil {
			return err
		}
		if err := ledger.InsertDecision(context.WithoutCancel(w.t.Context()), tx, decision); err != nil {
			return err
		}
		return access.InsertApproval(context.WithoutCancel(w.t.Context()), tx, approval)
	}))
	ids["inbox"], ids["approvals"] = decision.ID, approval.ID
	ids["invoices"], ids["payments"], ids["events"] = made.ID, payment.ID, events.Events[0].Event.ID
	var prepared struct{ Refund struct{ ID string } }
	w.decode(w.call("POST /api/payments/{id}/refunds", merchant, "", admin), &prepared)
	ids["refunds"] = prepared.Refund.ID
	w.decode(w.call("POST /api/payments/{id}/refunds", merchant, "", admin), &prepared)
	ids["submitted"] = prepared.Refund.ID
	var submitted struct{ Submission struct{ ID string } }
	w.decode(w.call("POST /api/refunds/{id}/submissions", merchant, "", admin), &submitted)
	ids["submission"] = submitted.Submission.ID
	var link struct{ Link struct{ ID string } }
	w.decode(w.call("POST /api/payment-links", merchant, "", admin), &link)
	ids["payment-links"] = link.Link.ID
	ids["keys"] = w.record(merchant, access.NewScopes(access.KeysWrite)).ID
}

// record creates a key of the merchant, and returns its record.
func (w *matrixWorld) record(merchant string, scopes access.Scopes) access.Record {
	w.t.Helper()
	r, _, err := w.keys.Create(w.t.Context(), access.Open(), access.KeyRequest{Name: "of " + merchant, MerchantID: merchant, Scopes: scopes})
	expect.OK(w.t, err)
	return r
}

// key returns the header Authorization with a key of the merchant.
func (w *matrixWorld) key(merchant string, scopes access.Scopes) string {
	w.t.Helper()
	of := access.Principal{MerchantID: merchant, Scopes: scopes}
	if w.made[of] != "" {
		return w.made[of]
	}
	_, k, err := w.keys.Create(w.t.Context(), access.Open(), access.KeyRequest{Name: "test", MerchantID: merchant, Scopes: scopes})
	expect.OK(w.t, err)
	w.made[of] = "Bearer " + k.Reveal()
	return w.made[of]
}

// call makes the request of a route's row about the objects of a merchant. named is the merchantId in
// the request, or empty. change may change the request.
func (w *matrixWorld) call(pattern, merchant, named, authorization string, change ...func(*http.Request)) answer {
	w.t.Helper()
	row, ids := matrix[pattern], w.ids[merchant]
	method, path, _ := strings.Cut(pattern, " ")
	if strings.Contains(path, "/submissions") {
		path = strings.Replace(path, "{id}", ids["submitted"], 1)
	}
	path = strings.Replace(path, "{submissionId}", ids["submission"], 1)
	path = strings.Replace(path, "{id}", ids[strings.Split(path, "/")[2]], 1)
	path = strings.Replace(path, "{address}", w.ids["acme"]["address"], 1)
	query, member := row.query, ""
	if named != "" && row.body == "" {
		query += "&merchantId=" + named
	} else if named != "" {
		member = fmt.Sprintf(`,"merchantId":%q`, named)
	}
	body := strings.NewReplacer("{merchant}", member, "{expires}", fmt.Sprint(time.Now().Unix()+3600), "{address}", ids["address"],
		"{invoice}", ids["invoices"], "{scope}", string(access.KeysWrite), "{token}", testToken.String()).Replace(row.body)
	return ask(w.t, method, w.url+path+"?"+query, body, append(change, func(r *http.Request) {
		if authorization != "" {
			r.Header.Add("Authorization", authorization)
		}
	})...)
}

// decode decodes the body of an answer that must be a success.
func (w *matrixWorld) decode(a answer, dst any) {
	w.t.Helper()
	if a.status >= 300 {
		w.t.Fatalf("%d %s", a.status, a.body)
	}
	if dst == nil {
		return
	}
	expect.OK(w.t, json.Unmarshal([]byte(a.body), dst))
}

// credentials are the columns of the matrix: how to make the request of a route with each kind of
// credential, and how to check the answer.
var credentials = []struct {
	name  string
	check func(t *testing.T, w *matrixWorld, r webpage.Route)
}{
	{"no key", func(t *testing.T, w *matrixWorld, r webpage.Route) {
		w.wantUnauthorized(t, w.call(r.Pattern, "acme", "", ""), "has no key")
	}},
	{"malformed", checkMalformed},
	{"expired", func(t *testing.T, w *matrixWorld, r webpage.Route) {
		_, k, err := w.past.Create(t.Context(), access.Open(), access.KeyRequest{
			Name: "old", MerchantID: "acme", Scopes: access.Admin, ExpiresAt: time.Now().Add(-time.Hour),
		})
		expect.OK(t, err)
		w.wantUnauthorized(t, w.call(r.Pattern, "acme", "", "Bearer "+k.Reveal()), "has expired")
	}},
	{"revoked", func(t *testing.T, w *matrixWorld, r webpage.Route) {
		record, k, err := w.keys.Create(t.Context(), access.Open(), access.KeyRequest{Name: "bad", MerchantID: "acme", Scopes: access.Admin})
		expect.OK(t, err)
		expect.Success(t)(w.keys.Revoke(t.Context(), access.Open(), record.ID))
		w.wantUnauthorized(t, w.call(r.Pattern, "acme", "", "Bearer "+k.Reveal()), "was revoked")
	}},
	{"another merchant's", checkOtherMerchant},
	{"too little scope", func(t *testing.T, w *matrixWorld, r webpage.Route) {
		a := w.call(r.Pattern, "acme", "", w.key("acme", access.Admin&^access.NewScopes(r.Scope)))
		if a.status != http.StatusForbidden || a.code != "forbidden" || !strings.Contains(a.body, string(r.Scope)) {
			t.Errorf("answered %d %.300s, want 403 with %s", a.status, a.body, r.Scope)
		}
	}},
	{"right", func(t *testing.T, w *matrixWorld, r webpage.Route) {
		a := w.call(r.Pattern, "acme", "", w.key("acme", access.NewScopes(r.Scope)))
		if a.status != matrix[r.Pattern].status || strings.Contains(a.body, "globex") {
			t.Errorf("answered %d %.300s, want %d without globex", a.status, a.body, matrix[r.Pattern].status)
		}
	}},
}

// wantUnauthorized wants a 401 with a detail.
func (w *matrixWorld) wantUnauthorized(t *testing.T, a answer, detail string) {
	t.Helper()
	if a.status != http.StatusUnauthorized || a.code != "unauthorized" || !strings.Contains(a.body, detail) || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
		t.Errorf("answered %d %v %.300s, want 401 that says %q", a.status, a.header["Www-Authenticate"], a.body, detail)
	}
}

// checkMalformed sends credentials that are not accepted, some together with an accepted key.
func checkMalformed(t *testing.T, w *matrixWorld, r webpage.Route) {
	good := w.key("acme", access.Admin)
	unknown := expect.Must(access.NewKey(access.Live, rand.Reader))
	test := expect.Must(access.NewKey(access.Test, rand.Reader))
	for _, c := range []struct {
		authorization, detail string
		change                func(*http.Request)
	}{
		{"Bearer sesame", "does not have the form", nil},
		{"Bearer ", "does not have the form", nil},
		{"Bearer", "does not have the form", nil},
		{good[:20] + "00000" + good[25:], "wrong checksum", nil},
		{good + "0", "does not have the form", nil},
		{"Bearer " + unknown.Reveal(), "is not known here", nil},
		{"Bearer " + test.Reveal(), "is of another kind of service", nil},
		{"Basic " + good[len("Bearer "):], "must be Bearer", nil},
		{good[len("Bearer "):], "must be Bearer", nil},
		{good + "," + good, "does not have the form", nil},
		{"Bearer " + strings.Repeat("0", 8000), "longer than", nil},
		{good, "must occur once", func(r *http.Request) { r.Header.Add("Authorization", good) }},
		{"", "address of the request holds a key", func(r *http.Request) { r.URL.RawQuery += "&access_token=" + good[len("Bearer "):] }},
		{good, "address of the request holds a key", func(r *http.Request) { r.URL.RawQuery += "&key=" + good[len("Bearer "):] }},
	} {
		change := c.change
		if change == nil {
			change = func(*http.Request) {}
		}
		w.wantUnauthorized(t, w.call(r.Pattern, "acme", "", c.authorization, change), c.detail)
	}
}

// checkOtherMerchant has globex ask for objects of acme: the answers are the same as for objects that do not exist.
func checkOtherMerchant(t *testing.T, w *matrixWorld, r webpage.Route) {
	globex := w.key("globex", access.Admin)
	if r.Pattern == "POST /api/sign-in-links" {
		link := func(of string) answer {
			return ask(t, "POST", w.url+"/api/sign-in-links", fmt.Sprintf(`{"keyId":%q}`, w.ids[of]["keys"]), func(r *http.Request) { r.Header.Set("Authorization", globex) })
		}
		if got, missing := link("acme"), link("unknown"); got.status != http.StatusNotFound || anonymous(got) != anonymous(missing) {
			t.Errorf("answered %d %.300s; for an unknown key %d %.300s", got.status, got.body, missing.status, missing.body)
		}
		return
	}
	if strings.Contains(r.Pattern, "{id}") {
		got, missing := w.call(r.Pattern, "acme", "", globex), w.call(r.Pattern, "unknown", "", globex)
		if got.status != http.StatusNotFound || anonymous(got) != anonymous(missing) {
			t.Errorf("answered %d %.300s; for an unknown id %d %.300s", got.status, got.body, missing.status, missing.body)
		}
		for _, kind := range []string{"NUL", "not UTF-8"} {
			if bad := w.call(r.Pattern, kind, "", globex); anonymous(bad) != anonymous(missing) {
				t.Errorf("for an id that has %s it answered %d %.300s; for an unknown id %d %.300s", kind, bad.status, bad.body, missing.status, missing.body)
			}
		}
	} else {
		got := w.call(r.Pattern, "globex", "", globex)
		for kind, id := range w.ids["acme"] {
			if got.status >= 300 && matrix[r.Pattern].status < 300 || strings.Contains(got.body, id) && r.Pattern != "GET /api/requests" { // globex asked for objects of acme
				t.Errorf("answered %d with the %s of acme: %.300s", got.status, kind, got.body)
			}
		}
		named, missing := w.call(r.Pattern, "globex", "acme", globex), w.call(r.Pattern, "globex", "nobody", globex)
		status, code := http.StatusForbidden, "forbidden"
		switch {
		case matrix[r.Pattern].body == "" && !slices.Contains(r.Parameters, "merchantId"):
			status, code = http.StatusBadRequest, "invalid_field"
		case strings.HasPrefix(r.Pattern, "POST /x402/"): // they have no member merchantId
			status, code = http.StatusOK, ""
			if foreign := w.call(r.Pattern, "acme", "", globex); !strings.Contains(foreign.body, "invalid_payment_requirements") {
				t.Errorf("answered %.300s to a payment to acme", foreign.body)
			}
		}
		if named.status != status || named.code != code || anonymous(named) != anonymous(missing) {
			t.Errorf("with merchantId it answered %d %.300s; for an unknown merchant %d %.300s", named.status, named.body, missing.status, missing.body)
		}
	}
	if r.Pattern == "GET /api/requests" {
		checkOwnRequests(t, w, globex)
	}
	if r.Pattern == "POST /api/inbox/decisions" {
		checkOthersItem(t, w, r.Pattern, globex)
	}
	if r.Pattern == "POST /api/payments/{id}/attribution" { // of a payment of globex to an invoice of acme
		w.ids["mixed"] = map[string]string{"payments": w.ids["globex"]["payments"], "invoices": w.ids["acme"]["invoices"]}
		got := w.call(r.Pattern, "mixed", "", globex)
		w.ids["mixed"]["invoices"] = w.ids["unknown"]["invoices"]
		if missing := w.call(r.Pattern, "mixed", "", globex); got.status != http.StatusBadRequest || anonymous(got) != anonymous(missing) {
			t.Errorf("answered %d %.300s; for an unknown invoice %d %.300s", got.status, got.body, missing.status, missing.body)
		}
	}
}

// checkOwnRequests lists requests of globex, also by a key of acme.
func checkOwnRequests(t *testing.T, w *matrixWorld, globex string) {
	t.Helper()
	for _, query := range []string{"limit=200", "keyId=" + w.ids["acme"]["keys"]} {
		var list apitypes.RequestList
		w.decode(ask(t, "GET", w.url+"/api/requests?"+query, "", func(r *http.Request) { r.Header.Set("Authorization", globex) }), &list)
		for _, l := range list.Requests {
			if l.MerchantID != "globex" {
				t.Errorf("globex sees a request of %q: %+v", l.MerchantID, l)
			}
		}
	}
}

// checkOthersItem has globex decide about an invoice of acme.
func checkOthersItem(t *testing.T, w *matrixWorld, pattern, globex string) {
	t.Helper()
	got, missing := w.call(pattern, "acme", "", globex), w.call(pattern, "unknown", "", globex)
	if got.status != http.StatusNotFound || anonymous(got) != anonymous(missing) {
		t.Errorf("answered %d %.300s; for an unknown invoice %d %.300s", got.status, got.body, missing.status, missing.body)
	}
}

// anonymous returns an answer's status and body without the id of the request.
func anonymous(a answer) string {
	var body map[string]any
	if json.Unmarshal([]byte(a.body), &body) != nil {
		return a.body
	}
	delete(body, "requestId")
	return fmt.Sprint(a.status, body)
}

// TestMatrix makes a request of every route with every kind of credential, on both databases.
func TestMatrix(t *testing.T) {
	t.Parallel()
	table, _ := testTable(t)
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMatrixWorld(t, database(t))
			for _, r := range table {
				if r.Credential != webpage.KeyCredential {
					continue // TestRouteTable lists them
				}
				if matrix[r.Pattern].status == 0 {
					t.Errorf("%s has no row in the matrix", r.Pattern)
					continue
				}
				for _, c := range credentials {
					t.Run(strings.ReplaceAll(r.Pattern+" "+c.name, "/", "|"), func(t *testing.T) { c.check(t, w, r) })
				}
			}
			if found := access.Redact(w.log.String()); found != w.log.String() {
				t.Error("the log has a key")
			}
		})
	}
}
