package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// decide sends the form of an item. The inbox must show exactly one.
func (p *person) decide(page answer, decision, reason string) answer {
	p.t.Helper()
	return p.submit(page, "/dashboard/inbox/decide", url.Values{"decision": {decision}, "reason": {reason}})
}

// TestInboxDismiss decides about a payment as two people at the same time. The second sees who
// decided; the decision can be undone, and is never deleted.
func TestInboxDismiss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", nil)
	odd := w.payment("4700000")
	first, second := w.person("acme", access.Finance), w.person("acme", access.Admin)
	seen := first.get("/dashboard/inbox").want(t, http.StatusOK, "No invoice", "4.70 USDC", "0.20 USDC too little", "Dismissing moves no money")
	stale := second.get("/dashboard/inbox?kind=unattributed").want(t, http.StatusOK, "4.70 USDC")
	first.decide(seen, "dismissed", "<i>Our own</i> transfer").want(t, http.StatusOK, "Dismissed", "<i>Our own</i> transfer", "maria")
	first.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")

	second.decide(stale, "dismissed", "Spam").want(t, http.StatusConflict, "maria has dismissed this at", "<i>Our own</i> transfer")
	path := "/dashboard/payments/" + odd.ID
	second.get(path+"/attribute?invoiceId="+made.ID).want(t, http.StatusOK, "Dismissed · maria", "Undo")
	support := w.person("acme", access.Support)
	decisions := support.get("/dashboard/inbox/decisions").want(t, http.StatusOK, "Dismissed")
	if acts := decisions.actions(); strings.Contains(strings.Join(acts, " "), "undo") {
		t.Errorf("support may %v", acts)
	}
	decisions = second.get("/dashboard/inbox/decisions")
	undo := ""
	for _, act := range decisions.actions() {
		if strings.HasSuffix(act, "/undo") {
			undo = act
		}
	}
	support.post(undo, nil).want(t, http.StatusForbidden)
	w.person("globex", access.Admin).post(undo, nil).want(t, http.StatusNotFound)
	second.post(undo, nil).want(t, http.StatusOK, "4.70 USDC")
	second.get("/dashboard/inbox/decisions").want(t, http.StatusOK, "Dismissed", "Undone by maria")

	w.attribute(odd.ID, made.ID)
	second.decide(stale, "dismissed", "Spam").want(t, http.StatusConflict, "belongs to the invoice "+made.ID, "maria attributed it at")

	var log apitypes.AuditList
	w.operator.api("GET", "/api/audit?merchantId=acme&limit=200", nil, &log)
	var actions []string
	for _, e := range log.Entries {
		actions = append(actions, e.Action)
	}
	if all := strings.Join(actions, " "); strings.Count(all, "inbox.decide") != 1 || strings.Count(all, "inbox.undo") != 1 {
		t.Errorf("the audit log has %s", all)
	}
}

// TestPaymentOfLostInvoice shows in the inbox and on the payment's page that its invoice was lost with the database.
func TestPaymentOfLostInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invoice("acme", nil)
	p, id := w.payment("4700000"), invoice.Hash{0x77}
	expect.OK(t, w.store.Update(t.Context(), func(tx *db.Tx) error {
		return ledger.InsertLostAddresses(t.Context(), tx, house, map[invoice.Address]invoice.Hash{acmePays: id})
	}))
	finance := w.person("acme", access.Finance)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "The invoice was lost when a backup")
	finance.get("/dashboard/payments/"+p.ID).want(t, http.StatusOK, "The invoice was lost when a backup", id.String())
}

// TestInboxExceptions shows invoices with exceptions. A decision covers only the exceptions that
// existed when it was made.
func TestInboxExceptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finance := w.person("acme", access.Finance)
	paid := w.paid(nil)
	tx := w.payment("4900000")
	w.attribute(tx.ID, paid.ID)
	page := finance.get("/dashboard/inbox?kind=duplicate").want(t, http.StatusOK, "Paid twice", "More came after the invoice was paid", "Refund…")
	finance.decide(page, "accepted", "No").want(t, http.StatusConflict, "dismissed")
	finance.decide(page, "dismissed", "").want(t, http.StatusConflict, "Reason ")
	finance.decide(page, "dismissed", "The customer wants credit").want(t, http.StatusOK, "The customer wants credit")
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
	again := w.payment("5000000")
	w.attribute(again.ID, paid.ID)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Paid twice")
	finance.get("/dashboard/inbox?kind=lost").want(t, http.StatusBadRequest, "Kind ")
	w.operator.get("/dashboard/inbox?merchantId=acme").want(t, http.StatusOK, "Paid twice")
	w.person("globex", access.Admin).get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
}

