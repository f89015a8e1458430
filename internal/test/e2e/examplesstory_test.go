package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	pixels "image"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/webhook"
)

// baseURL and endpointURL are the addresses of the service and of the merchant's endpoint
// in the examples, and exampleSecret is the endpoint's secret.
const (
	baseURL       = "http://127.0.0.1:8080"
	endpointURL   = "http://127.0.0.1:4000/webhooks"
	exampleSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// story uses every operation as a merchant, in its own world.
type story struct {
	*world
	child    *child
	key      string // of the operator
	receiver *receiver
	till     *wallet            // the merchant's settlement account
	examples map[string]example // by operation; "problem.<code>" is the response of an error
	replaced []string           // pairs of a text and its replacement in the examples
}

func newStory(tb testing.TB) *story {
	tb.Helper()
	s := &story{receiver: newReceiver(tb), examples: make(map[string]example)}
	s.world, s.child = startWorld(tb, "--block-time", quick)
	s.till = s.newWallet("")
	ether := units(tb, "1000000000000000000")
	expect.Success(tb)(s.payer().send(within(tb, patience), s.till.address, ether, nil, nil))
	s.replaced = []string{"\r\n", "\n", s.info.Load().BaseURL, baseURL, s.receiver.URL, endpointURL}
	made := decoded[apitypes.KeySecretResponse](s, s.do(http.MethodPost, "/api/keys", `{"name":"operator","scopes":["admin"]}`, "Content-Type", "application/json"), http.StatusCreated)
	s.key = made.Secret
	return s
}

// publish replaces the secrets and addresses of a run, and the line ends of CSV, which git changes.
func (s *story) publish(text string) string {
	return strings.NewReplacer(s.replaced...).Replace(text)
}

// hide sets the text that examples show in place of a secret.
func (s *story) hide(secret, shown string) { s.replaced = append(s.replaced, secret, shown) }

// call sends the request of an operation, and stores it with its response. headers are pairs of a name and a value.
func (s *story) call(op, method, path, body string, headers ...string) answer {
	s.Helper()
	if body != "" && len(headers) == 0 {
		headers = []string{"Content-Type", "application/json"}
	}
	a := s.do(method, path, body, append([]string{"Authorization", "Bearer " + s.key}, headers...)...)
	if a.status >= http.StatusBadRequest {
		s.Errorf("%s: answered %d %s", op, a.status, a.body)
	}
	shown := headers
	if !strings.HasPrefix(path, "/checkout/") { // which takes no key
		shown = append([]string{"Authorization", "Bearer $QUITTANCE_API_KEY"}, headers...)
	}
	s.examples[op] = example{method, path, shown, []byte(body), a.status, a.header.Get("Content-Type"), a.body}
	return a
}

// export stores the CSV of a list.
func (s *story) export(op, path string) {
	s.Helper()
	a := s.do(http.MethodGet, path, "", "Authorization", "Bearer "+s.key, "Accept", "text/csv")
	if a.status != http.StatusOK {
		s.Errorf("%s: answered %d %s", op, a.status, a.body)
	}
	s.examples[op+".csv"] = example{status: a.status, mediaType: "text/csv", response: a.body}
}

// play uses every operation.
func (s *story) play() {
	s.Helper()
	s.merchants()
	s.endpoint()
	paid := s.invoices()
	s.authorizations()
	s.drafts()
	s.links()
	s.refunds(paid)
	s.unattributed()
	s.events(paid)
	s.keys()
	s.notices()
	s.records()
	s.operator()
	s.x402()
	s.problems()
}

func (s *story) merchants() {
	s.Helper()
	address := s.till.address.Hex()
	s.call("createMerchant", http.MethodPost, "/api/merchants", `{
  "id": "acme",
  "name": "Acme Books",
  "supportContact": "help@acme.example",
  "returnHosts": ["shop.example"]
}`)
	s.call("updateMerchant", http.MethodPatch, "/api/merchants/acme", `{
  "color": "#1a73e8",
  "tolerance": "0.5%",
  "defaultAddresses": {"local": "`+address+`"}
}`)
	var logo bytes.Buffer
	expect.OK(s, png.Encode(&logo, pixels.NewGray(pixels.Rect(0, 0, 64, 64))))
	s.call("putMerchantLogo", http.MethodPut, "/api/merchants/acme/logo", logo.String(), "Content-Type", "image/png")
	s.call("getMerchantLogo", http.MethodGet, "/api/merchants/acme/logo", "")
	s.call("getMerchant", http.MethodGet, "/api/merchants/acme", "")
	s.call("listMerchants", http.MethodGet, "/api/merchants?limit=1", "")
	s.call("deleteMerchantLogo", http.MethodDelete, "/api/merchants/acme/logo", "")
	const former = "0x00000000000000000000000000000000000000AA"
	for _, a := range []string{former, address} {
		s.do(http.MethodPatch, "/api/merchants/acme", `{"defaultAddresses":{"local":"`+a+`"}}`, "Content-Type", "application/json")
	}
	s.call("releaseMerchantAddress", http.MethodDelete, "/api/merchants/acme/addresses/"+former, "")
}

// endpoint sets the merchant's endpoint and rotates its secret.
func (s *story) endpoint() {
	s.Helper()
	const path = "/api/merchants/acme/webhook"
	set := decoded[apitypes.WebhookSecretResponse](s, s.call("putWebhook", http.MethodPut, path, `{
  "url": "`+s.receiver.URL+`",
  "optionalEvents": ["payment.unattributed"]
}`), http.StatusCreated)
	s.hide(set.Secret, exampleSecret)
	s.receiver.setSecret(set.Secret)
	s.call("pingWebhook", http.MethodPost, path+"/ping", "")
	staged := decoded[apitypes.WebhookSecretResponse](s, s.call("stageWebhookSecret", http.MethodPost, path+"/secret", ""), http.StatusCreated)
	s.hide(staged.Secret, exampleSecret)
	s.receiver.setSecret(staged.Secret)
	s.call("promoteWebhookSecret", http.MethodPost, path+"/secret/promote", "")
	s.call("getWebhook", http.MethodGet, path, "")
	if a := s.do(http.MethodPost, path+"/secret", ""); a.status != http.StatusCreated {
		s.Errorf("stage another secret: %d %s", a.status, a.body)
	}
	s.call("dropWebhookSecret", http.MethodDelete, path+"/secret", "")
}

// invoices lets one invoice be paid and one expire. It returns the paid one.
func (s *story) invoices() string {
	s.Helper()
	ctx := within(s, patience)
	made := decoded[apitypes.CreateInvoiceResponse](s, s.call("createInvoice", http.MethodPost, "/api/invoices", fmt.Sprintf(`{
  "merchantId": "acme",
  "merchantAddress": %q,
  "amount": "4900000",
  "currency": "USDC",
  "chainKey": "local",
  "lineItems": [
    {"label": "Two espressos", "amount": "4000000"},
    {"label": "Tip", "amount": "900000"}
  ],
  "expiresAt": %d,
  "reference": "order-10017",
  "metadata": {"cart": "8821"},
  "returnUrl": "https://shop.example/thanks"
}`, s.till.address.Hex(), time.Now().Unix()+3600), "Content-Type", "application/json", "Idempotency-Key", "order-10017"), http.StatusCreated)
	s.event("onInvoiceCreated", webhook.InvoiceCreated, made.ID)
	s.call("listInvoices", http.MethodGet, "/api/invoices?merchantId=acme&status=open&limit=10", "")
	s.export("listInvoices", "/api/invoices?merchantId=acme&status=open")
	s.payer().mustTransfer(s, s.till.address.Hex(), made.Invoice.TransferAmount, nil)
	s.event("onPaymentReceived", webhook.PaymentReceived, made.ID)
	s.event("onInvoicePaid", webhook.InvoicePaid, made.ID)
	s.call("getInvoice", http.MethodGet, "/api/invoices/"+made.ID+"?wait=30&status=open", "")

	expiring := s.draft("2500000")
	expiring.MerchantID, expiring.MerchantAddress, expiring.ExpiresAt = "acme", s.till.address.Hex(), time.Now().Unix()+2
	late := s.create(expiring)
	s.receiver.await(ctx, webhook.InvoiceExpired, late.ID)
	s.event("onInvoiceExpired", webhook.InvoiceExpired, late.ID)
	return made.ID
}

// authorizations pays an invoice by an authorization of the payer.
func (s *story) authorizations() {
	s.Helper()
	draft := s.draft("1250000")
	draft.MerchantID, draft.MerchantAddress = "acme", s.till.address.Hex()
	made := s.create(draft)
	path := "/checkout/" + made.ID + "/authorization"
	s.call("submitAuthorization", http.MethodPost, path+"?wait=30", s.payer().authorize(s, made), "Content-Type", "application/json")
	s.call("getAuthorization", http.MethodGet, path, "")
}

// drafts changes a draft, opens it and voids it, and deletes another.
func (s *story) drafts() {
	s.Helper()
	draft := func() string {
		body := fmt.Sprintf(`{"merchantId":"acme","amount":"7000000","currency":"USDC","chainKey":"local","expiresAt":%d,"draft":true}`, time.Now().Unix()+3600)
		return "/api/invoices/" + decoded[apitypes.CreateInvoiceResponse](s, s.post(body), http.StatusCreated).ID
	}
	path := draft()
	s.call("updateInvoice", http.MethodPatch, path, `{
  "amount": "7500000",
  "description": "Ten notebooks, A5",
  "customer": { "id": "c-77", "email": "maria@example.com" }
}`)
	s.call("finalizeInvoice", http.MethodPost, path+"/finalize", "")
	s.call("listCustomers", http.MethodGet, "/api/customers?merchantId=acme&q=c-77", "")
	s.export("listCustomers", "/api/customers?merchantId=acme&q=c-77")
	s.call("getInvoiceReport", http.MethodGet, "/api/reports/invoices?merchantId=acme&customer=c-77", "")
	s.call("sendInvoice", http.MethodPost, path+"/mails", `{
  "email": "maria@example.com",
  "language": "de",
  "reminderHours": [-24, 72]
}`)
	if err := await(within(s, patience), func() bool {
		return strings.Contains(string(s.do(http.MethodGet, path+"/mails", "").body), `"sent"`)
	}); err != nil {
		s.Fatalf("the invoice is not sent: %v", err)
	}
	s.call("listInvoiceMails", http.MethodGet, path+"/mails", "")
	id := regexp.MustCompile(`inv_\S+\.1\.[0-9a-f]{32}`).FindString(s.child.stderr.String())
	s.call("reportMail", http.MethodPost, "/api/operator/mails/report", "Content-Type: multipart/report; boundary=b\r\n\r\n"+
		"--b\r\nContent-Type: message/delivery-status\r\n\r\nAction: failed\r\nDiagnostic-Code: smtp; 550 5.1.1 <maria@example.com>: no such user\r\n\r\n"+
		"--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <"+id+"@example.com>\r\n\r\n--b--\r\n", "Content-Type", "message/rfc822")
	s.call("dropReminders", http.MethodDelete, path+"/mails", "")
	s.call("voidInvoice", http.MethodPost, path+"/void", "")
	s.call("eraseCustomer", http.MethodPost, "/api/customers/erase", `{
  "merchantId": "acme",
  "customer": "c-77"
}`, "Content-Type", "application/json", "Idempotency-Key", "7d0a6f5e-3b0c-4c1e-9f55-1a86e1d2b9c4")
	s.call("deleteInvoice", http.MethodDelete, draft(), "")
}

// links creates a payment link and changes it.
func (s *story) links() {
	s.Helper()
	made := decoded[apitypes.PaymentLinkResponse](s, s.call("createPaymentLink", http.MethodPost, "/api/payment-links", `{
  "merchantId": "acme",
  "slug": "espresso",
  "title": "An espresso",
  "amount": "4900000",
  "currency": "USDC",
  "chainKey": "local",
  "referencePrefix": "bar-"
}`, "Content-Type", "application/json", "Idempotency-Key", "link-espresso"), http.StatusCreated)
	path := "/api/payment-links/" + made.Link.ID
	s.call("getPaymentLink", http.MethodGet, path, "")
	s.call("listPaymentLinks", http.MethodGet, "/api/payment-links?merchantId=acme&archived=false", "")
	s.export("listPaymentLinks", "/api/payment-links?merchantId=acme&archived=false")
	s.call("updatePaymentLink", http.MethodPatch, path, `{
  "amount": "5200000"
}`)
}

// event stores an event that the endpoint has received.
func (s *story) event(op, typ, invoiceID string) {
	s.Helper()
	s.examples[op] = example{request: s.receiver.await(within(s, patience), typ, invoiceID).body}
}

// refunds refunds a part of a payment.
func (s *story) refunds(paid string) {
	s.Helper()
	list := decoded[apitypes.PaymentList](s, s.call("listPayments", http.MethodGet, "/api/payments?merchantId=acme&chainKey=local", ""), http.StatusOK)
	payment := "/api/payments/" + list.Payments[0].ID
	s.export("listPayments", "/api/payments?merchantId=acme&chainKey=local")
	s.call("getPayment", http.MethodGet, payment, "")
	prepared := decoded[apitypes.RefundResponse](s, s.call("prepareRefund", http.MethodPost, payment+"/refunds", `{
  "amount": "900000",
  "reason": "Returned on 3 November"
}`, "Content-Type", "application/json", "Idempotency-Key", "return-5521"), http.StatusCreated)
	refund := prepared.Refund.ID
	s.call("getRefund", http.MethodGet, "/api/refunds/"+refund, "")
	submitted := decoded[apitypes.SubmissionResponse](s, s.call("submitRefund", http.MethodPost, "/api/refunds/"+refund+"/submissions", "{}",
		"Content-Type", "application/json", "Idempotency-Key", "c2f1b7d8-90aa-4e53-8d1f-6be0374c5a21"), http.StatusCreated)
	sent, err := s.till.send(within(s, patience), common.HexToAddress(prepared.Transaction.To), nil, common.FromHex(prepared.Transaction.Data), nil)
	expect.OK(s, err)
	s.call("recordTransaction", http.MethodPut, "/api/refunds/"+refund+"/submissions/"+submitted.Submission.ID, `{
  "txHash": "`+sent.TxHash.Hex()+`"
}`)
	s.event("onPaymentRefunded", webhook.PaymentRefunded, paid)
	s.call("listPaymentRefunds", http.MethodGet, payment+"/refunds?status=confirmed", "")
	s.export("listPaymentRefunds", payment+"/refunds?status=confirmed")
	s.approval(payment)
	s.call("listRefunds", http.MethodGet, "/api/refunds?merchantId=acme&status=confirmed", "")
	s.export("listRefunds", "/api/refunds?merchantId=acme&status=confirmed")
}

// approval names an address for a refund as the payer, and approves and cancels it as the merchant.
func (s *story) approval(payment string) {
	s.Helper()
	asked := decoded[apitypes.RefundResponse](s, s.do(http.MethodPost, payment+"/refunds", `{"to":"ask_payer"}`, "Content-Type", "application/json"), http.StatusCreated)
	claim := expect.Must(url.Parse(asked.ClaimURL))
	to := s.newWallet("").address.Hex()
	if a := s.do(http.MethodPost, claim.Path, url.Values{"to": {to}}.Encode(), "Content-Type", "application/x-www-form-urlencoded"); a.status != http.StatusOK {
		s.Errorf("name an address: %d %s", a.status, a.body)
	}
	s.call("approveRefund", http.MethodPost, "/api/refunds/"+asked.Refund.ID+"/approve", `{
  "to": "`+to+`"
}`)
	refund := "/api/refunds/" + asked.Refund.ID
	submitted := decoded[apitypes.SubmissionResponse](s, s.do(http.MethodPost, refund+"/submissions", "{}", "Authorization", "Bearer "+s.key, "Content-Type", "application/json"), http.StatusCreated)
	s.call("withdrawSubmission", http.MethodPost, refund+"/submissions/"+submitted.Submission.ID+"/withdraw", "")
	s.call("cancelRefund", http.MethodPost, "/api/refunds/"+asked.Refund.ID+"/cancel", "")
}

// inbox dismisses an item that needs a decision, and undoes that.
func (s *story) inbox() {
	s.Helper()
	list := decoded[apitypes.InboxList](s, s.call("listInbox", http.MethodGet, "/api/inbox?merchantId=acme&kind=claimed", ""), http.StatusOK)
	if len(list.Items) != 1 || list.Items[0].Payment == nil {
		s.Fatalf("the inbox is %+v", list)
	}
	item := list.Items[0]
	s.call("countInbox", http.MethodGet, "/api/inbox/counts?merchantId=acme", "")
	made := decoded[apitypes.DecisionResponse](s, s.call("decide", http.MethodPost, "/api/inbox/decisions", `{
  "kind": "claimed",
  "objectId": "`+item.Payment.ID+`",
  "version": "`+item.Version+`",
  "decision": "dismissed",
  "reason": "Settled with the payer by phone",
  "merchantId": "acme"
}`), http.StatusCreated)
	s.call("listDecisions", http.MethodGet, "/api/inbox/decisions?merchantId=acme", "")
	s.call("undoDecision", http.MethodPost, "/api/inbox/decisions/"+made.Decision.ID+"/undo", "")
}

// unattributed pays an amount that no invoice asks for, and claims the payment.
func (s *story) unattributed() {
	s.Helper()
	request := s.draft("3000000")
	request.MerchantID, request.MerchantAddress = "acme", s.till.address.Hex()
	made := s.create(request)
	tx := s.payer().mustTransfer(s, s.till.address.Hex(), "2900000", nil)
	s.event("onPaymentUnattributed", "payment.unattributed", "")
	form := url.Values{"tx": {tx.Hex()}}.Encode()
	if a := s.do(http.MethodPost, "/checkout/"+made.ID+"/claim", form, "Content-Type", "application/x-www-form-urlencoded"); a.status != http.StatusOK {
		s.Errorf("claim: %d %s", a.status, a.body)
	}
	claims := decoded[apitypes.ClaimList](s, s.call("listClaims", http.MethodGet, "/api/claims?merchantId=acme", ""), http.StatusOK)
	if len(claims.Claims) != 1 {
		s.Fatalf("claims: %+v", claims)
	}
	s.inbox()
	s.call("attributePayment", http.MethodPost, "/api/payments/"+claims.Claims[0].PaymentID+"/attribution", `{
  "invoiceId": "`+made.ID+`",
  "by": "maria@acme.example",
  "note": "The exchange kept a fee of 0.10 USDC."
}`)
}

// events reads the log, and redelivers events.
func (s *story) events(paid string) {
	s.Helper()
	s.delivered()
	s.call("listInvoicePayments", http.MethodGet, "/api/invoices/"+paid+"/payments", "")
	s.export("listInvoicePayments", "/api/invoices/"+paid+"/payments")
	s.closed(paid)
	s.call("listInvoiceTimeline", http.MethodGet, "/api/invoices/"+paid+"/timeline", "")
	s.call("listEvents", http.MethodGet, "/api/events?merchantId=acme&after=start&limit=2", "")
	id := s.receiver.await(within(s, patience), webhook.InvoicePaid, paid).ID
	s.call("getEvent", http.MethodGet, "/api/events/"+id, "")
	s.export("listEvents", "/api/events?merchantId=acme&type=invoice.paid")
	s.call("redeliverEvent", http.MethodPost, "/api/events/"+id+"/redeliver", "")
	s.delivered()
	s.call("redeliverEvents", http.MethodPost, "/api/events/redeliver", fmt.Sprintf(`{
  "merchantId": "acme",
  "type": "invoice.paid",
  "from": %d
}`, time.Now().Unix()-3600))
	s.stream("/api/events/stream?merchantId=acme&type=invoice.paid&after=start")
}

// closed waits until the transaction that closes the invoice's commitment is signed.
func (s *story) closed(id string) {
	s.Helper()
	if err := await(within(s, patience), func() bool {
		return strings.Contains(string(s.do(http.MethodGet, "/api/invoices/"+id+"/timeline?limit=200", "").body), `"commitment.close"`)
	}); err != nil {
		s.Fatalf("the commitment is not closed: %v", err)
	}
}

// delivered waits until no delivery of the merchant is pending.
func (s *story) delivered() {
	s.Helper()
	if err := await(within(s, patience), func() bool {
		a := s.do(http.MethodGet, "/api/events?merchantId=acme&delivery=pending", "")
		return len(decoded[apitypes.EventList](s, a, http.StatusOK).Events) == 0
	}); err != nil {
		s.Fatalf("deliveries are pending: %v", err)
	}
}

// stream reads the first event of a stream.
func (s *story) stream(path string) {
	s.Helper()
	request := expect.Must(http.NewRequestWithContext(within(s, patience), http.MethodGet, s.url(path), nil))
	request.Header.Set("Authorization", "Bearer "+s.key)
	response, err := http.DefaultClient.Do(request)
	expect.OK(s, err)
	defer response.Body.Close() //nolint:errcheck // read as far as needed
	var text strings.Builder
	lines := bufio.NewReader(response.Body)
	for line := ""; !strings.Contains(text.String(), "data: ") || line != "\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			s.Fatalf("%v: %s", err, text.String())
		}
		text.WriteString(line)
	}
	s.examples["streamEvents"] = example{
		http.MethodGet, path, []string{"Authorization", "Bearer $QUITTANCE_API_KEY"}, nil, response.StatusCode, "text/event-stream",
		[]byte(text.String()),
	}
}

