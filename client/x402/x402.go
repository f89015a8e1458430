// Package x402 charges for the routes of an HTTP server with the x402 protocol and Quittance as the facilitator.
// Programs pay with packages such as npm's @x402/fetch.
//
//	charge, err := x402.New(x402.Config{
//		Client:  quittance, // with a merchant's key
//		Network: "eip155:8453",
//		Asset:   "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
//		PayTo:   "0x…", // an address of the merchant
//		Name:    "USD Coin", Version: "2",
//	})
//	http.Handle("GET /forecast", charge.Handler(x402.Price{Amount: "10000"}, forecast))
//
// A request without a payment is answered with 402. With a payment, the payment is verified, the route's handler runs,
// the payment is settled, and then the handler's response is released. A response with a status of 400 or more is
// released without a charge.
//
// The answer 402 has a secret in extra.clientSecret, which clients return with their payment. Without it the payment
// cannot be repeated by others, although the chain shows everything else in it.
//
// While the outcome of a payment is not known, the answer is 402 with the reason settlement_pending and without new
// requirements. A client then repeats the same payment, and is charged once; the same process releases the response then,
// even if the facilitator's answer was lost. If the client returns its secret, a response of GET or HEAD is released three
// times, because one may be lost. Others are released once: the payment names the resource by its URL, not by the
// request's body. Set Config.BaseURL if several servers are paid at one address.
package x402

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

// Headers of the protocol. Each carries one message as JSON in base64.
const (
	HeaderRequired  = "PAYMENT-REQUIRED"
	HeaderSignature = "PAYMENT-SIGNATURE"
	HeaderResponse  = "PAYMENT-RESPONSE"
)

// Version is the version of the protocol.
const Version = 2

// Pending is the reason while the outcome of a payment is not known.
const Pending = "settlement_pending"

// Defaults and limits.
const (
	// DefaultTimeout is how long a payment may take. MinTimeout and MaxTimeout are the limits of Config.Timeout.
	DefaultTimeout = time.Minute
	MinTimeout     = 20 * time.Second
	MaxTimeout     = time.Hour
	// DefaultMaxResponse bounds the response of a handler, which is kept in memory until
	// the payment is settled, in bytes.
	DefaultMaxResponse = 1 << 20
	// SettleTimeout bounds the settlement, including repetitions.
	SettleTimeout = time.Minute
	// maxHeader bounds the header of a payment, in bytes.
	maxHeader = 12 << 10
)

// Config is the configuration of a Middleware. Client, Network, Asset, PayTo, Name and
// Version are required.
type Config struct {
	Client  *client.Client // with a key of the merchant that has the scopes invoices:read and invoices:write
	Network string         // the chain in CAIP-2, such as eip155:8453
	Asset   string         // the contract of the token
	PayTo   string         // an address of the merchant
	Name    string         // of the token's EIP-712 domain, such as USD Coin
	Version string         // of the token's EIP-712 domain, such as 2
	// BaseURL is the public URL of the server, without a trailing slash. By default it is taken from each request.
	BaseURL     string
	Timeout     time.Duration // 0 is DefaultTimeout
	MaxResponse int           // 0 is DefaultMaxResponse
	Logger      *slog.Logger  // nil is slog.Default
}

// Price is the price of a route.
type Price struct {
	Amount      string // in minor units
	Description string // optional, of the resource
	MIMEType    string // optional, of the resource
}

// Middleware charges for routes. It is safe for concurrent use.
type Middleware struct {
	cfg     Config
	unknown unknownOutcomes
}

// New returns a Middleware, or an error if the configuration is incomplete.
func New(cfg Config) (*Middleware, error) {
	if cfg.Client == nil {
		return nil, errors.New("x402: Config.Client is required")
	}
	for name, value := range map[string]string{"Network": cfg.Network, "Asset": cfg.Asset, "PayTo": cfg.PayTo, "Name": cfg.Name, "Version": cfg.Version} {
		if value == "" {
			return nil, fmt.Errorf("x402: Config.%s is required", name)
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Timeout < MinTimeout || cfg.Timeout > MaxTimeout {
		return nil, fmt.Errorf("x402: Config.Timeout is %s; want %s to %s", cfg.Timeout, MinTimeout, MaxTimeout)
	}
	if cfg.MaxResponse == 0 {
		cfg.MaxResponse = DefaultMaxResponse
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Middleware{cfg: cfg}, nil
}

// Handler returns a handler that charges the price for each response of next.
func (m *Middleware) Handler(p Price, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := m.requirements(p)
		offered := r.Header.Values(HeaderSignature)
		if len(offered) == 0 {
			m.require(w, r, p, want, HeaderSignature+" header is required")
			return
		}
		payload, err := parsePayload(offered)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if !isFor(payload.Accepted, want) {
			m.require(w, r, p, want, "No matching payment requirements")
			return
		}
		resource := m.resource(r, p)
		payload.Resource = &resource // whatever resource the client names
		if secret, named := payload.Accepted.Extra["clientSecret"]; named && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			want.Extra["clientSecret"] = secret // so that a payment that is repeated gets its response again
		}
		m.serve(w, r, p, apitypes.X402Request{X402Version: Version, PaymentPayload: payload, PaymentRequirements: want}, next)
	})
}

