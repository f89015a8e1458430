// Package rowtest makes rows for tests: invoices, payments, transactions and related objects.
package rowtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/webhooks"
)

// Equal compares amounts by value, and treats nil and empty slices alike.
var Equal = cmp.Options{cmp.Comparer(func(a, b invoice.Amount) bool { return a == b }), cmpopts.EquateEmpty()}

// Must fails the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	expect.OK(t, err)
}

// Update runs fn in a transaction, and fails the test if it does not commit.
func Update(t testing.TB, s *db.DB, fn func(ctx context.Context, tx *db.Tx) error) {
	t.Helper()
	Must(t, s.Update(t.Context(), func(tx *db.Tx) error { return fn(t.Context(), tx) }))
}

// Sample returns an open invoice of a merchant.
func Sample(id, merchant string) invoice.Invoice {
	return invoice.Invoice{
		Terms:        invoice.Terms{Merchant: invoice.Address{0xaa}, Token: invoice.Address{0xcc}, Amount: invoice.NewAmount(100), ExpiresAt: invoice.Unix(2000)},
		ID:           id,
		CommitmentID: sha256.Sum256([]byte(id)), MerchantID: merchant, Currency: "USDC", ChainKey: "base",
		Status: invoice.Open, CreatedAt: invoice.Unix(1000), Collection: invoice.Direct,
	}
}

// maxInserted bounds the invoices of one statement, so that slow machines finish it within its deadline.
const maxInserted = 2000

// Insert stores invoices with their merchants and settlement addresses.
func Insert(t testing.TB, s *db.DB, invoices ...invoice.Invoice) {
	t.Helper()
	for part := range slices.Chunk(invoices, maxInserted) {
		Update(t, s, func(ctx context.Context, tx *db.Tx) error { return insert(ctx, tx, part) })
	}
}

func insert(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	var settlements []access.SettlementAddress
	var holdings []access.Holding
	for _, inv := range invoices {
		holdings = append(holdings, access.Holding{Address: inv.Merchant, MerchantID: inv.MerchantID})
		settlements = append(settlements, access.SettlementAddress{ChainKey: inv.ChainKey, Address: inv.Merchant, MerchantID: inv.MerchantID})
	}
	if err := access.InsertSettlementAddresses(ctx, tx, settlements, invoice.Unix(900)); err != nil {
		return err
	}
	if _, _, err := access.GrantAddresses(ctx, tx, holdings, invoice.Unix(900)); err != nil {
		return err
	}
	inserted, err := ledger.InsertInvoices(ctx, tx, invoices)
	if err == nil && len(inserted) != len(invoices) {
		err = fmt.Errorf("%d of %d invoices were inserted", len(inserted), len(invoices))
	}
	return err
}

// At returns a time that is given in Unix seconds.
func At(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// StartChain stores a chain that is indexed up to block 100 and final up to block 90.
func StartChain(t testing.TB, s *db.DB, chainKey string) {
	t.Helper()
	Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		if _, err := ledger.InsertChain(ctx, tx, chainKey, invoice.Header{Number: 90, Hash: invoice.Hash{90}, Time: invoice.Unix(900)}, nil); err != nil {
			return err
		}
		c := ledger.Cursor{
			Indexed:   invoice.Header{Number: 100, Hash: invoice.Hash{100}, Time: invoice.Unix(1000)},
			Confirmed: invoice.Header{Number: 90, Hash: invoice.Hash{90}, Time: invoice.Unix(900)},
		}
		return ledger.SaveCursor(ctx, tx, chainKey, c)
	})
}

// SamplePayment returns the n-th sample payment, which is unattributed.
func SamplePayment(n int) ledger.PaymentRow {
	var p ledger.PaymentRow
	p.Transfer = invoice.Transfer{
		Position: invoice.Position{BlockNumber: uint64(100 + n), BlockHash: invoice.Hash{1, byte(n)}, BlockTime: invoice.Unix(int64(1000 + n)), LogIndex: n},
		ChainKey: "base", TxHash: sha256.Sum256(fmt.Append(nil, "tx", n)), Ordinal: 3, Token: invoice.Address{0xcc}, Currency: "USDC",
		From: invoice.Address{0xbb}, To: invoice.Address{0xaa}, Amount: invoice.NewAmount(100),
	}
	p.ID, p.SeenID = fmt.Sprintf("pay_%d", n), fmt.Sprintf("seen_%06d", n)
	p.Status, p.ObservedAt = invoice.Pending, At(1234)
	return p
}

