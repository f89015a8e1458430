package ledger_test

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// book is a ledger of one chain: on a database or in memory. What it looks up is zero if it does not exist.
type book interface {
	Restart(random io.Reader)
	Insert(invoices ...invoice.Invoice) error
	Create(d invoice.Draft) (invoice.Invoice, error)
	Finalize(id string) (invoice.Invoice, error)
	Void(id string) error
	Prepare(paymentID string) (invoice.RefundRecord, error)

	Start(at invoice.Header, from uint64) error
	Observe(blocks ...ledger.Block) error
	Rollback(to invoice.Header) error
	Confirm(line invoice.Header) error
	Rescan(from uint64) error
	Fill(next uint64, through invoice.Header, blocks ...ledger.Block) error
	Cursor() ledger.Progress

	Invoice(id string) invoice.Invoice
	Payments(ids ...string) []ledger.PaymentRow
	PaymentsOf(invoiceID string) []ledger.PaymentRow
	Refunds(ids ...string) []invoice.Refund
	Record(id string) invoice.RefundRecord
	Sweeps(ids ...string) []invoice.Sweep
	Held(token invoice.Address) map[string]uint64 // what deposit addresses hold, by invoice
}

// reader is a chain with a ledger that reads it.
type reader struct {
	*world
	book book
}

// onDatabase returns a reader with the ledger of a world.
func onDatabase(w *world) *reader { return &reader{w, storedBook{w}} }

// readersInMemory counts the readers in memory, of which each has its own chain.
var readersInMemory atomic.Int64

// inMemory returns a reader with a ledger in memory.
func inMemory(t testing.TB) *reader {
	t.Helper()
	w := newWorld(t, readersInMemory.Add(1))
	return &reader{w, ledger.NewMemory(w.chainKey)}
}

// confirm confirms the blocks up to an index.
func (w *reader) confirm(line int) { w.must(w.book.Confirm(w.blocks[line].Header)) }

// final confirms everything up to the head.
func (w *reader) final() { w.confirm(len(w.blocks) - 1) }

// gap returns the blocks that are to be read again.
func (w *reader) gap() *ledger.Gap { return w.book.Cursor().Gap }

// observe reads blocks.
func (w *reader) observe(blocks ...ledger.Block) {
	w.t.Helper()
	w.must(w.book.Observe(blocks...))
	w.blocks = append(w.blocks, blocks...)
}

// reorg removes the newest n blocks.
func (w *reader) reorg(n int) {
	w.t.Helper()
	w.blocks = w.blocks[:len(w.blocks)-n]
	w.forks++
	w.must(w.book.Rollback(w.head()))
}

// fillSome reads some of the gap's blocks that are final.
func (w *reader) fillSome(r *rand.Rand) {
	w.t.Helper()
	cur := w.book.Cursor()
	if cur.Gap == nil || cur.Gap.Next > cur.Confirmed.Number {
		return
	}
	last := min(cur.Gap.Last, cur.Confirmed.Number)
	through := cur.Gap.Next + uint64(r.IntN(int(last-cur.Gap.Next)+1))
	var blocks []ledger.Block
	for _, b := range w.blocks {
		if cur.Gap.Next <= b.Number && b.Number <= through {
			blocks = append(blocks, b)
		}
	}
	w.must(w.book.Fill(cur.Gap.Next, blocks[len(blocks)-1].Header, blocks...))
}

// paymentOf, refundOf and sweepOf return the rows of a transfer, or zero ones.
func (w *reader) paymentOf(t invoice.Transfer) (p ledger.PaymentRow) {
	return first(w.book.Payments(invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal)))
}

func (w *reader) refundOf(t invoice.Transfer) invoice.Refund {
	return first(w.book.Refunds(invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)))
}

func (w *reader) sweepOf(t invoice.Transfer) invoice.Sweep {
	return first(w.book.Sweeps(invoice.TransferID(invoice.PrefixSweep, t.ChainKey, t.TxHash, t.Ordinal)))
}

