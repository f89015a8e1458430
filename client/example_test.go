package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/quittance/quittance/client"
)

func ExampleClient_CreateInvoice() {
	// A service that finds something wrong, so that the example needs no other.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"status":400,"code":"invalid_field","field":"amount","detail":"amount must be more than 0."}`)
	}))
	defer service.Close()

	c, err := client.New(service.URL)
	if err != nil {
		log.Fatal(err)
	}
	created, err := c.CreateInvoice(context.Background(), client.CreateInvoiceRequest{
		MerchantID:      "acme",
		MerchantAddress: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		Amount:          "0",
		Currency:        "USDC",
		ChainKey:        "base",
		ExpiresAt:       1764000000,
	}, client.IdempotencyKey("order-10017"))
	if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Code == client.CodeInvalidField {
		fmt.Println(refused.Field, "is wrong:", refused.Detail)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("pay at", c.URL(created.CheckoutURL))
	// Output: amount is wrong: amount must be more than 0.
}

func ExampleClient_Payments() {
	c, err := client.New("http://127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	for payment, err := range c.Payments(context.Background(), client.PaymentFilter{MerchantID: "acme"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(payment.InvoiceID, payment.Amount, payment.TxHash)
	}
}
