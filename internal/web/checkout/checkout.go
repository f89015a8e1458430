package checkout

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of the page.
const (
	// MaxID bounds an invoice id that is looked up, in bytes.
	MaxID = 64
	// MaxPayments bounds the payments on the page, newest first.
	MaxPayments = 20
	// MaxRefunds bounds the refunds on the page, newest first.
	MaxRefunds = 20
	// WarnBefore is how long before an invoice expires the page warns.
	WarnBefore = time.Minute
	// RefreshOpen is how often the page polls the status of an open invoice.
	RefreshOpen = 2 * time.Second
	// RefreshFinal is how often the page polls the status of a final invoice, which may still get late
	// payments and refunds.
	RefreshFinal = 15 * time.Second
	// RefreshPlain is how often a browser without scripts reloads the page.
	RefreshPlain = 10 * time.Second
	// RefreshPaying is the same while the page asks for a payment: the payer may copy from it, or type a
	// transaction hash.
	RefreshPaying = time.Minute
)

// Reader reads from the database. ledger.Reader implements it and documents the methods.
type Reader interface {
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	NewestPayments(ctx context.Context, invoiceID string, limit int) ([]ledger.PaymentRow, error)
	PaymentsOfInvoices(ctx context.Context, ids []string) ([]ledger.PaymentRow, error)
	PaymentsOfTransaction(ctx context.Context, chainKeys []string, tx invoice.Hash) ([]ledger.PaymentRow, error)
	IsWaived(ctx context.Context, inv invoice.Invoice) (bool, error)
	InvoiceClaims(ctx context.Context, invoiceID, paymentID string) (bool, error)
	WhichUndecided(ctx context.Context, paymentIDs []string) ([]string, error)
	UnattributedTo(ctx context.Context, inv invoice.Invoice, limit int) ([]ledger.PaymentRow, error)
	NewestUnattributed(ctx context.Context, chainKey string, limit int) ([]ledger.PaymentRow, error)
	RefundRecords(ctx context.Context, f ledger.RefundFilter) ([]invoice.RefundRecord, error)
	Cursor(ctx context.Context, chainKey string) (ledger.Cursor, error)
}

// Merchants finds the profiles of merchants. *access.MerchantManager implements it.
type Merchants interface {
	// Find returns a merchant. Without a profile, only its id is set.
	Find(ctx context.Context, id string) (m invoice.Merchant, known bool, err error)
	// LogoPNG returns a merchant's logo, or db.ErrNotFound.
	LogoPNG(ctx context.Context, id string) ([]byte, error)
}

// TestWallet pays an invoice with worthless tokens and returns the transaction's hash, possibly before it is mined.
type TestWallet func(ctx context.Context, inv invoice.Invoice) (txHash string, err error)

// Unread takes transactions with payments that are not stored. *ledger.Service implements it.
type Unread interface {
	// ReportUnread schedules the block of a transaction to be read again, if it was read before.
	ReportUnread(ctx context.Context, chainKey string, tx invoice.Hash, block uint64, reason ledger.UnreadReason) error
}

// Config is the configuration of a Checkout. Inspector, Claims, Refunds, TestWallet and Origins may be nil. Without
// Refunds, payers cannot name addresses. Without an Inspector, only stored payments are shown for a transaction.
// Without Claims, payments cannot be claimed. Without a TestWallet, the page does not offer it.
type Config struct {
	Reader     Reader
	Merchants  Merchants     // if nil, pages show merchants by id
	Chains     []chain.Chain // configured chains
	Inspector  Inspector
	Unread     Unread // if nil, no block is read again
	Claims     Claims
	Reports    Reports // if nil, reports by wallets are dropped
	Refunds    Refunds
	Links      Links      // nil without payment links
	Mails      Mails      // if nil, no receipts are mailed; requires MailURL
	TestWallet TestWallet // for development chains only
	// Progress returns the last results of the indexer of a chain. If nil, every chain counts as synced.
	Progress func(chainKey string) Progress
	// Feed wakes open pages; with nil, they poll. Run must be called with it.
	Feed webpage.Feed
	// MaxStreams bounds the streams of open pages in all; 0 means MaxStreams.
	MaxStreams int
	// Opened, when set, is called whenever a payer's page of an invoice is opened. It must not wait.
	Opened func(invoiceID string)
	// Refused counts requests beyond a limit.
	Refused func(limit string)
	// X402 answers requests of programs for an invoice's page. TakesX402 reports the chains on which they
	// can pay. Both may be nil.
	X402      http.Handler
	TakesX402 func(chainKey string) bool
	// Origins rejects unsafe requests of foreign origins; nil allows only the origin of the request's host.
	Origins *http.CrossOriginProtection
	// PublicURL is the base URL of the pages, without a trailing slash; empty if it is not known.
	PublicURL string
	// MailURL is the base URL of the pages in mails.
	MailURL string
	Now     func() time.Time
	// RefundNow is the clock that decides whether a refund has expired; nil is Now.
	RefundNow func() time.Time
	Rand      io.Reader // required with Links
	Logger    *slog.Logger
}