func (s *story) keys() {
	s.Helper()
	made := decoded[apitypes.KeySecretResponse](s, s.call("createKey", http.MethodPost, "/api/keys", `{
  "name": "shop backend",
  "merchantId": "acme",
  "scopes": ["standard"]
}`), http.StatusCreated)
	s.hide(made.Secret, "qk_test_"+strings.Repeat("0", 30))
	rotated := decoded[apitypes.KeySecretResponse](s, s.call("rotateKey", http.MethodPost, "/api/keys/"+made.Key.ID+"/rotate", `{
  "overlapSeconds": 3600
}`), http.StatusCreated)
	s.hide(rotated.Secret, "qk_test_"+strings.Repeat("1", 30))
	link := decoded[apitypes.SignInLink](s, s.call("createSignInLink", http.MethodPost, "/api/sign-in-links", `{
  "keyId": "`+rotated.Key.ID+`"
}`), http.StatusCreated)
	s.hide(strings.TrimPrefix(link.Path, "/dashboard/sign-in?link="), "ql_"+strings.Repeat("a", 30))
	s.call("revokeKey", http.MethodDelete, "/api/keys/"+made.Key.ID, "")
	s.call("listKeys", http.MethodGet, "/api/keys?merchantId=acme", "")
}

func (s *story) notices() {
	s.Helper()
	s.call("probeNotices", http.MethodHead, "/api/webhooks/circle", "")
	probe := s.examples["probeNotices"]
	probe.header = nil // without the key
	s.examples["probeNotices"] = probe
	body := `{
  "type": "transfers.created",
  "data": {
    "id": "b5c8e6b2-6c3e-4a61-9a4e-9d3f6c2f8f10",
    "amount": {"amount": "4.90", "currency": "USD"},
    "destination": {"type": "blockchain", "address": "` + s.till.address.Hex() + `", "chain": "LOCAL"}
  }
}`
	signature := webhook.Sign(s.info.Load().Provider.WebhookSecret, time.Now(), []byte(body))
	s.call("receiveNotice", http.MethodPost, "/api/webhooks/circle", body, "Content-Type", "application/json", webhook.HeaderProviderSignature, signature)
	e := s.examples["receiveNotice"]
	e.header = e.header[2:] // without the key
	s.examples["receiveNotice"] = e
}

