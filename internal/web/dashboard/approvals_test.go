package dashboard_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

// votes presses a button of the page of a request for approval.
func (p *person) votes(page, vote string) answer {
	p.t.Helper()
	return p.submit(p.get(page), page+"/vote", url.Values{"vote": {vote}})
}

// TestApprovals asks for a large refund, has two people approve it, and carries it out once.
func TestApprovals(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	w := newWorld(t, withMails)
	key := w.person("acme", access.Admin)
	ada, bob := key.member(mails, "ada@example.com"), key.member(mails, "bob@example.com")
	paid := w.paid(member{"amount": "250000000"})
	payment := ada.refundable(paid.ID)

	const settings = "/dashboard/approvals"
	ada.submit(ada.get("/dashboard/settings"), settings, url.Values{"people": {"3"}, "refundsAbove": {"100"}}).want(t, http.StatusBadRequest, "at most as many as may approve")
	set := ada.submit(ada.get("/dashboard/settings"), settings, url.Values{"people": {"2"}, "refundsAbove": {"100.50"}}).want(t, http.StatusOK, "Approvals by several people")
	for _, form := range set.Forms() {
		if v := form.Values(); form.Attrs["action"] == settings && (v.Get("people") != "2" || v.Get("refundsAbove") != "100.50" && v.Get("refundsAbove") != "100.500000") {
			t.Errorf("the policy is %v", v)
		}
	}

	prepare := "/dashboard/payments/" + payment + "/refund"
	asked := ada.submit(ada.get(prepare), prepare, url.Values{"amount": {"200"}, "reason": {"returned"}}).want(t, http.StatusOK, "Refund", "200", "returned", "0 of 2 have approved", "Ada", "Approvals 1 Payments")
	page := asked.path
	if !strings.HasPrefix(page, "/dashboard/approvals/apr_") {
		t.Fatalf("the refund leads to %s", page)
	}
	status, text := key.ask("POST", "/api/payments/"+payment+"/refunds", apitypes.PrepareRefundRequest{Amount: "200000000", Reason: "returned"})
	var refused apitypes.Problem
	if err := json.Unmarshal(text, &refused); err != nil || status != http.StatusForbidden || refused.Code != apitypes.CodeApprovalRequired || !strings.HasSuffix(page, refused.ApprovalID) {
		t.Errorf("the same refund by the interface: %d %s, %v", status, text, err)
	}
	if key.get(page).want(t, http.StatusOK); len(key.get(page).Actions()) != len(key.get("/dashboard/approvals").Actions()) {
		t.Error("a session by a key can vote")
	}
	key.post(page+"/vote", url.Values{"vote": {"approve"}}).want(t, http.StatusForbidden)
	ada.votes(page, "approve").want(t, http.StatusOK, "1 of 2 have approved")
	ada.votes(page, "approve").want(t, http.StatusOK, "1 of 2 have approved", "Open")
	ada.post(page+"/use", nil).want(t, http.StatusConflict, "too few people have approved")
	bob.get("/dashboard/approvals").want(t, http.StatusOK, "Refund", "Open")
	w.person("globex", access.Admin).get(page).want(t, http.StatusNotFound)
	w.operator.post(page+"/use?merchantId=acme", nil).want(t, http.StatusForbidden)
	w.forgetConfirmations()
	bob.votes(page, "approve").want(t, http.StatusOK, "Sign in again")
	bob.confirms(mails, "bob@example.com")
	bob.votes(page, "approve").want(t, http.StatusOK, "2 of 2 have approved", "Carry it out")
	refund := bob.submit(bob.get(page), page+"/use", nil).want(t, http.StatusOK, "200", "returned")
	if !strings.HasPrefix(refund.path, "/dashboard/refunds/ref_") {
		t.Errorf("the approved refund leads to %s", refund.path)
	}
	bob.get(page).want(t, http.StatusOK, "Carried out")
	bob.post(page+"/use", nil).want(t, http.StatusConflict)
	bob.post(page+"/vote", url.Values{"vote": {"refuse"}}).want(t, http.StatusConflict, "This request has ended")
	ada.get("/dashboard/approvals").want(t, http.StatusOK, "Carried out")

	small := ada.submit(ada.get(prepare), prepare, url.Values{"amount": {"1"}}).want(t, http.StatusOK)
	if !strings.HasPrefix(small.path, "/dashboard/approvals/") {
		t.Errorf("a small refund of a payment with large refunds leads to %s", small.path)
	}
	ada.confirms(mails, "ada@example.com")
	ada.votes(small.path, "refuse").want(t, http.StatusOK, "Refused")

	policy := ada.submit(ada.get("/dashboard/settings"), settings, url.Values{"people": {"0"}}).want(t, http.StatusOK, "Rules of approvals", "0 of 2")
	for _, p := range []*person{ada, bob} {
		p.votes(policy.path, "approve").want(t, http.StatusOK)
	}
	invited := ada.submit(ada.get("/dashboard/keys/new?for=person"), "/dashboard/keys", url.Values{"name": {"Puppet"}, "email": {"sock@example.com"}, "role": {"finance"}})
	invited.want(t, http.StatusOK, "New person", "sock@example.com", "attribution:write")
	for _, p := range []*person{ada, bob} {
		p.votes(invited.path, "approve").want(t, http.StatusOK)
	}
	mails.broken.Store(true)
	form := ada.submit(ada.get(invited.path), invited.path+"/use", nil).want(t, http.StatusBadRequest, "The mail could not be sent")
	mails.broken.Store(false)
	ada.submit(form, "/dashboard/keys", nil).want(t, http.StatusOK, "sock@example.com")
	mails.page(t, "sock@example.com")
	ada.submit(ada.get(policy.path), policy.path+"/use", nil).want(t, http.StatusOK, "Approvals by several people")
	done := ada.submit(ada.get(prepare), prepare, url.Values{"amount": {"1"}}).want(t, http.StatusOK)
	if !strings.HasPrefix(done.path, "/dashboard/refunds/ref_") {
		t.Errorf("without a policy a refund leads to %s", done.path)
	}
}

