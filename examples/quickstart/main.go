package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

func main() {
	created, err := client.Must(client.FromEnv()).CreateInvoice(context.Background(), apitypes.CreateInvoiceRequest{
		Amount: "4900000", Currency: "USDC", ChainKey: "local", ExpiresAt: time.Now().Add(time.Hour).Unix()})
	if err != nil {
		log.Fatal(err)
	}
	log.Println("pay at", created.CheckoutPage)
	paid := func(_ context.Context, i apitypes.PaidInvoice) error { return os.WriteFile(i.ID+".paid", nil, 0o600) }
	log.Fatal(http.ListenAndServe(os.Getenv("ADDR"), client.MustWebhookHandler(client.WebhookHandler{InvoicePaid: paid}, os.Getenv("WEBHOOK_SECRET"))))
}