// records reads the report, the audit log and the log of requests.
func (s *story) records() {
	s.Helper()
	today := time.Now().UTC()
	s.call("getSummary", http.MethodGet, "/api/reports/summary?merchantId=acme&from="+today.AddDate(0, 0, -1).Format(time.DateOnly), "")
	report := "/api/reports/settlement?merchantId=acme&from=" + today.AddDate(0, 0, -1).Format(time.DateOnly) + "&to=" + today.AddDate(0, 0, 1).Format(time.DateOnly) + "&groupBy=chain"
	s.call("getSettlementReport", http.MethodGet, report, "")
	s.export("getSettlementReport", report)
	statement := "/api/reports/statement?merchantId=acme&month=" + today.Format("2006-01")
	s.call("getStatement", http.MethodGet, statement, "")
	s.export("getStatement", statement)
	s.approvals()
	s.call("listAuditEntries", http.MethodGet, "/api/audit?merchantId=acme&action=key.revoke", "")
	s.do(http.MethodGet, "/api/payments?chainKey=bsae", "")
	const requests = "/api/requests?status=4xx&limit=1"
	if err := await(within(s, patience), func() bool {
		return strings.Contains(string(s.do(http.MethodGet, requests, "").body), "bsae")
	}); err != nil {
		s.Fatalf("a refused request is not listed: %v", err)
	}
	s.call("listRequests", http.MethodGet, requests, "")
}