// TestApprovedRequest: a program repeats its request, with the key of the first one, after people were mailed and have
// approved. It makes one refund.
func TestApprovedRequest(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	w := newWorld(t, withMails)
	key := w.person("acme", access.Admin)
	ada, bob := key.member(mails, "ada@example.com"), key.member(mails, "bob@example.com")
	bob.submit(bob.get("/dashboard"), "/dashboard/language", url.Values{"language": {"de"}}).want(t, http.StatusOK)
	ada.submit(ada.get("/dashboard/settings"), "/dashboard/approvals", url.Values{"people": {"2"}, "refundsAbove": {"100"}}).want(t, http.StatusOK)
	payment := ada.refundable(w.paid(member{"amount": "250000000"}).ID)
	c, err := client.New(key.url, client.WithKey(key.key), client.WithHTTPClient(key.Client))
	expect.OK(t, err)
	prepare := func(idempotencyKey string) (apitypes.RefundResponse, error) {
		return c.PrepareRefund(t.Context(), payment, apitypes.PrepareRefundRequest{Amount: "200000000"}, client.IdempotencyKey(idempotencyKey))
	}
	wanted := func(idempotencyKey string) string {
		t.Helper()
		_, err := prepare(idempotencyKey)
		refused := (*client.Error)(nil)
		if !errors.As(err, &refused) || refused.Code != apitypes.CodeApprovalRequired {
			t.Fatalf("a refund without approvals: %v", err)
		}
		return refused.ApprovalID
	}
	page := "/dashboard/approvals/" + wanted("first")
	for range 2 {
		got := <-mails.notices
		if !strings.Contains(got.Text, office+page+"?merchantId=acme") || strings.Contains(got.Text, "Jemand bittet") != (got.recipient == "bob@example.com") || strings.Contains(got.Text, "200") {
			t.Errorf("the notice to %s is %s", got.recipient, got.Text)
		}
	}
	for _, p := range []*person{ada, bob} {
		if wanted("first") != wanted("other") {
			t.Error("one action has two requests")
		}
		p.post(page+"/vote", url.Values{"vote": {"approve"}}).want(t, http.StatusOK)
	}
	made, err := prepare("first")
	if err != nil || made.Refund.Amount != "200000000" {
		t.Fatalf("the approved refund: %+v, %v", made, err)
	}
	if again, err := prepare("first"); err != nil || again.Refund.ID != made.Refund.ID {
		t.Errorf("the same request: %+v, %v", again, err)
	}
	if _, err := prepare("other"); err == nil {
		t.Error("an approval was used twice")
	}
	ada.get(page).want(t, http.StatusOK, "Carried out")
}

