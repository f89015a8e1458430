package ledger

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// Memory is a ledger in memory for the models of the tests outside of the package.
type Memory struct {
	*memory
	ids *invoice.IDs
}

// NewMemory returns a ledger of a chain in memory.
func NewMemory(chainKey string) *Memory {
	return &Memory{newMemory(chainKey), invoice.NewIDs(func() time.Time { return memoryNow }, rand.NewChaCha8([32]byte{}))}
}

// Restart sets the source of suffixes.
func (m *Memory) Restart(random io.Reader) {
	m.suffix = func(_ invoice.Invoice, n uint64) uint64 {
		var two [2]byte
		if _, err := random.Read(two[:]); err != nil {
			panic(err)
		}
		return 1 + (uint64(two[0])<<8+uint64(two[1])+n/64)%invoice.MaxSuffix // after many tries, another one
	}
}

// Insert stores invoices.
func (m *Memory) Insert(invoices ...invoice.Invoice) error {
	for _, inv := range invoices {
		m.insert(inv)
	}
	return nil
}

// Create makes an invoice, or a draft of one.
func (m *Memory) Create(d invoice.Draft) (invoice.Invoice, error) {
	id := m.ids.New(invoice.PrefixInvoice)
	inv := invoice.Invoice{
		ID: id, CommitmentID: memoryHash("commitment", id), MerchantID: d.MerchantID, ChainKey: m.key, Status: invoice.Open, Currency: d.Currency,
		Terms:      invoice.Terms{Merchant: d.Merchant, Token: memoryTokens[0], Amount: d.Amount, ExpiresAt: d.ExpiresAt},
		Collection: d.Collection, FromBlock: m.height(),
	}
	if d.Unissued {
		inv.Status = invoice.Drafted
		m.insert(inv)
		return inv, nil
	}
	return m.open(inv), nil
}

// height returns the newest known block, also if it was rolled back and not replaced yet.
func (m *Memory) height() uint64 {
	return slices.Max(slices.Collect(maps.Keys(m.headers)))
}

// open makes an invoice payable.
func (m *Memory) open(inv invoice.Invoice) invoice.Invoice {
	inv.Status, inv.FromBlock = invoice.Open, m.height()
	if inv.IsDeposit() {
		hash := memoryHash("deposit", inv.ID)
		inv.DepositAddress = invoice.Address(hash[:len(inv.DepositAddress)])
	} else {
		inv.TransferAmount = m.freeAmount(inv, inv.Amount)
	}
	m.insert(inv)
	return inv
}

// Finalize opens a draft.
func (m *Memory) Finalize(id string) (invoice.Invoice, error) {
	inv := m.invoices[id]
	switch {
	case inv.Status == invoice.Void:
		return inv, ErrVoid
	case inv.Status != invoice.Drafted:
		return inv, nil
	case !inv.ExpiresAt.After(m.cur.Indexed.Time):
		return inv, &invoice.FieldError{Field: "expiresAt"}
	}
	return m.open(inv), nil
}

// Prepare prepares a refund of the rest of a payment.
func (m *Memory) Prepare(paymentID string) (invoice.RefundRecord, error) {
	return m.prepare(paymentID, m.ids.New(invoice.PrefixRefund))
}

// Cursor returns how far the chain is read.
func (m *Memory) Cursor() Progress {
	return Progress{Started: true, Indexed: m.cur.Indexed, Confirmed: m.cur.Confirmed, Gap: m.cur.Gap, Revision: m.cur.Revision}
}

// Invoice returns an invoice.
func (m *Memory) Invoice(id string) invoice.Invoice {
	inv := m.invoices[id]
	if newest := m.newestSweeps(inv.Token)[id]; newest.ID != "" {
		inv.SweptTx = newest.TxHash
	}
	return inv
}

// found returns the rows of some ids that exist.
func found[V any](rows map[string]V, ids []string) (some []V) {
	for _, id := range ids {
		if row, ok := rows[id]; ok {
			some = append(some, row)
		}
	}
	return some
}

// Payments returns payments.
func (m *Memory) Payments(ids ...string) []PaymentRow { return found(m.payments, ids) }

// PaymentsOf returns the payments of an invoice.
func (m *Memory) PaymentsOf(invoiceID string) []PaymentRow {
	return m.paid(func(p PaymentRow) bool { return p.InvoiceID == invoiceID })
}

// Refunds returns refunds.
func (m *Memory) Refunds(ids ...string) (refunds []invoice.Refund) {
	for _, r := range found(m.refunds, ids) {
		refunds = append(refunds, m.refund(r.ID))
	}
	return refunds
}

// Record returns a prepared refund.
func (m *Memory) Record(id string) invoice.RefundRecord { return m.record(id) }

// Sweeps returns sweeps.
func (m *Memory) Sweeps(ids ...string) []invoice.Sweep { return found(m.sweeps, ids) }

// newestSweeps returns the newest final sweep of a token from each invoice's address.
func (m *Memory) newestSweeps(token invoice.Address) map[string]invoice.Sweep {
	newest := make(map[string]invoice.Sweep)
	for _, s := range m.sweeps {
		if s.Status == invoice.Confirmed && s.Token == token && (newest[s.InvoiceID].ID == "" || newest[s.InvoiceID].Before(s.Position)) {
			newest[s.InvoiceID] = s
		}
	}
	return newest
}

// Held returns what the deposit addresses hold of a token, by invoice.
func (m *Memory) Held(token invoice.Address) map[string]uint64 {
	held, newest := make(map[string]uint64), m.newestSweeps(token)
	for _, p := range m.payments {
		if s := newest[p.DepositOf]; p.DepositOf != "" && p.Status == invoice.Confirmed && p.Token == token && (s.ID == "" || s.Before(p.Position)) {
			var n uint64
			if _, err := fmt.Sscan(p.Amount.String(), &n); err != nil {
				panic(err)
			}
			held[p.DepositOf] += n
		}
	}
	return held
}