// operator makes the requests of the operator.
func (s *story) operator() {
	s.Helper()
	if err := await(within(s, patience), func() bool {
		status := decoded[apitypes.ServiceStatus](s, s.do(http.MethodGet, "/api/operator/status", ""), http.StatusOK)
		chain := status.Chains[0]
		return status.Ready && chain.Backfill == nil && chain.Writer.Due == 0 && chain.Writer.InFlight == 0 && len(chain.Writer.Transactions) == 0
	}); err != nil {
		s.Fatalf("the service has not settled down: %v", err)
	}
	s.call("getServiceStatus", http.MethodGet, "/api/operator/status", "")
	s.call("listMerchantOverviews", http.MethodGet, "/api/operator/merchants?limit=2", "")
	s.call("rescanChain", http.MethodPost, "/api/operator/chains/local/rescan", `{
  "from": 1
}`)
	s.call("resumeChain", http.MethodPost, "/api/operator/chains/local/resume", "")
	s.call("verifyAudit", http.MethodPost, "/api/operator/audit/verify", `{}`)
}

// oneTooMany makes as many waiting requests for an invoice as an owner of keys may, and one more, and
// returns its answer.
func (s *story) oneTooMany(invoiceID string) answer {
	s.Helper()
	ctx, cancel := context.WithCancel(within(s, patience))
	defer cancel()
	answers := make(chan answer, api.MaxOwnWaiting+1)
	for range api.MaxOwnWaiting + 1 {
		go func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/api/invoices/"+invoiceID+"?wait=60&status=open"), nil)
			if err != nil {
				return
			}
			request.Header.Set("Authorization", "Bearer "+s.key)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return // the others end with the context
			}
			defer response.Body.Close() //nolint:errcheck // it is read
			if body, err := io.ReadAll(response.Body); err == nil {
				answers <- answer{status: response.StatusCode, header: response.Header, body: body}
			}
		}()
	}
	select {
	case a := <-answers:
		return a
	case <-ctx.Done():
		s.Fatal("no request was refused")
		return answer{}
	}
}

