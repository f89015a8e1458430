// Package samples has the code that the reference of the REST interface shows: functions with the names of operations.
package samples

import (
	"context"
	_ "embed" // for the sources
	"log"
	"os"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

// Go is this file, and TypeScript has the same functions in TypeScript.
//
//go:embed samples.go
var Go string

// TypeScript is described at Go.
//
//go:embed samples.ts
var TypeScript string

// CreateInvoice creates an invoice.
func CreateInvoice(ctx context.Context, c *client.Client) error {
	created, err := c.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{
		Amount: "4900000", Currency: "USDC", ChainKey: "base", ExpiresAt: time.Now().Add(time.Hour).Unix(), Reference: "order-1001",
	})
	if err != nil {
		return err
	}
	log.Println("pay at", created.CheckoutPage)
	return nil
}

// GetInvoice reads an invoice.
func GetInvoice(ctx context.Context, c *client.Client) error {
	invoice, err := c.Invoice(ctx, "inv_06h09bzqhdtmdc03cxwgxg98ar")
	if err != nil {
		return err
	}
	log.Println(invoice.Status, invoice.AmountPaid)
	return nil
}

// ListInvoices lists invoices.
func ListInvoices(ctx context.Context, c *client.Client) error {
	for invoice, err := range c.Invoices(ctx, client.InvoiceFilter{Status: apitypes.StatusPaid}) {
		if err != nil {
			return err
		}
		log.Println(invoice.ID, invoice.Amount)
	}
	return nil
}

// VoidInvoice voids an invoice.
func VoidInvoice(ctx context.Context, c *client.Client) error {
	invoice, err := c.VoidInvoice(ctx, "inv_06h09bzqhdtmdc03cxwgxg98ar")
	if err != nil {
		return err
	}
	log.Println(invoice.Status)
	return nil
}

// ListPayments lists payments.
func ListPayments(ctx context.Context, c *client.Client) error {
	for payment, err := range c.Payments(ctx, client.PaymentFilter{ChainKey: "base", IncludePending: true}) {
		if err != nil {
			return err
		}
		log.Println(payment.ID, payment.InvoiceID, payment.Amount)
	}
	return nil
}

// AttributePayment attributes a payment to an invoice.
func AttributePayment(ctx context.Context, c *client.Client) error {
	payment, err := c.AttributePayment(ctx, "pay_4f1dj9ggghknk478whdraf4k5r", apitypes.AttributePaymentRequest{
		InvoiceID: "inv_06h09bzqhdtmdc03cxwgxg98ar", By: "Maria", Note: "the payer sent the receipt",
	})
	if err != nil {
		return err
	}
	log.Println(payment.InvoiceID)
	return nil
}

// PrepareRefund prepares a refund.
func PrepareRefund(ctx context.Context, c *client.Client) error {
	prepared, err := c.PrepareRefund(ctx, "pay_4f1dj9ggghknk478whdraf4k5r", apitypes.PrepareRefundRequest{Amount: "1500000", Reason: "returned"})
	if err != nil {
		return err
	}
	log.Println(prepared.Refund.ID, prepared.Refund.Status)
	return nil
}

// CreatePaymentLink creates a payment link.
func CreatePaymentLink(ctx context.Context, c *client.Client) error {
	link, err := c.CreatePaymentLink(ctx, apitypes.CreatePaymentLinkRequest{Title: "Coffee", Amount: "4900000", Currency: "USDC", ChainKey: "base", ExpiresIn: 3600})
	if err != nil {
		return err
	}
	log.Println(link.ID, link.Slug)
	return nil
}

// StreamEvents follows events.
func StreamEvents(ctx context.Context, c *client.Client) error {
	for event, err := range c.StreamEvents(ctx, client.EventFilter{Type: apitypes.EventInvoicePaid}, client.AfterEnd) {
		if err != nil {
			return err
		}
		log.Println(event.Event.Type, event.Position)
	}
	return nil
}

// RedeliverEvent delivers an event again.
func RedeliverEvent(ctx context.Context, c *client.Client) error {
	event, err := c.RedeliverEvent(ctx, "evt_06gznj01jxvrf4qmr9qzk1g6wm")
	if err != nil {
		return err
	}
	log.Println(event.ID())
	return nil
}

// PutWebhook sets the webhook endpoint.
func PutWebhook(ctx context.Context, c *client.Client) error {
	_, secret, err := c.PutWebhook(ctx, "acme", "https://shop.example/webhooks")
	if err != nil {
		return err
	}
	return os.WriteFile("webhook.secret", []byte(secret), 0o600) // it is shown once
}

// CreateMerchant creates a merchant.
func CreateMerchant(ctx context.Context, c *client.Client) error {
	merchant, err := c.CreateMerchant(ctx, apitypes.CreateMerchantRequest{
		ID: "acme", Name: "Acme", DefaultAddresses: map[string]apitypes.Address{"base": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
	})
	if err != nil {
		return err
	}
	log.Println(merchant.ID)
	return nil
}

// CreateKey creates a key.
func CreateKey(ctx context.Context, c *client.Client) error {
	_, secret, err := c.CreateKey(ctx, apitypes.CreateKeyRequest{Name: "shop backend", MerchantID: "acme", Scopes: []string{"standard"}})
	if err != nil {
		return err
	}
	return os.WriteFile("api.key", []byte(secret), 0o600) // it is shown once
}

// GetSettlementReport reports the payments and refunds of a period.
func GetSettlementReport(ctx context.Context, c *client.Client) error {
	report, err := c.SettlementReport(ctx, client.ReportFilter{From: "2026-11-01", To: "2026-12-01", Timezone: "Europe/Berlin"})
	if err != nil {
		return err
	}
	log.Println(len(report.Lines))
	return nil
}
