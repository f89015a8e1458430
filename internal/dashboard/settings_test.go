package dashboard_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// TestSettings changes a merchant's profile by the operator, and its addresses by its owner.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", apitypes.CreateMerchantRequest{ID: "initech", Name: "Initech"}, nil)
	const path, addresses = "/dashboard/settings", "/dashboard/settings/addresses"
	operator := "?merchantId=initech"
	w.operator.get(path).want(t, 200, "initech")
	page := w.operator.get(path+operator).want(t, 200)
	w.operator.submit(page, path+operator, url.Values{"name": {"<b>Initech</b>"}, "returnHosts": {"shop.example\r\n\r\n"}, "statement": {"One\r\nTwo"}}).want(t, 200, "Every address is allowed")
	refused := w.operator.submit(page, path+operator, url.Values{"color": {"green"}, "supportContact": {"typed"}}).want(t, 400, "color")
	if !strings.Contains(refused.body, "typed") {
		t.Error("what was typed is lost")
	}
	owner := w.person("initech", access.Admin)
	page = owner.get(path).want(t, 200, "<b>Initech</b>", "shop.example", "The operator of the service changes this")
	if slices.Contains(page.actions(), path) {
		t.Error("an owner has the form of the profile")
	}
	owner.post(path, url.Values{"name": {"x"}}).want(t, 403)
	line := house + " " + acmePays.String()
	owner.submit(page, addresses, url.Values{"allowedAddresses": {line}}).want(t, 200, acmePays.String())
	owner.submit(owner.get(path), addresses, url.Values{"allowedAddresses": {line + "\n" + house + " " + payer.String()}}).want(t, 200, "Takes effect", "0xAA00000000000000000000000000000000000001")
	owner.submit(owner.get(path), addresses, url.Values{"allowedAddresses": {house + " 0x12"}}).want(t, 400, "allowedAddresses[0].address")
	owner.post(addresses, url.Values{"allowedAddresses": {line}, "immediately": {"true"}}).want(t, 403)
	w.forgetConfirmations()
	owner.post(addresses, url.Values{"allowedAddresses": {house + " " + payer.String()}}).want(t, 200, "Is it still you?")
	reader := w.person("initech", access.Read)
	if actions := reader.get(path).want(t, 200, acmePays.String()).actions(); slices.Contains(actions, addresses) {
		t.Error("who may only read has the form of the addresses")
	}
	reader.post(addresses, nil).want(t, 403)
	w.person("globex", access.Admin).get(path+operator).want(t, 200, "globex")
}
