package checkout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/webtest"
)

// Creation and expiry of the tests' invoice, and the default time.
const (
	created    = 1_790_000_000 // 21 September 2026, 14:13:20 UTC
	expires    = created + 900
	defaultNow = created + 7
)

const testID = "inv_01jz8x4kq2v7r9m3t5n6p8w0ya"

var (
	merchantAddress = chain.MustAddress("0x52908400098527886E0F7030069857D2E4169EE7")
	payerAddress    = chain.MustAddress("0x8617E340B3D01FA5F11F306F4090FD50E238070D")
	tokenAddress    = chain.MustAddress("0xde709f2102306220921060314715629080e2fb77")
	registryAddress = chain.MustAddress("0x27b1fdb04752bbc536007a920d24acb045561c26")
)

func localChain() chain.Chain {
	ch, _ := chain.Lookup(chain.Local)
	ch.Registry = registryAddress
	ch.Tokens = []chain.Token{{Currency: chain.USDC, Address: tokenAddress, Decimals: 6}}
	return ch
}

// openInvoice returns an open invoice over 4.90 USDC.
func openInvoice() invoice.Invoice {
	inv := invoice.Invoice{
		Terms: invoice.Terms{Merchant: merchantAddress, Token: tokenAddress, Amount: invoice.NewAmount(4_900_000), ExpiresAt: invoice.Unix(expires)},
		ID:    testID, MerchantID: "corner-cafe", Currency: chain.USDC, ChainKey: chain.Local, Status: invoice.Open,
		LineItems:      []invoice.LineItem{{Label: "Flat white", Amount: invoice.NewAmount(3_400_000)}, {Label: "Cinnamon bun", Amount: invoice.NewAmount(1_500_000)}},
		CreatedAt:      invoice.Unix(created),
		TransferAmount: invoice.NewAmount(4_900_123),
	}
	inv.Registry = registryAddress
	inv.CommitmentID = chain.CommitmentID(localChain().ID, registryAddress, inv.Terms, inv.ID)
	return inv
}

// payment returns a payment of the invoice in a block.
func payment(amount, block uint64, at int64, status invoice.PaymentStatus) invoice.Payment {
	return invoice.Payment{
		Transfer: invoice.Transfer{
			Position: invoice.Position{BlockNumber: block, BlockTime: invoice.Unix(at)},
			ChainKey: chain.Local, TxHash: invoice.Hash{0: 0xfe, 31: byte(block)}, Token: tokenAddress, Currency: chain.USDC,
			From: payerAddress, To: merchantAddress, Amount: invoice.NewAmount(amount),
		},
		ID: "pay_1", InvoiceID: testID, MerchantID: "corner-cafe", Method: invoice.ByTransferAmount, Status: status,
	}
}

// world is the Reader of a Checkout under test.
type world struct {
	invoice  invoice.Invoice
	payments []invoice.Payment
	// orphanedAt is when a reorg dropped the orphaned ones, in Unix seconds; 0 is defaultNow.
	orphanedAt int64
	others     []invoice.Payment // of other invoices, or unattributed
	nodes      Inspector
	progress   func(string) Progress
	claims     claims
	reports    Reports
	cursor     ledger.Cursor
	chain      chain.Chain
	now        int64
	err        error              // of every read
	unread     bool               // the chain was never indexed
	reported   []string           // transactions that are not recorded, with their block
	use        invoice.PaymentUse // of unattributed payments; "" is undecided
	waived     bool               // a person waived the rest of the amount
	undecided  bool               // payments wait for older blocks
	stale      bool               // the invoice's sums are stale
	wallet     TestWallet
	merchants  Merchants
	refunds    []invoice.RefundRecord // confirmed ones
	mails      Mails
	publicURL  string
}

func newWorld() *world {
	return &world{invoice: openInvoice(), chain: localChain(), now: defaultNow, cursor: ledger.Cursor{Indexed: invoice.Header{Number: 12}}}
}

func (w *world) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	if ctx.Err() != nil {
		return invoice.Invoice{}, ctx.Err()
	}
	if w.err == nil && id != w.invoice.ID {
		return invoice.Invoice{}, db.ErrNotFound
	}
	inv := w.invoice
	if !w.stale {
		for _, p := range w.payments {
			inv = inv.WithPayment(p)
		}
	}
	inv.Sums.Stale = w.stale
	return inv, w.err
}

func (w *world) NewestPayments(ctx context.Context, id string, limit int) ([]ledger.PaymentRow, error) {
	rows, err := w.PaymentsOfInvoices(ctx, []string{id})
	for i := range rows {
		rows[i].OrphanedAt = invoice.Unix(cmp.Or(w.orphanedAt, int64(defaultNow)))
	}
	slices.SortFunc(rows, func(a, b ledger.PaymentRow) int { return b.Compare(a.Position) })
	return rows[:min(limit, len(rows))], err
}

