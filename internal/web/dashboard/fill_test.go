package dashboard_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// cafePays is the settlement address of the merchant cafe.
var cafePays = invoice.Address{0x22, 19: 2}

// filled is a world in which the merchant cafe has an object of each kind, in each state in which pages differ.
type filled struct {
	*world
	owner *person
	text  func(field string) string
}

// fill makes the merchant cafe with its objects. text returns the text that people and programs write
// into a field. Before that, the merchant has made sales on each of some days.
func fill(w *world, text func(field string) string, days int) *filled {
	w.t.Helper()
	f := &filled{world: w, text: text}
	profile := member{
		"id": "cafe", "name": text("merchant name"), "supportContact": text("support contact"), "statement": text("statement"),
		"defaultAddresses": member{house: cafePays.String()},
	}
	w.operator.api("POST", "/api/merchants", profile, nil)
	w.operator.upload("/dashboard/settings/logo?merchantId=cafe", "logo", newLogo(w.t)).want(w.t, http.StatusOK)
	w.operator.api("PUT", "/api/merchants/cafe/webhook", member{"url": w.receiver.URL + "/?" + url.QueryEscape(text("webhook URL"))}, nil)
	f.sales(days)
	f.owner = w.named("cafe", text("key name"), access.Admin)
	f.operatorsWork()
	f.invoices()
	f.transfers()
	f.decisions()
	f.deliveries()
	f.approvals()
	return f
}

// approvals makes a request for approval in each state in which pages differ.
func (f *filled) approvals() {
	f.t.Helper()
	err := f.store.Update(f.t.Context(), func(tx *db.Tx) error {
		for n, state := range []access.ApprovalState{access.ApprovalRequested, access.ApprovalRefused} {
			a := access.Approval{
				ID: fmt.Sprintf("apr_%026d", n), MerchantID: "cafe", Kind: access.OfMember, Subject: db.JSONText(member{"email": "maria@cafe.example", "name": f.text("person"), "scopes": access.Finance.String()}),
				Hash: fmt.Sprintf("%064d", n), State: state, People: 2, RequestedBy: f.text("key name"), RequestedAt: f.now(), ExpiresAt: f.now().Add(access.ApprovalLifetime),
			}
			if err := access.InsertApproval(f.t.Context(), tx, a); err != nil {
				return err
			}
		}
		return nil
	})
	expect.OK(f.t, err)
}

// bill creates an invoice of cafe with all texts.
func (f *filled) bill(amount string, more member) apitypes.CreateInvoiceResponse {
	f.t.Helper()
	body := member{
		"merchantAddress": cafePays.String(), "amount": amount, "reference": f.text("reference"), "description": f.text("description"),
		"metadata": member{f.text("metadata key"): f.text("metadata value")}, "returnUrl": "https://cafe.example/?" + url.QueryEscape(f.text("return URL")),
		"customer":  member{"id": f.text("customer id"), "email": "maria@cafe.example"},
		"lineItems": []member{{"label": f.text("line item"), "amount": amount}},
	}
	for name, value := range more {
		body[name] = value
	}
	return f.invoice("cafe", body)
}

// sales makes invoices on earlier days. Most of them are paid.
func (f *filled) sales(days int) {
	f.t.Helper()
	for day := range days {
		for i := range 1 + day%3 {
			cents := 500 + (day*day*37+i*1313)%4200
			made := f.bill(strconv.Itoa(cents*10_000), nil)
			if day%7 != 5 {
				f.paymentTo(cafePays, f.read(made.ID).TransferAmount)
			}
		}
		f.forward(24 * time.Hour)
	}
}

// operatorsWork makes objects that do not belong to a sale: keys, sessions and a payment link.
func (f *filled) operatorsWork() {
	f.t.Helper()
	f.owner.api("POST", "/api/keys", member{"name": f.text("program name"), "scopes": []string{"invoices:read"}}, nil)
	f.owner.api("POST", "/api/payment-links", member{
		"title": f.text("link title"), "description": f.text("link description"), "lineItem": f.text("link line item"), "referencePrefix": f.text("reference prefix"),
		"amount": "4900000", "currency": "USDC", "chainKey": house, "merchantAddress": cafePays.String(),
	}, nil)
	f.owner.post("/dashboard/filters/save", url.Values{"list": {"/dashboard/invoices"}, "name": {f.text("filter name")}, "query": {"status=paid"}}).want(f.t, http.StatusOK)
	(&person{world: f.world, Client: f.guest().Client, key: f.root.Reveal()}).api("GET", "/api/merchants", nil, nil)
	browser := f.guest()
	r := expect.Must(http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url+"/dashboard/sign-in", strings.NewReader(url.Values{"key": {f.owner.key}}.Encode())))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User-Agent", f.text("user agent"))
	resp, err := browser.Do(r)
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		f.t.Fatalf("sign in with another browser: %v, %v", resp, err)
	}
}

