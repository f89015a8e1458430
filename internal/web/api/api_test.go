package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

const now = 1_764_000_000

func testClock() time.Time { return time.Unix(now, 0) }

// backend is a fake of ledger.Service and db.DB, with lists, oldest first.
type backend struct {
	api.Reader // for the methods that are not called

	invoices []invoice.Invoice
	payments []ledger.PaymentRow
	refunded map[string]invoice.Amount // of payments, by id
	requests []ledger.CreateRequest
	changes  []ledger.InvoiceChange
	refunds  []invoice.RefundRecord
	notices  []invoice.Notice
	hands    []ledger.ManualAttribution
	claims   []ledger.ClaimRow
	lost     []invoice.Hash // commitments of lost invoices
	events   []webhooks.EventRow

	authorizations []ledger.Authorization

	timelines []webhooks.Timeline // set first by newEventBackend
	removed   int64               // events up to it were removed
	removedOf map[string]int64    // of merchants

	attempts []webhooks.Attempt         // of every event
	redone   []webhooks.RedeliverFilter // of the calls of RedeliverMany
	audit    []access.Entry             // oldest first
	logged   []access.LoggedRequest     // oldest first
	refused  []string                   // limits that refused a request
	// listeners are the current listeners, by id.
	listeners map[string]webhooks.Listener
	examined  string                // the second result of Invoices
	history   ledger.InvoiceHistory // of every invoice
	mails     []mailer.Mail
	headers   []webhooks.HeaderChange // that were last set
	shares    []txmgr.TxShare
	// The filters of the last lists.
	invoiceFilter ledger.InvoiceFilter
	paymentFilter ledger.PaymentFilter
	eventFilter   webhooks.EventFilter
	tick          time.Duration // the testClock advances by it at each call
	ticks         int
	err           error                       // if set, returned by every method
	wait          func(context.Context) error // if set, called by every method, which returns its error
}

func (b *backend) fail(ctx context.Context) error {
	if b.wait != nil {
		return b.wait(ctx)
	}
	return b.err
}

func (b *backend) Create(ctx context.Context, r ledger.CreateRequest) (invoice.Invoice, error) {
	if err := cmp.Or(b.fail(ctx), r.Draft.Check(invoice.Unix(now))); err != nil {
		return invoice.Invoice{}, err
	}
	switch {
	case r.Draft.ChainKey != "base":
		return invoice.Invoice{}, &invoice.FieldError{Field: "chainKey", Detail: "is not known"}
	case r.Draft.Currency != "USDC":
		return invoice.Invoice{}, &invoice.FieldError{Field: "currency", Detail: "is not known"}
	}
	b.requests = append(b.requests, r)
	inv := invoice.Invoice{
		Terms:        invoice.Terms{Merchant: r.Draft.Merchant, Amount: r.Draft.Amount, ExpiresAt: r.Draft.ExpiresAt},
		ID:           invoiceID(len(b.invoices)),
		CommitmentID: invoice.Hash{31: 1},
		MerchantID:   r.Draft.MerchantID, Currency: r.Draft.Currency, ChainKey: r.Draft.ChainKey,
		Status: invoice.Open, LineItems: r.Draft.LineItems, CreatedAt: invoice.Unix(now), Details: r.Draft.Details,
	}
	b.invoices = append(b.invoices, inv)
	return inv, nil
}

func (b *backend) UpdateInvoice(ctx context.Context, _ access.Principal, id string, c ledger.InvoiceChange) (invoice.Invoice, error) {
	b.changes = append(b.changes, c)
	return b.Invoice(ctx, id)
}

func (b *backend) Finalize(ctx context.Context, _ access.Principal, id string) (invoice.Invoice, error) {
	return b.Invoice(ctx, id)
}

func (b *backend) Void(ctx context.Context, _ access.Principal, id string) (invoice.Invoice, error) {
	return b.Invoice(ctx, id)
}

func (b *backend) EraseCustomer(context.Context, string, string, ledger.Once) (ledger.Erasure, error) {
	return ledger.Erasure{}, errors.New("not called")
}

func (b *backend) DeleteDraft(ctx context.Context, _ access.Principal, id string) error {
	_, err := b.Invoice(ctx, id)
	return err
}

func (b *backend) AttributeManually(ctx context.Context, h ledger.ManualAttribution) (invoice.Payment, error) {
	p, err := b.Payment(ctx, h.PaymentID)
	if err != nil {
		return invoice.Payment{}, err
	}
	b.hands = append(b.hands, h)
	p.InvoiceID, p.Method, p.AttributedBy, p.AttributedAt = h.InvoiceID, invoice.ByHand, h.By, time.Unix(now, 0)
	return p.Payment, nil
}