// AtMS returns a time some milliseconds after the Unix epoch.
func AtMS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// AuditEntry returns the entry of the n-th change of a merchant.
func AuditEntry(n int, merchantID string) access.Entry {
	return access.Entry{
		At: time.Unix(int64(1000+n), 0).UTC(), Origin: access.Origin{Actor: "key_1", Client: "192.0.2.1", RequestID: fmt.Sprint("req_", n)},
		MerchantID: merchantID, Action: access.ActionEndpointUpdate, Object: merchantID,
		Before: fmt.Sprintf(`{"n":%d}`, n-1), After: fmt.Sprintf(`{"n":%d,"text":"naïve $1 ?1"}`, n),
	}
}

// SampleSettlement returns the settlement of an authorization.
func SampleSettlement(a ledger.Authorization) ledger.X402Settlement {
	return ledger.X402Settlement{
		AuthorizationKey: ledger.AuthorizationKey{ChainKey: a.ChainKey, Token: a.Token, Authorizer: a.From, Nonce: a.Nonce},
		InvoiceID:        a.InvoiceID, MerchantID: a.MerchantID, Resource: "https://api.shop.example/1", CreatedAt: AtMS(5),
	}
}

// SampleAuthorization returns the n-th accepted authorization of an account, for an invoice.
func SampleAuthorization(n int, invoiceID string) ledger.Authorization {
	return ledger.Authorization{
		Authorization: invoice.Authorization{
			From: invoice.Address{0xbb}, To: invoice.Address{0xaa}, Value: invoice.NewAmount(100), ValidAfter: invoice.Unix(0),
			ValidBefore: invoice.Unix(int64(2000 + n)), Nonce: invoice.Hash{0xee, byte(n)}, Signature: []byte{1, byte(n)},
		},
		ID: "aut_" + string(rune('0'+n)), ChainKey: "base", Token: invoice.Address{0xcc}, InvoiceID: invoiceID, MerchantID: "m",
		Gas: 60_000, Status: ledger.AuthorizationAccepted, CreatedAt: AtMS(int64(1000 * n)),
	}
}

// Lookup returns the lookup of a transfer to the address of samplePayment.
func Lookup(amount uint64, block uint64, at int64) ledger.AmountLookup {
	to := SamplePayment(1).Transfer
	key := ledger.AmountKey{ChainKey: "base", Merchant: to.To, Token: to.Token, Amount: invoice.NewAmount(amount)}
	return ledger.AmountLookup{AmountKey: key, FirstBlock: block, LastBlock: block, FirstTime: invoice.Unix(at)}
}

// ChainTx returns a transaction of the writer with an id and a nonce.
func ChainTx(id string, nonce uint64) txmgr.ChainTx {
	return txmgr.ChainTx{
		ID: id, ChainKey: "base", Sender: Sender, Nonce: nonce, Kind: txmgr.TxOpen, Destination: TestRegistry, Status: txmgr.TxSent,
		CreatedAt: AtMS(7), Attempts: []txmgr.TxAttempt{Attempt(id, 1)},
	}
}

// Values of the sample transactions.
var (
	WriterLease  = db.WorkLease{Name: "writer:base", Holder: "me"}
	Sender       = invoice.Address{0xdd}
	TestRegistry = invoice.Address{0x60}
	Bigs         = cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })
)

// EachWriter runs a test on each database, with a writer's lease and n due intents to open: int_0 of
// inv_0, int_1 of inv_1, and so on.
func EachWriter(t *testing.T, n int, test func(t *testing.T, s *db.DB, conn *sql.DB)) {
	t.Helper()
	for name, url := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := url(t)
			s := dbtest.Open(t, dsn)
			if ok, err := s.AcquireWorkLease(t.Context(), WriterLease, AtMS(1), AtMS(2)); err != nil || !ok {
				t.Fatal(ok, err)
			}
			var intents []ledger.Intent
			for i := range n {
				inv := Sample(fmt.Sprint("inv_", i), "m")
				Insert(t, s, inv)
				intents = append(intents, Intent(i, inv))
			}
			Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.InsertIntents(ctx, tx, intents) })
			test(t, s, dbtest.SQL(t, dsn))
		})
	}
}

