package dev

import (
	"bytes"
	"cmp"
	_ "embed" // for the page and its style sheet
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/chain"
)

//go:embed landing.html
var landingText string

//go:embed landing.css
var landingStyle []byte

var landingPage = template.Must(template.New("landing").Parse(landingText))

// landingPolicy allows the page to use its style sheet.
const landingPolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'"

// A sample invoice.
const (
	sampleAmount   = "4900000"
	sampleLifetime = time.Hour
)

// landing serves the page at the world's root, and the links with which people begin. Each link is one click: it signs
// in or creates an invoice, and redirects.
type landing struct {
	guide Guide
	clock *worldClock
}

// routes returns the routes of the page, of its style sheet and of the links.
func (l landing) routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /{$}":           http.HandlerFunc(l.page),
		"GET /dev/style.css": http.HandlerFunc(style),
		"GET /dev/checkout":  ownLink(l.create),
		"GET /dev/merchant":  ownLink(l.signIn(l.guide.Merchant.Key, "/dashboard")),
		"GET /dev/operator":  ownLink(l.signIn("", "/dashboard")),
		"GET /dev/scenarios": ownLink(l.signIn("", "/dashboard/scenarios")),
	}
}

// ownLink refuses requests that a page of another site has caused, because h changes something.
func ownLink(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
			http.Error(w, "Another site led here. Open this address yourself.", http.StatusForbidden)
			return
		}
		h(w, r)
	})
}

func (l landing) page(w http.ResponseWriter, _ *http.Request) {
	var page bytes.Buffer
	if err := landingPage.Execute(&page, struct {
		Guide
		Clock ClockInfo
	}{l.guide, l.clock.info()}); err != nil {
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
	api, err := client.New(l.guide.BaseURL)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	made, err := api.CreateInvoice(r.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: l.guide.Merchant.ID, MerchantAddress: l.guide.Merchant.Address, Amount: sampleAmount, Currency: chain.USDC, ChainKey: l.guide.Chain.ChainKey,
		LineItems: []apitypes.LineItem{{Label: "Coffee and cake", Amount: sampleAmount}}, ExpiresAt: l.clock.now().Add(sampleLifetime).Unix(),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	http.Redirect(w, r, made.CheckoutURL, http.StatusSeeOther)
}

// signIn returns a handler that signs the browser in at the dashboard with a key, or as the operator without one, and
// redirects to a page of the dashboard.
func (l landing) signIn(key, next string) http.HandlerFunc {
	form := url.Values{"key": {key}, "next": {next}}.Encode()
	return func(w http.ResponseWriter, r *http.Request) {
		ask, err := http.NewRequestWithContext(r.Context(), http.MethodPost, l.guide.BaseURL+"/dashboard/sign-in", strings.NewReader(form))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		ask.Header.Set("User-Agent", r.UserAgent())
		transport := http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: askTimeout}
		answer, err := transport.RoundTrip(ask)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = answer.Body.Close() }() // its bytes were read
		for _, name := range []string{"Content-Type", "Location", "Set-Cookie"} {
			w.Header()[name] = answer.Header[name]
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, io.LimitReader(answer.Body, maxInfo)) // the browser that would see the error has gone
	}
}

// Guide is what the page and the terminal show of a world.
type Guide struct {
	Info
	Program    string // of Config, or quittance
	Receiver   string // host and port of the receiver of the commands
	WebhookURL string // of Config
	Dir        string // of Config
}

// defaultReceiver is where a receiver listens by default.
const defaultReceiver = "127.0.0.1:9000"

// newGuide returns the guide to the world of a configuration.
func newGuide(info Info, c Config) Guide {
	g := Guide{info, cmp.Or(c.Program, "quittance"), defaultReceiver, c.WebhookURL, c.Dir}
	if at, err := url.Parse(c.WebhookURL); err == nil && at.Port() != "" {
		g.Receiver = at.Host
	}
	return g
}

// Environment returns the environment variables that the README's programs want.
func (g Guide) Environment() []string {
	_, port, _ := net.SplitHostPort(g.Receiver) // newGuide has checked it
	return []string{
		"QUITTANCE_URL=" + g.BaseURL, "QUITTANCE_API_KEY=" + g.Merchant.Key,
		"WEBHOOK_SECRET=" + g.Merchant.WebhookSecret, "ADDR=" + g.Receiver, "PORT=" + port,
	}
}