// invoices makes invoices in each state but expired.
func (f *filled) invoices() {
	f.t.Helper()
	f.bill("7200000", member{"draft": true})
	open := f.bill("4900000", nil)
	f.owner.api("POST", "/api/invoices/"+open.ID+"/mails", member{"reminderHours": []int{24}}, nil)
	void := f.bill("3300000", nil)
	f.owner.api("POST", "/api/invoices/"+void.ID+"/mails", member{"email": "gone@cafe.example"}, nil)
	f.bounce("gone@cafe.example")
	f.owner.api("POST", "/api/invoices/"+void.ID+"/void", nil, nil)
}

// transfers makes payments that are paid, paid twice, too small and without an invoice, and refunds of them.
func (f *filled) transfers() {
	f.t.Helper()
	paid := f.bill("12500000", nil)
	due := f.read(paid.ID).TransferAmount
	whole := f.paymentTo(cafePays, due)
	f.await("paid invoice", func() bool { return f.read(paid.ID).Status == "paid" })
	twice := f.paymentTo(cafePays, "12500000")
	f.owner.api("POST", "/api/payments/"+twice.ID+"/attribution", member{"invoiceId": paid.ID, "by": f.text("attributed by"), "note": f.text("attribution note")}, nil)
	f.paymentTo(cafePays, "4700000") // an open invoice is suggested for it
	var asked apitypes.RefundResponse
	f.owner.api("POST", "/api/payments/"+twice.ID+"/refunds", member{"reason": f.text("refund reason"), "to": "ask_payer"}, &asked)
	var sent apitypes.RefundResponse
	f.owner.api("POST", "/api/payments/"+whole.ID+"/refunds", member{"amount": "1500000", "reason": f.text("refund reason")}, &sent)
	var submitted apitypes.SubmissionResponse
	f.owner.api("POST", "/api/refunds/"+sent.Refund.ID+"/submissions", member{}, &submitted)
	f.owner.api("POST", "/api/refunds/"+sent.Refund.ID+"/submissions/"+submitted.Submission.ID+"/withdraw", member{}, nil)
	f.owner.api("POST", "/api/refunds/"+sent.Refund.ID+"/submissions", member{}, nil)
	f.owner.api("POST", "/api/payments/"+whole.ID+"/refunds", member{"amount": "500000", "reason": f.text("refund reason")}, nil)
	exchange := invoice.Address{0xee, 19: 1}
	f.guest().post(strings.TrimPrefix(asked.ClaimURL, f.url), url.Values{"to": {exchange.String()}}).want(f.t, http.StatusOK)
}

// decisions makes an invoice that has expired partly paid, and dismisses a payment.
func (f *filled) decisions() {
	f.t.Helper()
	short := f.bill("9900000", member{"expiresAt": f.now().Add(2 * time.Minute).Unix()})
	part := f.paymentTo(cafePays, "9000000")
	f.owner.api("POST", "/api/payments/"+part.ID+"/attribution", member{"invoiceId": short.ID, "by": f.text("attributed by")}, nil)
	f.chain.MineAt(max(short.Invoice.ExpiresAt, f.chain.Head().Time) + 1)
	f.chain.MineAt(f.chain.Head().Time + 1)
	f.await("expired invoice", func() bool { return f.read(short.ID).Status == "expired" })
	f.paymentTo(cafePays, "1234567")
	page := f.owner.get("/dashboard/inbox?kind=unattributed")
	f.owner.submit(page, "/dashboard/inbox/decide", url.Values{"decision": {"dismissed"}, "reason": {f.text("decision reason")}}).want(f.t, http.StatusOK)
}