func (w *world) PaymentsOfInvoices(_ context.Context, ids []string) ([]ledger.PaymentRow, error) {
	var rows []ledger.PaymentRow
	for _, p := range w.payments {
		if slices.Contains(ids, p.InvoiceID) {
			rows = append(rows, ledger.PaymentRow{Payment: p})
		}
	}
	return rows, w.err
}

func (w *world) PaymentsOfTransaction(_ context.Context, _ []string, tx invoice.Hash) ([]ledger.PaymentRow, error) {
	var rows []ledger.PaymentRow
	for _, p := range slices.Concat(w.payments, w.others) {
		if p.TxHash == tx {
			row := ledger.PaymentRow{Payment: p, Use: w.use}
			if !p.Attributed() && w.use == "" {
				row.Use = invoice.UseUndecided
			}
			rows = append(rows, row)
		}
	}
	return rows, w.err
}

func (w *world) UnattributedTo(_ context.Context, inv invoice.Invoice, limit int) (rows []ledger.PaymentRow, err error) {
	for _, p := range w.others {
		if !p.Attributed() && p.To == inv.Merchant && len(rows) < limit {
			rows = append(rows, ledger.PaymentRow{Payment: p})
		}
	}
	return rows, w.err
}

func (w *world) NewestUnattributed(ctx context.Context, _ string, limit int) ([]ledger.PaymentRow, error) {
	return w.UnattributedTo(ctx, w.invoice, limit)
}

func (w *world) InvoiceClaims(_ context.Context, invoiceID, paymentID string) (bool, error) {
	return w.claims.kept == invoiceID+" "+paymentID, w.err
}

func (w *world) IsWaived(context.Context, invoice.Invoice) (bool, error) { return w.waived, w.err }

func (w *world) WhichUndecided(_ context.Context, ids []string) ([]string, error) {
	if w.undecided {
		return ids, w.err
	}
	return nil, w.err
}

func (w *world) Cursor(context.Context, string) (ledger.Cursor, error) {
	if w.unread {
		return ledger.Cursor{}, db.ErrNotFound
	}
	return w.cursor, w.err
}

func (w *world) ReportUnread(_ context.Context, chainKey string, tx invoice.Hash, block uint64, reason ledger.UnreadReason) error {
	w.reported = append(w.reported, fmt.Sprint(chainKey, " ", tx, " ", block, " ", reason))
	return w.err
}

// config returns the configuration of a Checkout that reads from the world.
func (w *world) config() Config {
	return Config{
		Reader: w, Merchants: w.merchants, Chains: []chain.Chain{w.chain}, Inspector: w.nodes, Unread: w, Claims: &w.claims, Reports: w.reports, TestWallet: w.wallet,
		Mails: w.mails, PublicURL: w.publicURL, MailURL: w.publicURL, Progress: w.progress, Now: w.defaultNow, Logger: slog.New(slog.DiscardHandler),
	}
}

func (w *world) checkout() *Checkout { return New(w.config()) }

func (w *world) handler() http.Handler { return handlerOf(w.checkout()) }

// handlerOf returns a handler of a checkout's routes.
func handlerOf(c *Checkout) http.Handler {
	mux := http.NewServeMux()
	for _, r := range c.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	return mux
}

func (w *world) defaultNow() time.Time { return time.Unix(w.now, 0) }

// comingFrom returns a request of a client at an address with a port.
func comingFrom(client string, r *http.Request) *http.Request {
	r.RemoteAddr = client
	return r.WithContext(limits.NewContext(r.Context(), limits.Proxies{}.Client(r)))
}

// from returns a request of a client at an address with a port.
func from(client string) *http.Request {
	return comingFrom(client, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", nil))
}

// hosts returns n client addresses.
func hosts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("198.51.%d.%d:1", 100+i/256, i%256))
	}
	return all
}

// askFrom sends a request from a client address and returns the status.
func askFrom(h http.Handler, client, path string) int {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, comingFrom(client, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://pay.example"+path, nil)))
	return answer.Code
}

// postForm sends a form from a client address.
func postForm(h http.Handler, client, path string, form url.Values, header ...string) *httptest.ResponseRecorder {
	r := comingFrom(client, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://pay.example"+path, strings.NewReader(form.Encode())))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

func (w *world) ask(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://pay.example"+path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	w.handler().ServeHTTP(answer, r)
	return answer
}

// page returns the invoice's page, parsed.
func (w *world) page(t *testing.T) *element {
	t.Helper()
	answer := w.ask(http.MethodGet, "/checkout/"+w.invoice.ID)
	if answer.Code != http.StatusOK {
		t.Fatalf("the page's status is %d, want 200: %s", answer.Code, answer.Body)
	}
	return webtest.Parse(t, answer.Body.String())
}

// status returns the invoice's status JSON.
func (w *world) status(t *testing.T) statusData {
	t.Helper()
	answer := w.ask(http.MethodGet, "/checkout/"+w.invoice.ID+"/status")
	var s statusData
	if err := json.Unmarshal(answer.Body.Bytes(), &s); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", answer.Code, err, answer.Body)
	}
	return s
}

// element is an element of a page.
type element = webtest.Element
