package checkout

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Limits of the page.
const (
	// MaxID is the length of the longest invoice id that is looked up, in bytes.
	MaxID = 64
	// MaxPayments is how many payments the page lists, the newest.
	MaxPayments = 20
	// RefreshOpen is how long the page waits until it asks again what became of
	// an invoice that can still change its state.
	RefreshOpen = 2 * time.Second
	// RefreshFinal is the same for an invoice that cannot: money may come late,
	// or go back.
	RefreshFinal = 15 * time.Second
	// RefreshPlain is how long a browser without scripts shows the page until
	// it loads it again.
	RefreshPlain = 10 * time.Second
)

// Reader is what the page reads. store.Store is one.
type Reader interface {
	// Invoice returns one invoice, or store.ErrNotFound.
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	// NewestPayments returns the invoice's payments that are highest on the
	// chain, at most so many, the highest first.
	NewestPayments(ctx context.Context, invoiceID string, limit int) ([]store.PaymentRow, error)
	// PaymentsOfInvoices returns the payments attributed to the invoices. It is
	// asked only where an invoice's sums are stale.
	PaymentsOfInvoices(ctx context.Context, ids []string) ([]store.PaymentRow, error)
	// PaymentsOfTransaction returns the payments that a transaction made on any
	// of the chains, in the order of its logs.
	PaymentsOfTransaction(ctx context.Context, chainKeys []string, tx invoice.Hash) ([]store.PaymentRow, error)
	// InvoiceClaims reports whether a claim to the payment is kept for the
	// invoice.
	InvoiceClaims(ctx context.Context, invoiceID, paymentID string) (bool, error)
	// WhichUndecided returns those of the payments that wait for older blocks to
	// be read, by id.
	WhichUndecided(ctx context.Context, paymentIDs []string) ([]string, error)
	// Cursor returns how far a chain is read, or store.ErrNotFound.
	Cursor(ctx context.Context, chainKey string) (store.Cursor, error)
}

// TestWallet pays an invoice with money that is worth nothing and returns the
// transaction's hash. It need not wait until that is mined.
type TestWallet func(ctx context.Context, inv invoice.Invoice) (txHash string, err error)

// Config is what a Checkout is made of. All of it must be set, but TestWallet
// may be nil: then nobody is offered to pay with it. Without an Inspector a
// payer's question about a transaction is answered from what is stored alone,
// and without Claims nobody is asked to claim a payment.
type Config struct {
	Reader     Reader
	Chains     []chain.Chain // those that the service is configured with
	Inspector  Inspector
	Claims     Claims
	TestWallet TestWallet // for the development chain alone
	// Origins refuses unsafe requests of other origins; nil takes those of the
	// request's own host alone.
	Origins *http.CrossOriginProtection
	Now     func() time.Time
	Logger  *slog.Logger
}

// Checkout answers the requests for the page.
type Checkout struct {
	reader     Reader
	chains     map[string]chain.Chain
	chainKeys  []string
	inspector  Inspector
	lookups    limiter // of what the inspector is asked
	claims     Claims
	claimed    limiter       // of the claims
	inspecting chan struct{} // holds an element for each lookup under way
	testWallet TestWallet
	sameOrigin *http.CrossOriginProtection
	now        func() time.Time
	logger     *slog.Logger
}

// New returns a Checkout.
func New(c Config) *Checkout {
	chains := make(map[string]chain.Chain, len(c.Chains))
	for _, ch := range c.Chains {
		chains[ch.Key] = ch
	}
	return &Checkout{
		reader: c.Reader, chains: chains, chainKeys: keysOf(c.Chains), testWallet: c.TestWallet,
		claims: c.Claims, inspector: c.Inspector, inspecting: make(chan struct{}, MaxLookups),
		sameOrigin: cmp.Or(c.Origins, http.NewCrossOriginProtection()), now: c.Now, logger: c.Logger,
	}
}

// Routes adds all routes to mux. Their errors are pages; what no route takes and
// panics are left to the caller, who can answer with NotFound, MethodNotAllowed
// and WriteError.
func (c *Checkout) Routes(mux *http.ServeMux) {
	mux.Handle("GET /checkout/{id}", c.serve(c.page))
	mux.Handle("GET /checkout/{id}/status", c.serve(c.status))
	mux.Handle("GET /checkout/{id}/check", c.serve(c.check))
	for _, a := range assets {
		mux.Handle("GET "+a.Path, c.serve(c.asset(a)))
	}
	if c.claims != nil {
		mux.Handle("POST /checkout/{id}/claim", c.serve(c.claim))
	}
	if c.testWallet != nil {
		mux.Handle("POST /checkout/{id}/test-payment", c.serve(c.payFromTestWallet))
	}
}