// TestApprovedActions carries out an approved attribution, change of addresses, and key.
func TestApprovedActions(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	w := newWorld(t, withMails)
	w.operator.api("POST", "/api/merchants", member{"id": "cafe", "name": "Cafe", "allowedAddresses": []member{{"chainKey": house, "address": acmePays.String()}}}, nil)
	key := w.person("cafe", access.Admin)
	ada, bob := key.member(mails, "ada@example.com"), key.member(mails, "bob@example.com")
	policy := url.Values{"people": {"2"}, "attributionsAbove": {"0"}, "addresses": {"true"}, "keys": {"true"}}
	ada.submit(ada.get("/dashboard/settings"), "/dashboard/approvals", policy).want(t, http.StatusOK, "Approvals by several people")
	approved := func(asked answer, texts ...string) answer {
		t.Helper()
		asked.want(t, http.StatusOK, append(texts, "0 of 2")...)
		for _, p := range []*person{ada, bob} {
			p.votes(asked.path, "approve").want(t, http.StatusOK)
		}
		return bob.submit(bob.get(asked.path), asked.path+"/use", nil)
	}

	made := w.invoice("cafe", nil)
	payment := w.payment("1234567")
	page := "/dashboard/payments/" + payment.ID
	form := ada.get(page + "/attribute?invoiceId=" + made.ID)
	approved(ada.submit(form, "/dashboard/inbox/decide", url.Values{"decision": {"attributed"}, "reason": {"by phone"}}), "Attribution by hand", "1.23", made.ID).want(t, http.StatusOK, made.ID)

	addresses := "/dashboard/settings/addresses"
	changed := ada.submit(ada.get("/dashboard/settings"), addresses, url.Values{"chainKey": {house, house}, "address": {acmePays.String(), payer.String()}})
	approved(changed, "Addresses", chain.Checksum(payer)).want(t, http.StatusOK, "Takes effect", chain.Checksum(payer))
	defaults := ada.submit(ada.get("/dashboard/settings"), "/dashboard/settings/defaults", url.Values{"chainKey": {house}, "address": {acmePays.String()}})
	approved(defaults, "Default settlement addresses").want(t, http.StatusOK, "Default settlement addresses")

	cleared := ada.submit(ada.get("/dashboard/settings"), "/dashboard/settings/defaults", url.Values{"chainKey": {house}, "address": {""}})
	approved(cleared, "Default settlement addresses − house").want(t, http.StatusOK)
	var cafe apitypes.MerchantResponse
	w.operator.api("GET", "/api/merchants/cafe", nil, &cafe)
	if m := cafe.Merchant; len(m.DefaultAddresses) > 0 && m.PendingDefaultAddresses == nil {
		t.Errorf("the default addresses are %v after they were cleared", m.DefaultAddresses)
	}

	program := ada.submit(ada.get("/dashboard/keys/new?for=program"), "/dashboard/keys", url.Values{"name": {"shop"}, "scope": {"invoices:write"}})
	approvedKey := func(asked answer, texts ...string) {
		t.Helper()
		asked.want(t, http.StatusOK, append(texts, "Key", "shop", "Receives the key Ada (per_")...)
		for _, p := range []*person{ada, bob} {
			p.votes(asked.path, "approve").want(t, http.StatusOK)
		}
		if page := bob.get(asked.path).want(t, http.StatusOK); strings.Contains(page.Words(), "Carry it out") {
			t.Error("somebody else may receive the key")
		}
		bob.post(asked.path+"/use", nil).want(t, http.StatusForbidden)
		ada.submit(ada.get(asked.path), asked.path+"/use", nil).want(t, http.StatusOK, "qk_test_")
	}
	approvedKey(program, "invoices:write")
	shop, _, err := w.keys.Create(t.Context(), access.Open(), access.KeyRequest{Name: "shop", MerchantID: "cafe", Scopes: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	rotation := "/dashboard/keys/" + shop.ID
	approvedKey(ada.submit(ada.get(rotation), rotation+"/rotate", url.Values{"overlap": {"3600"}}), shop.ID, "The old key stays valid for 1 hour")
}

// refundable returns the payment of an invoice.
func (p *person) refundable(invoiceID string) string {
	p.t.Helper()
	var found apitypes.PaymentList
	p.operator.api("GET", "/api/payments?invoiceId="+invoiceID, nil, &found)
	if len(found.Payments) != 1 {
		p.t.Fatalf("the invoice has %d payments", len(found.Payments))
	}
	return found.Payments[0].ID
}
