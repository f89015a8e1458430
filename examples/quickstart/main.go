package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

func main() {
	shop, addr, secret := client.Must(client.FromEnv()), client.MustEnv("ADDR"), client.MustEnv("WEBHOOK_SECRET")
	created, err := shop.CreateInvoice(context.Background(), apitypes.CreateInvoiceRequest{
		Amount: "4900000", Currency: "USDC", ChainKey: "local", ExpiresAt: time.Now().Add(time.Hour).Unix()})
	if err != nil {
		log.Fatal(err)
	}
	log.Println("pay at", created.CheckoutPage)
	paid := func(_ context.Context, i apitypes.PaidInvoice) error { log.Println("paid", i.ID); return nil }
	log.Fatal(http.ListenAndServe(addr, client.MustWebhookHandler(client.WebhookHandler{InvoicePaid: paid}, secret)))
}