// TestInboxRefundWithoutPayment drops a payment by a reorg, but not its refund. The inbox shows the
// refund with another payment of that account, until the payment is mined again.
func TestInboxRefundWithoutPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finance := w.person("acme", access.Finance)
	w.paid(member{"amount": "1000000"})
	made := w.invoice("acme", nil)
	amount := expect.Must(invoice.ParseAmount(w.read(made.ID).TransferAmount))
	paid := chaintest.NewTx(chaintest.Transfer(houseToken, payer, acmePays, amount))
	back := chaintest.NewTx(chaintest.Transfer(houseToken, acmePays, payer, amount))
	at := func(status apitypes.RefundStatus) func() bool {
		return func() bool {
			var list apitypes.RefundList
			w.operator.api("GET", "/api/refunds?txHash="+invoice.Hash(back.Hash).String(), nil, &list)
			return len(list.Refunds) == 1 && list.Refunds[0].Status == status
		}
	}
	w.chain.MineAt(w.chain.Head().Time+1, paid, back)
	w.await("pending refund", at(apitypes.RefundPending))
	w.chain.Fork(1)
	w.chain.MineAt(w.chain.Head().Time+2, back)
	w.chain.MineAt(w.chain.Head().Time + 1)
	w.await("confirmed refund", at(apitypes.RefundConfirmed))
	page := finance.get("/dashboard/inbox?kind=refund_without_payment").want(t, http.StatusOK, "Refund without payment", "never came", "The dropped payment", "Other payments")
	w.person("globex", access.Admin).get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
	finance.decide(page, "accepted", "No").want(t, http.StatusConflict, "dismissed")
	finance.decide(page, "dismissed", "Paid in cash").want(t, http.StatusOK, "Paid in cash", "Refund without payment")

	var list apitypes.DecisionList
	w.operator.api("GET", "/api/inbox/decisions?merchantId=acme", nil, &list)
	undo := "/dashboard/inbox/decisions/" + list.Decisions[0].ID + "/undo"
	w.payment(amount.String()) // the customer pays again
	finance.post(undo, nil).want(t, http.StatusOK, "Refund without payment", "Same amount")
	w.chain.MineAt(w.chain.Head().Time+1, paid)
	w.await("payment that is back", func() bool { return !strings.Contains(finance.get("/dashboard/inbox").body, "Refund without payment") })
}

// TestInboxUnderpaid waives the missing amount of an invoice, which stays expired.
func TestInboxUnderpaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finance := w.person("acme", access.Finance)
	made := w.invoice("acme", nil)
	part := w.payment("4700000")
	w.attribute(part.ID, made.ID)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.") // the rest may come
	w.chain.MineAt(made.Invoice.ExpiresAt + 1)
	w.chain.MineAt(made.Invoice.ExpiresAt + 2)
	w.await("expired invoice", func() bool { return w.read(made.ID).Status == "expired" })
	late := w.payment("500000")
	w.attribute(late.ID, made.ID)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Late")
	w.chain.MineAt(w.chain.Head().Time+1, chaintest.NewTx(chaintest.Transfer(houseToken, acmePays, payer, invoice.NewAmount(500_000))))
	w.chain.MineAt(w.chain.Head().Time + 1)
	w.await("refund of what came late", func() bool { return strings.Contains(finance.get("/dashboard/inbox").body, "Too little") })
	page := finance.get("/dashboard/inbox").want(t, http.StatusOK, "Too little", "0.20 USDC is missing", "Accepting waives what is missing")
	finance.decide(page, "accepted", "A good customer").want(t, http.StatusOK, "Difference waived", "A good customer")
	shown := finance.get("/dashboard/invoices/"+made.ID).want(t, http.StatusOK, "Difference waived · maria", "A good customer", "Payment attributed · maria")
	w.guest().get("/checkout/"+made.ID).want(t, http.StatusOK, "Accepted as paid", "accepted 0.20 USDC less")
	undo := "/dashboard/inbox/decisions/" + w.decided(made.ID) + "/undo"
	shown = finance.submit(shown, undo, nil).want(t, http.StatusOK, "Decision undone · maria", "Accepting waives what is missing", "Refund…")
	w.guest().get("/checkout/"+made.ID).want(t, http.StatusOK, "Expired: paid in part")
	shown = finance.decide(shown, "accepted", "A very good customer").want(t, http.StatusOK, "Difference waived · maria", "A very good customer")
	if want := "/dashboard/invoices/" + made.ID; shown.path != want {
		t.Errorf("a decision on the invoice's page leads to %s", shown.path)
	}
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
	if got := w.read(made.ID).Status; got != "expired" {
		t.Errorf("the invoice became %s", got)
	}
}

// decided returns the id of the newest decision about an object.
func (w *world) decided(objectID string) string {
	w.t.Helper()
	var list apitypes.DecisionList
	w.operator.api("GET", "/api/inbox/decisions?objectId="+objectID, nil, &list)
	if len(list.Decisions) == 0 {
		w.t.Fatalf("nothing was decided about %s", objectID)
	}
	return list.Decisions[0].ID
}

// TestInboxInNavigation counts the items that need a decision on every page, for people who may see them.
func TestInboxInNavigation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria, globex := w.person("acme", access.Finance), w.person("globex", access.Finance)
	maria.get("/dashboard/invoices").want(t, http.StatusOK, "Inbox Approvals Payments")
	w.invoice("acme", nil)
	w.payment("4700000")
	w.payment("4600000")
	for _, path := range []string{"/dashboard", "/dashboard/inbox", "/dashboard/invoices", "/dashboard/statement", "/dashboard/invoices/new"} {
		maria.get(path).want(t, http.StatusOK, "Inbox 2 Approvals Payments")
	}
	maria.get("/dashboard/invoices/inv_none").want(t, http.StatusNotFound, "Inbox Approvals Payments") // the database may fail
	w.operator.get("/dashboard/invoices?merchantId=acme").want(t, http.StatusOK, "Inbox 2 Approvals Payments")
	globex.get("/dashboard/invoices").want(t, http.StatusOK, "Inbox Approvals Payments")
	blind := w.person("acme", access.NewScopes(access.InvoicesRead))
	if words := blind.get("/dashboard/invoices").want(t, http.StatusOK).words(); strings.Contains(words, "Inbox") {
		t.Errorf("a person who may not see payments sees\n%s", words)
	}
}
