package dashboard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/server"
)

// TestQuarantine: a real hook quarantines two payments. The merchant sees why, and only the operator decides.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"verdict":"quarantine","reason":"<b>list A</b>"}`) // a lost answer is asked for again
	}))
	t.Cleanup(hook.Close)
	w := newWorld(t, func(c *server.Config) {
		c.Screening = &server.Screening{URL: hook.URL, Secret: "whsec_c2NyZWVuaW5nIHNjcmVlbmluZw", Patience: time.Minute}
	})
	finance := w.person("acme", access.Finance)
	for _, decision := range []string{"released", "rejected"} {
		made := w.invoice("acme", nil)
		hash := w.transfer(w.read(made.ID).TransferAmount)
		var found apitypes.PaymentList
		w.await("quarantined payment of "+hash, func() bool {
			w.operator.api("GET", "/api/payments?include=pending&txHash="+hash, nil, &found)
			return len(found.Payments) == 1 && found.Payments[0].Screening == apitypes.ScreeningQuarantined
		})
		id := found.Payments[0].ID
		if p := found.Payments[0]; p.Status != apitypes.PaymentPending || p.ScreeningReason != "<b>list A</b>" {
			t.Errorf("the payment is %+v", p)
		}
		finance.get("/dashboard/payments/"+id).want(t, http.StatusOK, "Held back, the operator decides", "<b>list A</b>", "Pending")
		finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
		page := w.operator.get("/dashboard/inbox?kind=quarantined").want(t, http.StatusOK, "Quarantined", "held it back: <b>list A</b>", "Neither can be undone")
		w.operator.decide(page, "dismissed", "No").want(t, http.StatusConflict, "must be released or rejected")
		w.operator.decide(page, decision, "Asked the payer").want(t, http.StatusOK, strings.ToUpper(decision[:1])+decision[1:], "Asked the payer")
		w.operator.get("/dashboard/inbox?kind=quarantined").want(t, http.StatusOK, "Nothing needs a decision.")
		if decision == "released" {
			w.await("paid invoice", func() bool { return w.read(made.ID).Status == "paid" })
			continue
		}
		finance.get("/dashboard/inbox").want(t, http.StatusOK, "No invoice", "Refund…")
		finance.get("/dashboard/payments/"+id).want(t, http.StatusOK, "Rejected by the operator")
		if got := w.read(made.ID); got.Status != "open" || got.AmountPaid != "0" {
			t.Errorf("the invoice is %+v", got)
		}
	}
}