func (b *backend) PrepareRefund(ctx context.Context, _ ledger.RefundRequest) (invoice.RefundRecord, error) {
	return invoice.RefundRecord{}, b.fail(ctx)
}

func (b *backend) ClaimToken(r invoice.RefundRecord) string { return r.ClaimToken }

func (b *backend) CancelRefund(ctx context.Context, _, _ string) (invoice.RefundRecord, error) {
	return invoice.RefundRecord{}, b.fail(ctx)
}

func (b *backend) ApproveRefund(ctx context.Context, _, _ string, _ invoice.Address) (invoice.RefundRecord, error) {
	return invoice.RefundRecord{}, b.fail(ctx)
}

func (b *backend) RefundRecord(ctx context.Context, id string) (invoice.RefundRecord, error) {
	i := slices.IndexFunc(b.refunds, func(r invoice.RefundRecord) bool { return r.ID == id })
	if i < 0 {
		return invoice.RefundRecord{}, b.fail(ctx)
	}
	return b.refunds[i], b.fail(ctx)
}

// RefundRecords returns one page, with up to 4 refunds.
func (b *backend) RefundRecords(ctx context.Context, f ledger.RefundFilter) ([]invoice.RefundRecord, error) {
	if f.Before != "" {
		return nil, b.fail(ctx)
	}
	return b.refunds, b.fail(ctx)
}

func (b *backend) ReceiveNotice(ctx context.Context, n invoice.Notice) error {
	if err := b.fail(ctx); err != nil {
		return err
	}
	b.notices = append(b.notices, n)
	return nil
}

func (b *backend) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	if err := b.fail(ctx); err != nil {
		return invoice.Invoice{}, err
	}
	i := slices.IndexFunc(b.invoices, func(inv invoice.Invoice) bool { return inv.ID == id })
	if i < 0 {
		return invoice.Invoice{}, db.ErrNotFound
	}
	return b.invoices[i], nil
}

func (b *backend) Keys(ctx context.Context, _ access.KeyFilter) ([]access.Record, error) {
	return nil, b.fail(ctx)
}

func (b *backend) SeesPayment(ctx context.Context, _ string, _ ledger.PaymentRow) (bool, error) {
	return false, b.fail(ctx)
}

func (b *backend) SeesRefund(ctx context.Context, merchantID string, _ invoice.RefundRecord) (bool, error) {
	return merchantID == "", b.fail(ctx)
}

func (b *backend) Invoices(ctx context.Context, f ledger.InvoiceFilter) ([]invoice.Invoice, string, error) {
	b.invoiceFilter = f
	return newest(b.invoices, f.Limit, func(inv invoice.Invoice) bool {
		return (f.MerchantID == "" || f.MerchantID == inv.MerchantID) && (f.Status == "" || f.Status == inv.Status) &&
			(f.Before == "" || inv.ID < f.Before)
	}), b.examined, b.fail(ctx)
}

func (b *backend) FindInvoices(ctx context.Context, text, merchantID string, limit int) ([]invoice.Invoice, error) {
	return newest(b.invoices, limit, func(inv invoice.Invoice) bool {
		return strings.HasPrefix(inv.ID, text) && (merchantID == "" || merchantID == inv.MerchantID)
	}), b.fail(ctx)
}

func (b *backend) FindPayments(ctx context.Context, text, merchantID string, limit int) ([]ledger.PaymentRow, error) {
	return newest(b.payments, limit, func(p ledger.PaymentRow) bool {
		return strings.HasPrefix(p.ID, text) && (merchantID == "" || merchantID == p.MerchantID)
	}), b.fail(ctx)
}

func (b *backend) References(ctx context.Context, ids []string) (map[string]string, error) {
	found := make(map[string]string)
	for _, inv := range b.invoices {
		if inv.Details.Reference != "" && slices.Contains(ids, inv.ID) {
			found[inv.ID] = inv.Details.Reference
		}
	}
	return found, b.fail(ctx)
}

func (b *backend) InvoiceMails(context.Context, string) ([]mailer.Mail, error) { return b.mails, nil }

func (b *backend) InvoiceHistory(ctx context.Context, id string) (ledger.InvoiceHistory, error) {
	h := b.history
	var err error
	h.Invoice, err = b.Invoice(ctx, id)
	return h, err
}

