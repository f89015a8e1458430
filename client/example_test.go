package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/webhook"
)

// service gives the same answer to every request, which is enough for the examples.
func service(status int, mediaType, body string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		if _, err := io.WriteString(w, body); err != nil {
			log.Print(err)
		}
	}))
}

func ExampleClient_CreateInvoice() {
	s := service(http.StatusBadRequest, "application/problem+json",
		`{"status":400,"code":"invalid_field","field":"amount","detail":"amount must be more than 0."}`)
	defer s.Close()

	c, err := client.New(s.URL)
	if err != nil {
		log.Print(err)
		return
	}
	created, err := c.CreateInvoice(context.Background(), apitypes.CreateInvoiceRequest{
		MerchantID:      "acme",
		MerchantAddress: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		Amount:          "0",
		Currency:        "USDC",
		ChainKey:        "base",
		ExpiresAt:       1764000000,
	}, client.IdempotencyKey("order-10017"))
	if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Code == apitypes.CodeInvalidField {
		fmt.Println(refused.Field, "is wrong:", refused.Detail)
		return
	}
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("pay at", c.URL(created.CheckoutURL))
	// Output: amount is wrong: amount must be more than 0.
}

func ExampleClient_Payments() {
	s := service(http.StatusOK, "application/json", `{"payments":[{"id":"pay_1","invoiceId":"inv_1","amount":"4900000","currency":"USDC"}]}`)
	defer s.Close()

	c, err := client.New(s.URL)
	if err != nil {
		log.Print(err)
		return
	}
	for payment, err := range c.Payments(context.Background(), client.PaymentFilter{MerchantID: "acme"}) {
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(payment.InvoiceID, payment.Amount, payment.Currency)
	}
	// Output: inv_1 4900000 USDC
}

func ExampleClient_With() {
	s := service(http.StatusServiceUnavailable, "text/html", "<html>")
	defer s.Close()

	c, err := client.New(s.URL)
	if err != nil {
		log.Print(err)
		return
	}
	_, err = c.With(client.WithRetries(0), client.WithTimeouts(5*time.Second, 0)).Invoice(context.Background(), "inv_1")
	if failed := (*client.CallError)(nil); errors.As(err, &failed) {
		fmt.Println(failed.Method, failed.Path, "failed after", failed.Attempts, "attempt")
	}
	// Output: GET /api/invoices/inv_1 failed after 1 attempt
}

func ExampleParseAmount() {
	amount, err := client.ParseAmount("4.90", 6)
	fmt.Println(amount, err)
	_, err = client.ParseAmount("4,90", 6)
	fmt.Println(err)
	// Output:
	// 4900000 <nil>
	// client: an amount must be a plain decimal number, such as 12.34; it is "4,90"
}

func ExampleFormatAmount() {
	text, err := client.FormatAmount("4900000", 6, 2)
	fmt.Println(text, err)
	// Output: 4.90 <nil>
}

func ExampleWebhookHandler() {
	hooks := client.WebhookHandler{
		Secrets: []string{"whsec_4e1b0f6c9d2a7385"},
		InvoicePaid: func(_ context.Context, invoice apitypes.PaidInvoice) error {
			fmt.Println("ship", invoice.ID)
			return nil
		},
	}
	body := `{"id":"evt_1","type":"invoice.paid","createdAt":1700000000,"data":{"invoice":{"id":"inv_1"}}}`
	r := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	r.Header.Set(webhook.HeaderSignature, webhook.Sign("whsec_4e1b0f6c9d2a7385", time.Now(), []byte(body)))
	w := httptest.NewRecorder()
	hooks.ServeHTTP(w, r)
	fmt.Println("answered", w.Code)
	// Output:
	// ship inv_1
	// answered 204
}
