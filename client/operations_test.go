package client_test

import (
	"reflect"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/quittance/quittance/client"
)

// methods are the methods that call the operations of openapi.yaml.
var methods = map[string]string{
	"createInvoice": "CreateInvoice", "getInvoice": "Invoice", "listInvoices": "Invoices",
	"updateInvoice": "UpdateInvoice", "deleteInvoice": "DeleteInvoice", "listInvoicePayments": "InvoicePayments", "listInvoiceTimeline": "InvoiceTimeline", "finalizeInvoice": "FinalizeInvoice", "voidInvoice": "VoidInvoice",
	"getPayment": "Payment", "listPayments": "Payments", "attributePayment": "AttributePayment", "listClaims": "Claims",
	"listInbox": "Inbox", "countInbox": "InboxCounts", "listDecisions": "Decisions", "decide": "Decide", "undoDecision": "UndoDecision",
	"prepareRefund": "PrepareRefund", "getRefund": "Refund", "listRefunds": "Refunds", "listPaymentRefunds": "PaymentRefunds",
	"createPaymentLink": "CreatePaymentLink", "getPaymentLink": "PaymentLink", "listPaymentLinks": "PaymentLinks", "updatePaymentLink": "UpdatePaymentLink",
	"cancelRefund": "CancelRefund", "approveRefund": "ApproveRefund", "submitRefund": "SubmitRefund", "recordTransaction": "RecordTransaction", "withdrawSubmission": "WithdrawSubmission", "getSettlementReport": "SettlementReport", "getSummary": "Summary", "getStatement": "Statement", "getInvoiceReport": "InvoiceReport", "listCustomers": "Customers", "eraseCustomer": "EraseCustomer",
	"getEvent": "Event", "listEvents": "Events", "streamEvents": "StreamEvents", "redeliverEvent": "RedeliverEvent", "redeliverEvents": "RedeliverEvents",
	"createKey": "CreateKey", "listKeys": "Keys", "rotateKey": "RotateKey", "revokeKey": "RevokeKey", "createSignInLink": "CreateSignInLink", "listAuditEntries": "AuditEntries", "listRequests": "Requests",
	"getServiceStatus": "ServiceStatus", "listMerchantOverviews": "MerchantOverviews", "rescanChain": "RescanChain", "resumeChain": "ResumeChain", "verifyAudit": "VerifyAudit",
	"createMerchant": "CreateMerchant", "getMerchant": "Merchant", "listMerchants": "Merchants", "updateMerchant": "UpdateMerchant",
	"releaseMerchantAddress": "ReleaseAddress", "getMerchantLogo": "MerchantLogo", "putMerchantLogo": "SetMerchantLogo", "deleteMerchantLogo": "DeleteMerchantLogo",
	"getWebhook": "Webhook", "putWebhook": "PutWebhook", "pingWebhook": "PingWebhook", "stageWebhookSecret": "StageWebhookSecret",
	"promoteWebhookSecret": "PromoteWebhookSecret", "dropWebhookSecret": "DropWebhookSecret",
	"receiveNotice": "", "probeNotices": "", // called by a transfer provider
	"submitAuthorization": "", "getAuthorization": "", // called by a payer
	"getX402Supported": "X402Supported", "verifyX402": "VerifyX402", "settleX402": "SettleX402",
}

// TestEveryOperationHasAMethod compares the methods with the operations of openapi.yaml.
// sdk/typescript has a test like this one.
func TestEveryOperationHasAMethod(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			name, ok := methods[operation.OperationID]
			known[operation.OperationID] = true
			if _, has := reflect.TypeFor[*client.Client]().MethodByName(name); !ok || name != "" && !has {
				t.Errorf("package client has no method for %s, %s %s", operation.OperationID, method, path)
			}
		}
	}
	for operation := range methods {
		if !known[operation] {
			t.Errorf("openapi.yaml has no operation %s", operation)
		}
	}
}