func (b *backend) Payment(ctx context.Context, id string) (ledger.PaymentRow, error) {
	if err := b.fail(ctx); err != nil {
		return ledger.PaymentRow{}, err
	}
	i := slices.IndexFunc(b.payments, func(p ledger.PaymentRow) bool { return p.ID == id })
	if i < 0 {
		return ledger.PaymentRow{}, db.ErrNotFound
	}
	return b.payments[i], nil
}

func (b *backend) Payments(ctx context.Context, f ledger.PaymentFilter) ([]ledger.PaymentRow, ledger.PaymentPosition, error) {
	b.paymentFilter = f
	return newest(b.payments, f.Limit, func(p ledger.PaymentRow) bool {
		return (f.MerchantID == "" || f.MerchantID == p.MerchantID) && (f.ChainKey == "" || f.ChainKey == p.ChainKey) &&
			(f.InvoiceID == "" || f.InvoiceID == p.InvoiceID) && (f.IncludePending || p.Status == invoice.Confirmed) && (f.IncludeUnattributed || p.Attributed()) && (f.Before.SeenID == "" || p.SeenID < f.Before.SeenID)
	}), ledger.PaymentPosition{}, b.fail(ctx)
}

func (b *backend) AmountsRefunded(ctx context.Context, ids []string) (map[string]invoice.Amount, error) {
	back := make(map[string]invoice.Amount)
	for _, id := range ids {
		if sum, ok := b.refunded[id]; ok {
			back[id] = sum
		}
	}
	return back, b.fail(ctx)
}

func (b *backend) Events(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
	b.eventFilter = f
	if err := b.fail(ctx); err != nil {
		return nil, err
	}
	var found []webhooks.EventRow
	for _, e := range b.events {
		fits := (f.MerchantID == "" || f.MerchantID == e.MerchantID) && (f.Type == "" || f.Type == e.Type) && (f.InvoiceID == "" || f.InvoiceID == e.InvoiceID) &&
			(f.Delivery == "" || f.Delivery == e.Status) && (f.Before == 0 || e.Seq < f.Before) && (f.After == nil || e.Seq > *f.After)
		if fits {
			found = append(found, e)
		}
	}
	if f.After == nil {
		slices.Reverse(found)
	}
	return found[:min(len(found), f.Limit)], nil
}

func (b *backend) EventRecord(ctx context.Context, id string) (webhooks.EventRow, []webhooks.Attempt, error) {
	if err := b.fail(ctx); err != nil {
		return webhooks.EventRow{}, nil, err
	}
	i := slices.IndexFunc(b.events, func(e webhooks.EventRow) bool { return e.ID == id })
	if i < 0 {
		return webhooks.EventRow{}, nil, db.ErrNotFound
	}
	return b.events[i], b.attempts, nil
}

func (b *backend) LastSeq(ctx context.Context) (int64, error) {
	return int64(len(b.events)), b.fail(ctx)
}

func (b *backend) LogState(ctx context.Context, merchantID string) (webhooks.LogState, error) {
	state := webhooks.LogState{Timelines: b.timelines, Head: int64(len(b.events)), Removed: b.removed}
	if len(b.timelines) == 0 {
		state.Timelines = []webhooks.Timeline{{Number: 1, ID: "tml_1"}}
	}
	if merchantID != "" {
		state.Removed = b.removedOf[merchantID]
	}
	return state, b.fail(ctx)
}

func (b *backend) AuditHead(ctx context.Context) (access.Head, error) {
	return access.Head{Seq: int64(len(b.audit))}, b.fail(ctx)
}

func (b *backend) Changes(ctx context.Context, after int64, limit int) (rows []access.ChangeRow, err error) {
	for _, e := range b.audit[after:min(int(after)+limit, len(b.audit))] {
		rows = append(rows, access.ChangeRow{Seq: e.Seq, MerchantID: e.MerchantID, Action: e.Action, Object: e.Object})
	}
	return rows, b.fail(ctx)
}

// addChange adds an entry to the audit log.
func (b *backend) addChange(action access.Action, merchantID, object string) {
	b.audit = append(b.audit, access.Entry{Seq: int64(len(b.audit) + 1), MerchantID: merchantID, Action: action, Object: object})
}

func (b *backend) Listen(ctx context.Context, l *webhooks.Listener) error {
	if b.listeners == nil {
		b.listeners = make(map[string]webhooks.Listener)
	}
	b.listeners[l.ID] = *l
	return b.fail(ctx)
}

func (b *backend) DeleteListener(ctx context.Context, id string) error {
	delete(b.listeners, id)
	return b.fail(ctx)
}

