package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// boardMerchants is the number of merchants. The first has boardLargest percent of the
	// invoices, the others equal parts of the rest.
	boardMerchants, boardLargest = 1000, 20
	// boardPeriod is the time in which all invoices were created, evenly.
	boardPeriod = 365 * 24 * time.Hour
	// boardUndecided is the part of the newest invoices whose exceptions need a decision.
	boardUndecided = 20
	// boardOpenFor is how old the newest invoices are that are still open.
	boardOpenFor = 24 * time.Hour
)

// boardRows are the invoices of a year, their payments and events. Of a hundred, 75 are paid,
// 20 have expired and 5 are void; the newest are open. One of 20 has an exception, and
// one payment of 200 has no invoice.
type boardRows struct {
	n     int
	first time.Time // when the first invoice was created
}

// dice returns a number below sides for a row, the same for the same kind.
func dice(row int, kind byte, sides uint32) int {
	h := dustHash(uint64(row)*256 + uint64(kind))
	return int(binary.BigEndian.Uint32(h[:]) % sides)
}

func (r boardRows) at(row int) time.Time {
	return r.first.Add(time.Duration(row) * (boardPeriod / time.Duration(r.n)))
}

func (r boardRows) invoiceID(row int) string {
	return invoice.FirstID(invoice.PrefixInvoice, r.at(row))
}

// owner returns the number of the row's merchant.
func (r boardRows) owner(row int) int {
	if dice(row, 0, 100) < boardLargest {
		return 0
	}
	return 1 + dice(row, 1, boardMerchants-1)
}

func boardMerchant(number int) string { return fmt.Sprintf("m%d", number) }
func (r boardRows) amount(row int) invoice.Amount {
	return invoice.NewAmount(uint64(10_000 * (100 + dice(row, 2, 20_000))))
}
func (r boardRows) isUnattributed(row int) bool { return dice(row, 3, 200) == 0 }

func (r boardRows) status(row int) invoice.Status {
	switch d := dice(row, 4, 100); {
	case r.first.Add(boardPeriod).Sub(r.at(row)) < boardOpenFor:
		return invoice.Open
	case d < 75:
		return invoice.Paid
	case d < 95:
		return invoice.Expired
	}
	return invoice.Void
}

func (r boardRows) invoice(row int) invoice.Invoice {
	inv := invoice.Invoice{
		ID: r.invoiceID(row), CommitmentID: dustHash(uint64(r.n + row)), MerchantID: boardMerchant(r.owner(row)),
		ChainKey: chain.Local, Currency: chain.USDC, Status: r.status(row), CreatedAt: r.at(row),
		Terms: invoice.Terms{Merchant: account(r.owner(row)), Token: invoice.Address{1}, Amount: r.amount(row), ExpiresAt: r.at(row).Add(2 * boardOpenFor)},
		Details: invoice.Details{
			Reference: fmt.Sprintf("order-%d", row), Metadata: map[string]string{"basket": fmt.Sprintf("b-%d", dice(row, 5, 100_000))},
			Customer: invoice.Customer{ID: fmt.Sprintf("c-%d", dice(row, 6, 100_000))},
		},
	}
	if inv.Status == invoice.Paid {
		inv.SettledTx, inv.SettledAt, inv.AmountPaid = dustHash(uint64(row)), r.at(row).Add(time.Minute), inv.Amount
	}
	if dice(row, 7, 20) == 0 && inv.Status != invoice.Open {
		inv.AmountPaid = invoice.NewAmount(uint64(10_000 * (dice(row, 2, 20_000) + 50)))
		if inv.Status == invoice.Paid {
			inv.AmountPaid = invoice.NewAmount(uint64(10_000 * (dice(row, 2, 20_000) + 200)))
		}
		if r.n-row > r.n/boardUndecided {
			inv.AmountRefunded = inv.AmountPaid // it needs no decision any more
		}
		inv.Exception = map[invoice.Status]invoice.Exception{invoice.Paid: invoice.Overpaid, invoice.Expired: invoice.Underpaid, invoice.Void: invoice.Late}[inv.Status]
	}
	return inv
}

// payment returns the payment of a paid invoice, or of none.
func (r boardRows) payment(row int) store.PaymentRow {
	seen := r.at(row).Add(time.Minute)
	p := store.PaymentRow{SeenID: invoice.FirstID("", seen), Payment: invoice.Payment{
		ID:     invoice.TransferID(invoice.PrefixPayment, chain.Local, dustHash(uint64(row)), 0),
		Status: invoice.Confirmed, ObservedAt: seen, ConfirmedAt: seen,
		Transfer: invoice.Transfer{
			ChainKey: chain.Local, TxHash: dustHash(uint64(row)), Position: invoice.Position{BlockNumber: 1, BlockHash: dustHash(1), BlockTime: seen, LogIndex: row},
			Token: invoice.Address{1}, Currency: chain.USDC, From: account(1_000_000 + dice(row, 8, 100_000)), To: account(r.owner(row)), Amount: r.amount(row),
		},
	}}
	if !r.isUnattributed(row) {
		p.InvoiceID, p.MerchantID, p.Method = r.invoiceID(row), boardMerchant(r.owner(row)), invoice.ByTransferAmount
	}
	return p
}

func (r boardRows) event(row int, t invoice.EventType, after time.Duration) store.Event {
	at, id := r.at(row).Add(after), r.invoiceID(row)
	e := store.Event{ID: invoice.FirstID(invoice.PrefixEvent, at), Type: t, Subject: id, InvoiceID: id, MerchantID: boardMerchant(r.owner(row)), CreatedAt: at}
	e.Body = fmt.Appendf(nil, `{"id":%q,"type":%q,"createdAt":%d,"data":{"text":%q}}`, e.ID, t, at.Unix(), eventBody)
	return e
}

// seed stores the rows.
func (r boardRows) seed(ctx context.Context, url string) error {
	var addresses []store.SettlementAddress
	for m := range boardMerchants {
		addresses = append(addresses, store.SettlementAddress{ChainKey: chain.Local, Address: account(m), MerchantID: boardMerchant(m)})
	}
	return seedRows(ctx, url, addresses, r.first, r.n, r.seedBatch)
}

func (r boardRows) seedBatch(ctx context.Context, tx *store.Tx, first, end int) error {
	var invoices, changed []invoice.Invoice
	var payments []store.PaymentRow
	var events []store.Event
	for row := first; row < end; row++ {
		inv := r.invoice(row)
		events = append(events, r.event(row, invoice.EventCreated, 0))
		if inv.Exception != "" || inv.Status == invoice.Paid {
			changed = append(changed, inv)
		}
		if inv.Status == invoice.Paid {
			inv.Status = invoice.Open // until it is changed
			payments, events = append(payments, r.payment(row)), append(events, r.event(row, invoice.EventPaid, time.Minute))
		}
		invoices = append(invoices, inv)
	}
	if _, err := tx.InsertInvoices(ctx, invoices); err != nil {
		return err
	}
	if err := tx.UpdateInvoices(ctx, changed); err != nil {
		return err
	}
	if err := tx.SavePayments(ctx, payments); err != nil {
		return err
	}
	return tx.InsertEvents(ctx, events)
}