// deliveries makes the endpoint answer an event with an error and a text.
func (f *filled) deliveries() {
	f.t.Helper()
	f.receiver.say(http.StatusServiceUnavailable, f.text("endpoint's answer"))
	made := f.bill("2500000", nil)
	f.await("failed delivery", func() bool {
		return strings.Contains(f.owner.get("/dashboard/invoices/"+made.ID).Words(), "503")
	})
	f.receiver.say(http.StatusOK, "")
	f.owner.api("POST", "/api/merchants/cafe/webhook/secret", nil, nil)
}

// plain makes people write usual texts.
func plain(field string) string {
	usual := map[string]string{
		"merchant name": "Corner Café", "support contact": "help@cafe.example", "statement": "Corner Café GmbH\n12 Market Street, Springfield",
		"key name": "Maria Rossi", "program name": "Point of sale", "reference": "2026-0412", "description": "Table 12, the terrace",
		"metadata key": "table", "metadata value": "12", "customer id": "maria", "line item": "Lunch for two", "link title": "An espresso",
		"link description": "At the bar", "link line item": "Espresso", "reference prefix": "bar-", "user agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0",
		"refund reason": "One lunch too many", "attribution note": "The guest called", "attributed by": "Maria Rossi", "filter name": "Paid", "decision reason": "A test of our own",
		"endpoint's answer": "gone fishing", "webhook URL": "shop=1", "return URL": "thanks",
	}
	return cmp.Or(usual[field], field)
}

// member is a member of an object of the interface.
type member = map[string]any

// invoice creates an invoice of a merchant over 4.90 USDC, which expires in an hour. more replaces and adds members.
func (w *world) invoice(merchantID string, more member) apitypes.CreateInvoiceResponse {
	w.t.Helper()
	body := member{
		"merchantId": merchantID, "merchantAddress": acmePays.String(), "amount": "4900000", "currency": chain.USDC, "chainKey": house,
		"expiresAt": w.now().Unix() + 3600,
	}
	for name, value := range more {
		body[name] = value
	}
	var made apitypes.CreateInvoiceResponse
	w.operator.api("POST", "/api/invoices", body, &made)
	return made
}

// read returns the current state of an invoice.
func (w *world) read(id string) apitypes.Invoice {
	w.t.Helper()
	var answer apitypes.InvoiceResponse
	w.operator.api("GET", "/api/invoices/"+id, nil, &answer)
	return answer.Invoice
}

// transfer mines a transfer of minor units to the settlement address of acme's invoices, and
// the block that confirms it. It returns the transaction's hash.
func (w *world) transfer(minor string) string { return w.transferTo(acmePays, minor) }

// transferTo is transfer to another settlement address.
func (w *world) transferTo(to invoice.Address, minor string) string {
	w.t.Helper()
	amount := expect.Must(invoice.ParseAmount(minor))
	tx := chaintest.NewTx(chaintest.Transfer(houseToken, payer, to, amount))
	w.chain.MineAt(max(w.now().Unix(), w.chain.Head().Time+1), tx)
	w.chain.MineAt(w.chain.Head().Time + 1)
	return invoice.Hash(tx.Hash).String()
}

// payment mines a transfer, and returns its payment once it is confirmed.
func (w *world) payment(minor string) apitypes.Payment { return w.paymentTo(acmePays, minor) }

// paymentTo is payment to another settlement address.
func (w *world) paymentTo(to invoice.Address, minor string) apitypes.Payment {
	w.t.Helper()
	hash := w.transferTo(to, minor)
	var found apitypes.PaymentList
	w.await("confirmed payment of "+hash, func() bool {
		w.operator.api("GET", "/api/payments?include=unattributed&txHash="+hash, nil, &found)
		return len(found.Payments) == 1 && found.Payments[0].Status == "confirmed"
	})
	return found.Payments[0]
}

// attribute attributes a payment to an invoice at once, as maria's program does.
func (w *world) attribute(paymentID, invoiceID string) {
	w.t.Helper()
	w.operator.api("POST", "/api/payments/"+paymentID+"/attribution", apitypes.AttributePaymentRequest{InvoiceID: invoiceID, By: "maria"}, nil)
}

// paid creates an invoice of acme, and returns it once it is paid in full.
func (w *world) paid(more member) apitypes.Invoice {
	w.t.Helper()
	made := w.invoice("acme", more)
	w.payment(w.read(made.ID).TransferAmount)
	w.await("paid invoice", func() bool { return w.read(made.ID).Status == "paid" })
	return w.read(made.ID)
}