// serve verifies a payment, runs the handler, settles the payment and releases the
// handler's response.
func (m *Middleware) serve(w http.ResponseWriter, r *http.Request, p Price, payment apitypes.X402Request, next http.Handler) {
	id := sha256.Sum256([]byte(encode(payment)))
	attempt, repeated := m.unknown.take(id)
	if !repeated {
		verified, err := m.cfg.Client.VerifyX402(r.Context(), payment)
		if err != nil {
			m.cfg.Logger.ErrorContext(r.Context(), "x402 payment not verified", "err", err)
			http.Error(w, "the payment could not be verified; nothing was charged", http.StatusBadGateway)
			return
		}
		if !verified.IsValid {
			m.require(w, r, p, payment.PaymentRequirements, verified.InvalidReason)
			return
		}
		attempt = settlement{key: rand.Text(), payer: verified.Payer}
	}
	defer func() {
		if attempt.unknown {
			m.unknown.keep(id, attempt)
		}
	}()
	held := &heldResponse{header: make(http.Header), limit: m.cfg.MaxResponse}
	next.ServeHTTP(held, r.WithContext(context.WithValue(r.Context(), payerKey{}, attempt.payer)))
	if held.exceeded {
		m.cfg.Logger.ErrorContext(r.Context(), "x402 response exceeds the limit, nothing was charged", "path", r.URL.Path, "limit", m.cfg.MaxResponse)
		http.Error(w, "the response is too large", http.StatusInternalServerError)
		return
	}
	if held.failed() {
		held.release(w)
		return
	}
	settled := m.settle(r.Context(), payment, attempt.key)
	attempt.unknown = settled.ErrorReason == Pending
	w.Header().Set(HeaderResponse, encode(settled))
	switch {
	case settled.Success:
		held.keepPrivate()
		held.release(w)
	case settled.ErrorReason == Pending:
		w.Header().Set("Retry-After", "1")
		writeJSON(w, settled)
	default:
		m.require(w, r, p, payment.PaymentRequirements, settled.ErrorReason)
	}
}

// settle settles a payment by an idempotency key, and repeats it until the outcome is known or SettleTimeout is
// over. The client's disconnection does not end it.
func (m *Middleware) settle(ctx context.Context, payment apitypes.X402Request, key string) apitypes.X402SettleResponse {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		settled, err := m.cfg.Client.With(client.IdempotencyKey(key)).SettleX402(ctx, payment)
		if err == nil && settled.ErrorReason != Pending {
			return settled
		}
		if err != nil {
			m.cfg.Logger.ErrorContext(ctx, "x402 settlement failed, will retry", "err", err)
			settled = apitypes.X402SettleResponse{ErrorReason: Pending, Network: payment.PaymentRequirements.Network}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return settled
		}
	}
}

type payerKey struct{}

// Payer returns the account that pays for the request, or "" outside of a charged route.
func Payer(ctx context.Context) string {
	payer, _ := ctx.Value(payerKey{}).(string)
	return payer
}

// requirements returns the requirements for a payment of the price.
func (m *Middleware) requirements(p Price) apitypes.X402PaymentRequirements {
	return apitypes.X402PaymentRequirements{
		Scheme: "exact", Network: m.cfg.Network, Amount: p.Amount, Asset: m.cfg.Asset, PayTo: m.cfg.PayTo,
		MaxTimeoutSeconds: int64(m.cfg.Timeout / time.Second), Extra: map[string]any{"name": m.cfg.Name, "version": m.cfg.Version},
	}
}

// isFor reports whether the requirements that a client has accepted are the route's.
func isFor(accepted, want apitypes.X402PaymentRequirements) bool {
	return accepted.Scheme == want.Scheme && accepted.Network == want.Network && accepted.Amount == want.Amount &&
		strings.EqualFold(accepted.Asset, want.Asset) && strings.EqualFold(accepted.PayTo, want.PayTo)
}

// resource describes the requested resource.
func (m *Middleware) resource(r *http.Request, p Price) apitypes.X402Resource {
	base := m.cfg.BaseURL
	if base == "" {
		base = "http://" + r.Host
		if r.TLS != nil {
			base = "https://" + r.Host
		}
	}
	return apitypes.X402Resource{URL: base + r.URL.RequestURI(), Description: p.Description, MimeType: p.MIMEType}
}

// paymentRequired is the message of an answer with status 402 that asks for a payment.
type paymentRequired struct {
	Version  int                                `json:"x402Version"`
	Error    string                             `json:"error"`
	Resource apitypes.X402Resource              `json:"resource"`
	Accepts  []apitypes.X402PaymentRequirements `json:"accepts"`
}

// require answers 402 with the requirements for a payment.
func (m *Middleware) require(w http.ResponseWriter, r *http.Request, p Price, want apitypes.X402PaymentRequirements, reason string) {
	want.Extra = maps.Clone(want.Extra)
	want.Extra["clientSecret"] = rand.Text()
	required := paymentRequired{Version, reason, m.resource(r, p), []apitypes.X402PaymentRequirements{want}}
	w.Header().Set(HeaderRequired, encode(required))
	writeJSON(w, required)
}

// writeJSON answers 402 with a message.
func writeJSON(w http.ResponseWriter, message any) {
	text, _ := json.Marshal(message) //nolint:errchkjson // the messages of the protocol always encode
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusPaymentRequired)
	_, _ = w.Write(text) // the client may have disconnected
}

// encode returns a message as the value of a header.
func encode(message any) string {
	text, _ := json.Marshal(message) //nolint:errchkjson // the messages of the protocol always encode
	return base64.StdEncoding.EncodeToString(text)
}

// parsePayload parses the header of a payment.
func parsePayload(values []string) (p apitypes.X402PaymentPayload, err error) {
	if len(values) != 1 || len(values[0]) > maxHeader {
		return p, fmt.Errorf("the header %s must be given once, with at most %d bytes", HeaderSignature, maxHeader)
	}
	text, err := base64.StdEncoding.DecodeString(values[0])
	if err != nil {
		return p, fmt.Errorf("the header %s must be base64", HeaderSignature)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("the header %s must be a payment of the x402 protocol", HeaderSignature)
	}
	return p, nil
}
