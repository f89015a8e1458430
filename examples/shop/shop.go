package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

// prices are in minor units: USDC has 6 decimals.
var prices = map[string]string{"espresso": "2500000", "cake": "4900000"}

// payWithin is how long an order can be paid.
const payWithin = time.Hour

// order is a purchase.
type order struct {
	ID     string `json:"id"`
	Status string `json:"status"` // open, paid or expired
}

// shop keeps its orders in memory; a real one has a database.
type shop struct {
	quittance *client.Client
	chainKey  string

	mu     sync.Mutex
	orders map[string]order // by the ids of their invoices
}

// newShop returns the shop's pages and its webhook endpoint.
func newShop(quittance *client.Client, secret, chainKey string) http.Handler {
	s := &shop{quittance: quittance, chainKey: chainKey, orders: make(map[string]order)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.order)
	mux.HandleFunc("GET /orders/{invoice}", s.show)
	mux.Handle("POST /webhooks", client.MustWebhookHandler(client.WebhookHandler{
		InvoicePaid:    func(_ context.Context, i apitypes.PaidInvoice) error { return s.close(i.ID, "paid") },
		InvoiceExpired: func(_ context.Context, i apitypes.Invoice) error { return s.close(i.ID, "expired") },
	}, secret))
	return mux
}

// order accepts an order, and sends the customer to the checkout page.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	product := r.PostFormValue("product")
	price, ok := prices[product]
	if !ok {
		http.Error(w, "no such product", http.StatusBadRequest)
		return
	}
	id := rand.Text()
	created, err := s.quittance.CreateInvoice(r.Context(), apitypes.CreateInvoiceRequest{
		Amount: price, Currency: "USDC", ChainKey: s.chainKey, ExpiresAt: time.Now().Add(payWithin).Unix(),
		LineItems: []apitypes.LineItem{{Label: product, Amount: price}},
	}, client.IdempotencyKey(id)) // the order's id, so that it has only one invoice
	if err != nil {
		if refused := (*client.Error)(nil); errors.As(err, &refused) {
			log.Printf("order %s: %s, request %s", id, refused.Code, refused.RequestID)
		} else {
			log.Printf("order %s: %v", id, err)
		}
		http.Error(w, "the payment service does not answer, try again", http.StatusBadGateway)
		return
	}
	s.mu.Lock()
	s.orders[created.ID] = order{ID: id, Status: "open"}
	s.mu.Unlock()
	http.Redirect(w, r, created.CheckoutPage, http.StatusSeeOther)
}

// show returns an order.
func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	o, ok := s.orders[r.PathValue("invoice")]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "no such order", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(o); err != nil {
		log.Printf("write order %s: %v", o.ID, err)
	}
}

// close ends an order. Repeated events have no effect.
func (s *shop) close(invoiceID, status string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[invoiceID]
	if !ok {
		return fmt.Errorf("there is no order of %s yet", invoiceID) // the event is delivered again
	}
	o.Status = status
	s.orders[invoiceID] = o
	return nil
}
