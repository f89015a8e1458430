package dev

import (
	"bytes"
	_ "embed" // for the page and its style sheet
	"html/template"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

//go:embed landing.html
var landingText string

//go:embed landing.css
var landingStyle []byte

var landingPage = template.Must(template.New("landing").Parse(landingText))

// landingPolicy allows the page to use its style sheet and its form.
const landingPolicy = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// A sample invoice.
const (
	sampleAmount   = "4900000"
	sampleLifetime = time.Hour
)

// landing serves the page at the world's root: what runs, and links to continue.
type landing struct {
	info Info
	now  func() time.Time
}

// routes returns the routes of the page, of its style sheet and of its form.
func (l landing) routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /{$}":           http.HandlerFunc(l.page),
		"GET /dev/style.css": http.HandlerFunc(style),
		"POST /dev/invoices": http.NewCrossOriginProtection().Handler(http.HandlerFunc(l.create)),
	}
}

func (l landing) page(w http.ResponseWriter, _ *http.Request) {
	var page bytes.Buffer
	if err := landingPage.Execute(&page, l.info); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Security-Policy", landingPolicy)
	send(w, "text/html; charset=utf-8", page.Bytes())
}

func style(w http.ResponseWriter, _ *http.Request) { send(w, "text/css; charset=utf-8", landingStyle) }

func send(w http.ResponseWriter, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(body) // the browser that would see the error has gone
}

// create creates a sample invoice, through the API, and redirects to its checkout.
func (l landing) create(w http.ResponseWriter, r *http.Request) {
	api, err := client.New(l.info.BaseURL)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	made, err := api.CreateInvoice(r.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: l.info.Merchant.ID, MerchantAddress: l.info.Merchant.Address, Amount: sampleAmount, Currency: "USDC", ChainKey: l.info.Chain.ChainKey,
		LineItems: []apitypes.LineItem{{Label: "Coffee and cake", Amount: sampleAmount}}, ExpiresAt: l.now().Add(sampleLifetime).Unix(),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	http.Redirect(w, r, made.CheckoutURL, http.StatusSeeOther)
}