// Intent returns an intent with an id.
func Intent(i int, inv invoice.Invoice) ledger.Intent {
	return ledger.Intent{
		ID: fmt.Sprint("int_", i), ChainKey: inv.ChainKey, InvoiceID: inv.ID, CommitmentID: inv.CommitmentID,
		Registry: TestRegistry, Kind: invoice.IntentOpen, CreatedAt: invoice.Unix(1000),
	}
}

// Attempt returns an attempt to send the transaction with an id.
func Attempt(id string, number int64) txmgr.TxAttempt {
	var hash invoice.Hash
	copy(hash[:], id)
	hash[31] = byte(number)
	cap256 := new(big.Int).Lsh(big.NewInt(number), 240)
	return txmgr.TxAttempt{TxHash: hash, Raw: []byte(id), FeeCap: cap256, TipCap: big.NewInt(number), CreatedAt: AtMS(number)}
}

// DepositSweep is the sweep number n of an amount from the deposit address of an invoice.
func DepositSweep(inv invoice.Invoice, n int, amount uint64) invoice.Sweep {
	s := invoice.Sweep{Transfer: SamplePayment(n).Transfer, ID: "swp_" + SamplePayment(n).ID, InvoiceID: inv.ID, Status: invoice.Pending, ObservedAt: At(1234)}
	s.From, s.To, s.Amount = inv.DepositAddress, inv.Merchant, invoice.NewAmount(amount)
	return s
}

// DepositPayment is a confirmed payment of 100 to the deposit address of an invoice.
func DepositPayment(inv invoice.Invoice) ledger.PaymentRow { return NumberedDeposit(inv, 90, 100) }

// RefundOf returns a pending refund of a payment.
func RefundOf(p ledger.PaymentRow) invoice.Refund {
	r := invoice.Refund{ID: "ref_of_" + p.ID, PaymentID: p.ID, Status: invoice.Pending, ObservedAt: At(1235), Transfer: p.Transfer}
	r.From, r.To, r.Ordinal = r.To, r.From, 99
	return r
}

// WantNotFound returns nil if err is ErrNotFound.
func WantNotFound(err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return errors.Join(err, errors.New("something was found"))
}

// Fill stores two rows of each kind, or one where a second does not matter.
func Fill(t *testing.T, s *db.DB) {
	t.Helper()
	StartChain(t, s, "base")
	one, two := Sample("inv_1", "m"), Sample("inv_2", "m")
	one.TransferAmount, two.TransferAmount = invoice.NewAmount(107), invoice.NewAmount(109)
	deposited := Sample("inv_3", "m")
	deposited.Collection, deposited.DepositFactory, deposited.DepositAddress = invoice.Deposit, invoice.Address{0xfa}, invoice.Address{0xda}
	Insert(t, s, one, two, deposited)
	Update(t, s, func(ctx context.Context, tx *db.Tx) error { return fillDeposit(ctx, tx, deposited) })
	Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		paid, unknown := SamplePayment(1), SamplePayment(2)
		paid.InvoiceID, paid.MerchantID, paid.Method = "inv_1", "m", invoice.ByAmount
		if err := ledger.SavePayments(ctx, tx, []ledger.PaymentRow{paid, unknown}); err != nil {
			return err
		}
		refund := invoice.Refund{Transfer: paid.Transfer, ID: "ref_1", PaymentID: paid.ID, InvoiceID: "inv_1", MerchantID: "m", Status: invoice.Pending}
		if err := ledger.SaveRefunds(ctx, tx, refund); err != nil {
			return err
		}
		event := webhooks.Event{ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_1", MerchantID: "m", InvoiceID: "inv_1", Body: []byte("{}"), DeliveryID: "dlv_1"}
		other := event
		other.ID, other.Subject, other.InvoiceID, other.DeliveryID = "evt_2", "inv_2", "inv_2", "dlv_2"
		if err := webhooks.InsertEvents(ctx, tx, []webhooks.Event{event, other}); err != nil {
			return err
		}
		if err := ledger.InsertIntents(ctx, tx, []ledger.Intent{
			{ID: "int_1", ChainKey: "base", InvoiceID: "inv_1", Kind: invoice.IntentOpen},
			{ID: "int_2", ChainKey: "base", InvoiceID: "inv_1", Kind: invoice.IntentClose},
		}); err != nil {
			return err
		}
		if _, err := ledger.InsertNotice(ctx, tx, invoice.Notice{ID: "ntc_1", Provider: "p", Type: "t", TransferID: "1", ReceivedAt: time.Unix(1, 0)}); err != nil {
			return err
		}
		return ledger.InsertIdempotencyKeys(ctx, tx, []ledger.IdempotencyKey{{Scope: "m", Key: "k", InvoiceID: "inv_1"}}, invoice.Unix(1000))
	})
	fillAuthorizations(t, s)
}

