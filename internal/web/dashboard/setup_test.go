package dashboard_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestSetup sets up a service without merchants, by the link that quittance setup prints, until an invoice is paid.
func TestSetup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) { c.Merchants = server.Merchants{} })
	if !strings.Contains(w.log.String(), "quittance setup") {
		t.Error("the service does not name quittance setup")
	}
	link, err := w.keys.SetupLink(t.Context())
	expect.OK(t, err)
	const path = "/dashboard/operator/setup"
	op := w.guest()
	page := op.get("/dashboard/sign-in?" + url.Values{"link": {link.Token}, "next": {path}}.Encode())
	page = op.submit(page, "/dashboard/sign-in", nil).want(t, 200, "house Up to date", "1 of 1 nodes work.", "publicUrl is missing", "Merchant To do", "Webhook endpoint Waiting", "First invoice Waiting")
	if page.path != path {
		t.Fatalf("the link leads to %s", page.path)
	}
	w.guest().submit(w.guest().get("/dashboard/sign-in?link="+link.Token), "/dashboard/sign-in", nil).want(t, 401)

	shop := url.Values{"id": {"shop"}, "name": {"Shop"}, "address": {acmePays.String()}}
	op.submit(page, path, url.Values{"id": {"a shop"}, "name": {"Shop"}}).want(t, 400, "Id must be")
	op.submit(page, path, url.Values{"id": {"shop"}, "name": {"Shop"}, "address": {"0x12"}}).want(t, 400, "Merchant To do")
	op.submit(page, path, shop).want(t, 200, "Merchant Done", "Webhook endpoint To do", "Key for the shop’s program To do", "First invoice To do")

	w.operator.api("PUT", "/api/merchants/shop/webhook", map[string]string{"url": w.receiver.URL}, nil)
	form := op.get("/dashboard/keys/new?for=program&merchantId=shop")
	op.submit(form, "/dashboard/keys?merchantId=shop", url.Values{"name": {"backend"}, "scope": access.Standard.Names()}).want(t, 200, "qk_")
	w.forward(25 * time.Hour) // what was made in the session does not end with it
	var keys apitypes.KeyList
	w.operator.api("GET", "/api/keys?merchantId=shop", nil, &keys)
	if len(keys.Keys) != 1 || keys.Keys[0].ExpiresAt != 0 || keys.Keys[0].State != string(access.Active) {
		t.Errorf("the shop's keys are %+v", keys.Keys)
	}
	op = w.named("", "maria", access.Admin)
	var made apitypes.CreateInvoiceResponse
	w.operator.api("POST", "/api/invoices", member{"merchantId": "shop", "amount": "4900000", "currency": "USDC", "chainKey": house, "expiresAt": w.now().Unix() + 3600}, &made)
	open := op.get(path).want(t, 200, "Key for the shop’s program Done", "First invoice Waiting", "4.90")
	if !strings.Contains(open.body, w.url+"/checkout/"+made.ID) {
		t.Error("the page has no link to the invoice's checkout page")
	}
	w.payment(w.read(made.ID).TransferAmount)
	w.await("the end of the setup", func() bool { return strings.Contains(op.get(path).words(), "All steps are done.") })
	if got := w.guest().get("/docs/guides/go-live"); got.status != 200 {
		t.Errorf("the checklist answers %d", got.status)
	}
}