func first[V any](found []V) (v V) {
	if len(found) > 0 {
		v = found[0]
	}
	return v
}

// storedBook is the ledger of a world on its database.
type storedBook struct{ w *world }

func (s storedBook) ctx() context.Context { return s.w.t.Context() }

func (s storedBook) Restart(random io.Reader) {
	s.w.random = random
	s.w.Service = s.w.service()
}

func (s storedBook) Insert(invoices ...invoice.Invoice) error {
	var holders []access.SettlementAddress
	for _, inv := range invoices {
		if a := (access.SettlementAddress{ChainKey: inv.ChainKey, Address: inv.Merchant, MerchantID: inv.MerchantID}); !slices.Contains(holders, a) {
			holders = append(holders, a)
		}
	}
	return s.w.db.store.Update(s.ctx(), func(tx *db.Tx) error {
		if err := access.InsertSettlementAddresses(s.ctx(), tx, holders, invoice.Unix(start)); err != nil {
			return err
		}
		_, err := ledger.InsertInvoices(s.ctx(), tx, invoices)
		return err
	})
}

func (s storedBook) Create(d invoice.Draft) (invoice.Invoice, error) {
	return s.w.Create(s.ctx(), ledger.CreateRequest{Draft: d})
}

func (s storedBook) Finalize(id string) (invoice.Invoice, error) {
	return s.w.Finalize(s.ctx(), s.w.own(), id)
}

func (s storedBook) Void(id string) error {
	_, err := s.w.Void(s.ctx(), s.w.own(), id)
	return err
}

func (s storedBook) Prepare(paymentID string) (invoice.RefundRecord, error) {
	return s.w.PrepareRefund(open(s.w.t), ledger.RefundRequest{PaymentID: paymentID, Account: invoice.AccountWithKey})
}

func (s storedBook) Start(at invoice.Header, from uint64) error {
	return s.w.Start(s.ctx(), s.w.chainKey, at, from)
}

func (s storedBook) Observe(blocks ...ledger.Block) error {
	return s.w.Observe(s.ctx(), s.w.chainKey, blocks)
}

func (s storedBook) Rollback(to invoice.Header) error {
	return s.w.Rollback(s.ctx(), s.w.chainKey, to)
}

func (s storedBook) Confirm(line invoice.Header) error {
	return s.w.Confirm(s.ctx(), s.w.chainKey, line)
}

func (s storedBook) Rescan(from uint64) error {
	_, err := s.w.Rescan(s.ctx(), s.w.chainKey, from)
	return err
}

func (s storedBook) Fill(next uint64, through invoice.Header, blocks ...ledger.Block) error {
	return s.w.Fill(s.ctx(), s.w.chainKey, next, blocks, through)
}

func (s storedBook) Cursor() ledger.Progress {
	cur, err := s.w.Cursor(s.ctx(), s.w.chainKey)
	s.w.must(err)
	return cur
}

func (s storedBook) Invoice(id string) invoice.Invoice { return s.w.invoice(id) }

func (s storedBook) Payments(ids ...string) []ledger.PaymentRow {
	found, err := ledger.PaymentsByID(s.ctx(), s.w.db.store, ids)
	s.w.must(err)
	return found
}

func (s storedBook) PaymentsOf(invoiceID string) []ledger.PaymentRow {
	found, err := ledger.NewReader(s.w.db.store).PaymentsOfInvoices(s.ctx(), []string{invoiceID})
	s.w.must(err)
	return found
}

func (s storedBook) Refunds(ids ...string) []invoice.Refund {
	found, err := ledger.RefundsByID(s.ctx(), s.w.db.store, ids)
	s.w.must(err)
	return found
}

func (s storedBook) Record(id string) invoice.RefundRecord { return s.w.refund(id) }

func (s storedBook) Sweeps(ids ...string) []invoice.Sweep {
	found, err := ledger.SweepsByID(s.ctx(), s.w.db.store, ids)
	s.w.must(err)
	return found
}

func (s storedBook) Held(token invoice.Address) map[string]uint64 { return s.w.unswept(token) }