// Explain returns the steps of a plan, which are in the last of the given number of columns.
func Explain(t *testing.T, conn *sql.DB, query string, args []any, columns int) []string {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer func() { Must(t, rows.Close()) }()
	var steps []string
	for rows.Next() {
		var step string
		ignored := make([]any, columns)
		for i := range ignored {
			ignored[i] = new(any)
		}
		ignored[columns-1] = &step
		Must(t, rows.Scan(ignored...))
		steps = append(steps, step)
	}
	Must(t, rows.Err())
	if len(steps) == 0 {
		t.Fatalf("no plan for %s", query)
	}
	return steps
}

// Statement is a statement that the store ran, with its purpose.
type Statement struct {
	What, Query string
	Args        []any
}

// IsList reports whether a caller reads the statement's rows in pages.
func (s Statement) IsList() bool {
	return (strings.Contains(s.Query, " DESC LIMIT $") || strings.Contains(s.Query, " AS invoices WHERE ") || strings.Contains(s.Query, " AS payments WHERE ") || strings.HasPrefix(s.What, "claims of ") || strings.HasPrefix(s.What, "report: ") || strings.HasPrefix(s.What, "customers: ")) && s.What != "refund" && s.What != "notice" &&
		!strings.Contains(s.Query, "payments.tx_hash = $")
}

// IsMerged reports whether the statement merges rows of several combinations of values in an index.
// PostgreSQL sorts them, up to the limit of each.
func (s Statement) IsMerged() bool { return strings.Contains(s.Query, "1 = 0 UNION ALL") }

// IndexesAlone opens the PostgreSQL database with the store's settings, and with sorts
// disabled where an index has the order.
func IndexesAlone(t *testing.T, url string) *sql.DB {
	t.Helper()
	conn := dbtest.SQL(t, url)
	conn.SetMaxOpenConns(1)
	for _, setting := range []string{db.SessionSettings, "SET enable_sort = off", "SET enable_incremental_sort = off"} {
		_, err := conn.ExecContext(t.Context(), setting)
		Must(t, err)
	}
	return conn
}

// PlanReader parses the query plans of a database.
type PlanReader struct {
	Explain    string
	Columns    int
	Parameters string
	Sort       string
	Index      *regexp.Regexp
	Names      map[string]string // our names for indexes that the database named
}

// fillAuthorizations stores the authorizations of two invoices, and the settlement of the first.
func fillAuthorizations(t *testing.T, s *db.DB) {
	t.Helper()
	Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		return errors.Join(ledger.InsertAuthorization(ctx, tx, SampleAuthorization(1, "inv_1")), ledger.InsertAuthorization(ctx, tx, SampleAuthorization(2, "inv_2")),
			ledger.InsertX402Settlement(ctx, tx, SampleSettlement(SampleAuthorization(1, "inv_1"))))
	})
}

// fillDeposit stores a payment to a deposit address, and a sweep that is not final.
func fillDeposit(ctx context.Context, tx *db.Tx, inv invoice.Invoice) error {
	p := DepositPayment(inv)
	if err := ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p}); err != nil {
		return err
	}
	if err := ledger.SaveSweeps(ctx, tx, []invoice.Sweep{DepositSweep(inv, 91, 60)}); err != nil {
		return err
	}
	return ledger.AddToDeposits(ctx, tx, []invoice.Payment{p.Payment}, nil)
}

// NumberedDeposit is the confirmed payment number n of an amount to the deposit address of an invoice.
func NumberedDeposit(inv invoice.Invoice, n int, amount uint64) ledger.PaymentRow {
	p := SamplePayment(n)
	p.Amount = invoice.NewAmount(amount)
	p.To, p.DepositOf, p.SettlesTo = inv.DepositAddress, inv.ID, inv.Merchant
	p.InvoiceID, p.MerchantID, p.Method = inv.ID, inv.MerchantID, invoice.ByDeposit
	p.Status, p.ConfirmedAt = invoice.Confirmed, At(2000)
	return p
}