func (b *backend) Redeliver(ctx context.Context, id string, now time.Time) error {
	e, _, err := b.EventRecord(ctx, id)
	switch {
	case err != nil:
		return err
	case e.Status == webhooks.Pending:
		return webhooks.ErrPending
	case e.Status == webhooks.None:
		return webhooks.ErrNoDelivery
	}
	e.Status, e.Due, e.Deadline, e.Finished = webhooks.Pending, now, now.Add(webhooks.RetryWindow), time.Time{}
	b.events[e.Seq-1] = e
	return nil
}

// RedeliverMany returns limit, three times.
func (b *backend) RedeliverMany(ctx context.Context, f webhooks.RedeliverFilter, _ time.Time, limit int) (int64, int64, error) {
	if err := b.fail(ctx); err != nil {
		return 0, 0, err
	}
	b.redone = append(b.redone, f)
	if f.After >= int64(2*limit) {
		return int64(limit), 0, nil
	}
	return int64(limit), f.After + int64(limit), nil
}

func newest[T any](all []T, limit int, wanted func(T) bool) []T {
	var found []T
	for _, v := range slices.Backward(all) {
		if wanted(v) && len(found) < limit {
			found = append(found, v)
		}
	}
	return found
}

// number formats n in 26 characters that sort like n.
func number(n int) string {
	return strings.Repeat("0", 22) + string([]byte{digit(n >> 15), digit(n >> 10), digit(n >> 5), digit(n)})
}

func digit(n int) byte { return "0123456789abcdefghjkmnpqrstvwxyz"[n&31] }

func invoiceID(n int) string { return invoice.PrefixInvoice + number(n) }

const secret, otherSecret = "provider-secret", "the next provider-secret"

// newAPI returns the API on a backend. Its responses are checked against openapi.yaml.
func newAPI(t testing.TB, b *backend) http.Handler { return newLoggedAPI(t, b, io.Discard) }

func newLoggedAPI(t testing.TB, b *backend, log io.Writer) http.Handler {
	local, _ := chain.Lookup("local")
	base, _ := chain.Lookup("base")
	return apitest.Check(t, api.New(api.Config{
		Refused: func(limit string) { b.refused = append(b.refused, limit) },
		Ledger:  b, Reader: b, Events: b, Nodes: &nodes{}, Endpoints: fakeEndpoints{b}, Now: func() time.Time { b.ticks++; return testClock().Add(time.Duration(b.ticks) * b.tick) }, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Chains: []chain.Chain{base, local},
		Providers: []api.Provider{{
			Name: "circle", Secret: secret,
			Chains:     map[string]string{"BASE": "base", "LOCAL": "local", "ETH": "ethereum"},
			Currencies: map[string]string{"USD": "USDC", "EUR": "EURC"},
		}, {Name: "rotating", Secret: secret, OtherSecret: otherSecret}},
	}).Handler())
}

// do sends a request. header alternates names and values.
func do(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := newRequest(method, path, body)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Del(pair[0])
		if pair[1] != "" {
			r.Header.Set(pair[0], pair[1])
		}
	}
	return send(h, r)
}

func newRequest(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if method == http.MethodPost || method == http.MethodPut {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// send returns the response as over HTTP/2: if the write deadline passes before an answer, there is no
// answer and the code is 0.
func send(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, r)
	if w.isOver() {
		w.Code = 0
	}
	return w.ResponseRecorder
}

// deadlineRecorder is a response with a write deadline.
type deadlineRecorder struct {
	*httptest.ResponseRecorder

	deadline time.Time // zero without one
	missed   bool      // it passed before it was changed
}

func (r *deadlineRecorder) SetReadDeadline(time.Time) error { return nil }

func (r *deadlineRecorder) SetWriteDeadline(at time.Time) error {
	r.missed, r.deadline = r.isOver(), at
	return nil
}

// isOver reports whether the deadline passed, or an earlier one did.
func (r *deadlineRecorder) isOver() bool {
	return r.missed || !r.deadline.IsZero() && time.Now().After(r.deadline)
}

type problem struct {
	Status              int
	Code, Field, Detail string
}

// wantProblem fails the test unless the response is the problem.
func wantProblem(t testing.TB, w *httptest.ResponseRecorder, status int, code, field string) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("answered %d %q, want a problem", w.Code, w.Body)
	}
	if w.Code != status || p.Code != code || p.Field != field {
		t.Errorf("answered %d %s %q (%s), want %d %s %q", w.Code, p.Code, p.Field, p.Detail, status, code, field)
	}
	return p
}

// decode decodes a JSON response.
func decode[T any](t testing.TB, w *httptest.ResponseRecorder, status int) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != status {
		t.Fatalf("answered %d %s (%v), want %d", w.Code, w.Body, err, status)
	}
	return v
}