// approvals reads a request for approval, which a person has approved.
func (s *story) approvals() {
	s.Helper()
	const id, ada = "apr_06h0fspn4htks3vpgv3htzdpf0", "per_06h0bp0stsw6fcthd4p6cnvfhm"
	subject := `{"paymentId":"pay_0q222hpcxxz0esg6tdqf3mpjvm","chainKey":"base","currency":"USDC","amount":"250000000","to":"0x2c0e947B64E07be3bcfFC5c3daBe87F845BD23B6"}`
	database, now := dbtest.SQL(s, "sqlite:"+s.dir+"/quittance.db"), time.Now().Unix()
	for _, insert := range []struct {
		statement string
		args      []any
	}{
		{"INSERT INTO people (id, email, name, created_at) VALUES (?, 'ada@example.com', 'Ada', ?)", []any{ada, now}},
		{`INSERT INTO api_keys (id, name, hint, hash, merchant_id, scopes, created_at, person_id, api_version)
			SELECT 'key_06h0bp0stsw6fcthd4p6cnvfhm', 'Ada', '', ?, 'acme', scopes, ?, ?, api_version FROM api_keys WHERE scopes LIKE '%attribution%' LIMIT 1`, []any{strings.Repeat("0", 64), now, ada}},
		{`INSERT INTO approvals (id, merchant_id, kind, subject, subject_hash, state, people, requested_by, requested_at, expires_at)
			VALUES (?, 'acme', 'refund', ?, ?, 'requested', 2, 'shop backend', ?, ?)`, []any{id, subject, strings.Repeat("0", 64), now, now + 604800}},
		{"INSERT INTO approval_votes (approval_id, person_id, approves, at) VALUES (?, ?, 1, ?)", []any{id, ada, now}},
	} {
		expect.Success(s)(database.ExecContext(s.Context(), insert.statement, insert.args...))
	}
	s.call("listApprovals", http.MethodGet, "/api/approvals?state=requested", "")
	s.call("getApproval", http.MethodGet, "/api/approvals/"+id, "")
}

// problems stores a client's error, and one of the service while its database is locked.
func (s *story) problems() {
	s.Helper()
	keep := func(code string, a answer) {
		if got := decoded[apitypes.Problem](s, a, a.status); string(got.Code) != code {
			s.Errorf("the problem is %s", a.body)
		}
		s.examples["problem."+code] = example{status: a.status, mediaType: a.header.Get("Content-Type"), response: a.body}
	}
	keep("invalid_field", s.post(s.body("lineItems", `[{"label":"Two espressos","amount":"4.90"}]`)))
	keep("not_found", s.do(http.MethodGet, "/api/invoices/inv_06ajrm4k5xwqz8v3d0n7c2b9hr", ""))
	keep("rate_limited", s.oneTooMany(s.create(s.draft("1000000")).ID))
	conn, err := dbtest.SQL(s, "sqlite:"+s.dir+"/quittance.db").Conn(s.Context())
	expect.OK(s, err)
	defer conn.Close() //nolint:errcheck // of a test's database
	expect.Success(s)(conn.ExecContext(s.Context(), "BEGIN IMMEDIATE"))
	keep("unavailable", s.post(s.body()))
	expect.Success(s)(conn.ExecContext(s.Context(), "ROLLBACK"))
}