// Checkout serves the checkout pages.
type Checkout struct {
	*webpage.Pages

	conf      Config
	chains    map[string]chain.Chain
	chainKeys []string
	lookups   lookups
	claimed   *limits.Divided         // claims
	reported  *limits.Divided         // reports by wallets
	named     *limits.Divided         // addresses for refunds
	linked    *limits.Divided         // invoices of links
	mailed    *limits.Divided         // requested mails
	held      *limits.Buckets[holder] // transfer amounts of links' invoices
	open      *openPages              // nil without a feed
}

// New returns a Checkout. It panics without a Reader, a clock or a Logger.
func New(c Config) *Checkout {
	if c.Reader == nil || c.Now == nil || c.Logger == nil {
		panic("checkout: Config.Reader, Now and Logger are required")
	}
	if c.RefundNow == nil {
		c.RefundNow = c.Now
	}
	if c.Refused == nil {
		c.Refused = func(string) {}
	}
	if c.Opened == nil {
		c.Opened = func(string) {}
	}
	c.Origins = cmp.Or(c.Origins, http.NewCrossOriginProtection())
	templates()[locale.English()]() // the first payer need not wait for them
	chains := make(map[string]chain.Chain, len(c.Chains))
	for _, ch := range c.Chains {
		chains[ch.Key] = ch
	}
	if c.Progress == nil {
		c.Progress = func(string) Progress { return Progress{Synced: c.Now()} }
	}
	divided := func(name string, all, ofObject, ofClient int) *limits.Divided {
		return limits.NewDivided(limits.Quota{Name: name, All: all, OfObject: ofObject, OfClient: ofClient}, c.Now)
	}
	checkout := &Checkout{
		conf: c, chains: chains, chainKeys: db.Each(c.Chains, func(of chain.Chain) string { return of.Key }),
		lookups: lookups{
			conf: c, limit: divided("lookups", Lookups, LookupsOfInvoice, LookupsOfClient),
			inFlight: limits.NewShares[limits.Party]("lookups", MaxLookups), recent: make(map[transactionQuery]*nodeLookup),
		},
		claimed:  divided("claims", AllClaims, ClaimsOfInvoice, ClaimsOfClient),
		reported: divided("reports", AllReports, ReportsOfInvoice, ReportsOfClient),
		named:    divided("refund_addresses", AllAddresses, AddressesOfRefund, AddressesOfClient),
		linked:   divided("link_invoices", AllLinkInvoices, InvoicesOfLink, InvoicesOfClient),
		mailed:   divided("mails", AllMails, AllMails, MailsOfClient),
		held:     newHeld(c.Now),
	}
	checkout.Pages = newPages(checkout)
	if c.Feed != nil {
		checkout.open = newOpenPages(checkout)
	}
	return checkout
}

// Routes returns all routes. The caller handles panics and requests without a route, with
// NotFound, MethodNotAllowed and WriteError.
func (c *Checkout) Routes() []webpage.Route {
	all := []webpage.Route{
		c.route("GET /checkout/{id}", c.page, webpage.CallsNodes),
		c.route("GET /checkout/{id}/status", c.status),
		c.route("GET /checkout/{id}/terms", c.terms),
		c.route("GET /checkout/{id}/check", c.check, webpage.CallsNodes),
		c.route("GET /checkout/{id}/wallet", c.wallet),
		c.route("GET /checkout/{id}/logo", c.logo),
		c.route("GET /checkout/{id}/receipt", c.receipt),
	}
	all = append(all, c.route("GET /embed.js", c.embedScript), c.route("GET /checkout/static/{hash}/{file}", c.asset))
	if c.open != nil {
		all = append(all, c.route("GET /checkout/{id}/events", c.events, webpage.Long))
	}
	if c.conf.Claims != nil {
		all = append(all, c.route("POST /checkout/{id}/claim", c.claim, webpage.CallsNodes))
	}
	if c.conf.Reports != nil {
		all = append(all, c.route("POST /checkout/{id}/sent", c.sent))
	}
	if c.conf.Refunds != nil {
		all = append(all, c.route("GET /refunds/{token}", c.refundPage), c.route("POST /refunds/{token}", c.nameAddress, webpage.CallsNodes))
	}
	if c.conf.Mails != nil {
		all = append(all, c.route("POST /checkout/{id}/receipt", c.mailReceipt), c.route("GET /mails/{token}", c.stopPage), c.route("POST /mails/{token}", c.stopMails))
	}
	if c.conf.Links != nil {
		all = append(all, c.linkRoutes()...)
	}
	if c.conf.TestWallet != nil {
		all = append(all, c.route("POST /checkout/{id}/test-payment", c.payFromTestWallet))
	}
	return all
}

// route returns a route of payers.
func (c *Checkout) route(pattern string, h handler, options ...webpage.RouteOption) webpage.Route {
	if strings.HasPrefix(pattern, http.MethodPost) {
		h = withForm(h)
	}
	return webpage.Route{Pattern: pattern, Handler: c.Serve(h)}.With(webpage.Public).With(options...)
}
