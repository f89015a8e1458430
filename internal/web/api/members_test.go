package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestIntegrationMisspelt misspells keys, currencies and members, and expects errors that name the mistake.
func TestIntegrationMisspelt(t *testing.T) {
	local, _ := chain.Lookup(chain.Local)
	store := dbtest.Open(t, dbtest.SQLite(t))
	s := newIntegration(t, store, local)
	post := func(body string, header ...string) (status int, field, detail, ignored string) {
		w := do(s.handler, "POST", "/api/invoices", body, header...)
		if w.Code == http.StatusCreated {
			return w.Code, "", "", w.Header().Get("Quittance-Ignored-Members")
		}
		p := decode[problem](t, w, http.StatusBadRequest)
		return w.Code, p.Field, p.Detail, w.Header().Get("Quittance-Ignored-Members")
	}
	const noDefault = "merchantAddress is required: the merchant has no default address on this chain."
	strict := []string{"Prefer", `respond-async, handling="strict"; foo=1`}
	for name, test := range map[string]struct {
		body          string
		header        []string
		field, detail string // of the error; none if field is empty
	}{
		"chain":        {request("merchantAddress", "", "chainKey", `"bases"`), nil, "chainKey", `chainKey is "bases", which is not a chain of this service; did you mean base?`},
		"other chain":  {request("merchantAddress", "", "chainKey", `"ethereum"`), nil, "chainKey", `chainKey is "ethereum", which is not a chain of this service; want base, local.`},
		"currency":     {request("merchantAddress", "", "currency", `"usdc"`), nil, "currency", `currency is "usdc", which is not a currency of the chain base; did you mean USDC?`},
		"address":      {request("merchantAddress", ""), nil, "merchantAddress", noDefault},
		"member":       {strings.Replace(request(), "merchantAddress", "merchantAdress", 1), nil, "merchantAddress", noDefault + ` Ignored because they are unknown: "merchantAdress" (did you mean merchantAddress?).`},
		"strange":      {strings.Replace(request(), `"merchantAddress"`, `"ÄÖ\n"`, 1), nil, "merchantAddress", noDefault + ` Ignored because they are unknown: "\u00c4\u00d6\n".`},
		"other member": {strings.Replace(request(), `"amount"`, `"customer":{"mail":"a@b.example"},"amount"`, 1), nil, "", ""},
		"strict":       {strings.Replace(request(), `"merchantId"`, `"referencee":"7","merchantId"`, 1), strict, "referencee", "referencee is not a member of this request; did you mean reference?"},
		"strict below": {strings.Replace(request(), `"label"`, `"lable":"x","label"`, 1), strict, "lineItems[0].lable", "lineItems[0].lable is not a member of this request; did you mean lineItems[0].label?"},
		"strict, fine": {strings.Replace(request(), `"merchantId"`, `"metadata":{"any":"x"},"merchantId"`, 1), strict, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, field, detail, _ := post(test.body, test.header...)
			if field != test.field || detail != test.detail {
				t.Errorf("answered %d %s: %s", status, field, detail)
			}
		})
	}
	if _, _, _, ignored := post(strings.Replace(request(), `"merchantId"`, `"referencee":"7","merchantId"`, 1)); ignored != `"referencee" (did you mean reference?)` {
		t.Errorf("ignored %s", ignored)
	}
	w := do(s.handler, "POST", "/api/invoices", request(), strict...)
	if got := w.Header().Get("Preference-Applied"); got != "handling=strict" || w.Code != http.StatusCreated {
		t.Errorf("answered %d, preference %q", w.Code, got)
	}
}
