package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// listMerchants, listPrices, listBaskets and listPayers are how many different values
	// the rows have, so that a page of 50 is full with listedFew invoices and more.
	listMerchants, listPrices, listBaskets, listPayers = 100, 100, 100, 100
	// listAddresses is the number of settlement addresses. The first belongs to half of
	// the invoices, more than store.MaxExamined of them.
	listAddresses = 50
	// listSettled is the time from an invoice's creation to its payment's confirmation.
	listSettled = time.Minute
)

// listRows are invoices, of which one is created a second, with a payment and an event each.
type listRows struct {
	n     int
	first time.Time // when the first invoice was created
}

// choice returns one of a number of values for a row, by the digit of a hash.
func choice(row, digit, values int) int {
	return int(dustHash(uint64(row))[digit]) % values
}

func (r listRows) at(row int) time.Time { return r.first.Add(time.Duration(row) * time.Second) }
func (r listRows) id(prefix string, row int) string {
	return invoice.FirstID(prefix, r.at(row))
}
func (r listRows) merchant(row int) string { return fmt.Sprintf("m%d", choice(row, 0, listMerchants)) }
func (r listRows) price(row int) invoice.Amount {
	return invoice.NewAmount(uint64(1_000_000 * (1 + choice(row, 1, listPrices))))
}
func (r listRows) payer(row int) invoice.Address { return account(1000 + choice(row, 2, listPayers)) }
func (r listRows) address(row int) invoice.Address {
	if choice(row, 3, 2) == 0 {
		return account(0)
	}
	return account(choice(row, 4, listAddresses))
}
func (r listRows) basket(row int) string    { return fmt.Sprintf("b-%d", choice(row, 5, listBaskets)) }
func (r listRows) reference(row int) string { return fmt.Sprintf("order-%d", row) }
func (r listRows) status(row int) invoice.Status {
	return []invoice.Status{invoice.Open, invoice.Expired, invoice.Void}[choice(row, 6, 3)]
}

// exception returns an exception for one invoice of eight.
func (r listRows) exception(row int) invoice.Exception {
	if choice(row, 7, 8) > 0 {
		return ""
	}
	return []invoice.Exception{invoice.Underpaid, invoice.Overpaid, invoice.Late}[choice(row, 8, 3)]
}

func (r listRows) invoice(row int) invoice.Invoice {
	return invoice.Invoice{
		ID: r.id(invoice.PrefixInvoice, row), CommitmentID: dustHash(uint64(r.n + row)), MerchantID: r.merchant(row), ChainKey: chain.Local, Currency: chain.USDC,
		Status: r.status(row), Exception: r.exception(row), CreatedAt: r.at(row),
		Terms:   invoice.Terms{Merchant: r.address(row), Token: invoice.Address{1}, Amount: r.price(row), ExpiresAt: r.at(r.n).Add(24 * time.Hour)},
		Details: invoice.Details{Reference: r.reference(row), Metadata: map[string]string{"basket": r.basket(row)}},
	}
}

func (r listRows) txHash(row int) invoice.Hash { return dustHash(uint64(row)) }

func (r listRows) payment(row int) store.PaymentRow {
	seen := r.at(row).Add(time.Second)
	t := invoice.Transfer{
		ChainKey: chain.Local, TxHash: r.txHash(row), Position: invoice.Position{BlockNumber: 1, BlockHash: dustHash(1), BlockTime: seen, LogIndex: row},
		Token: invoice.Address{1}, Currency: chain.USDC, From: r.payer(row), To: r.address(row), Amount: r.price(row),
	}
	return store.PaymentRow{SeenID: invoice.FirstID("", seen), Payment: invoice.Payment{
		ID: r.paymentID(row), InvoiceID: r.id(invoice.PrefixInvoice, row), MerchantID: r.merchant(row), Method: invoice.ByCalldata,
		Status: invoice.Confirmed, ObservedAt: seen, ConfirmedAt: r.at(row).Add(listSettled), Transfer: t,
	}}
}

func (r listRows) paymentID(row int) string {
	return invoice.TransferID(invoice.PrefixPayment, chain.Local, r.txHash(row), 0)
}

func (r listRows) event(row int) store.Event {
	id := r.id(invoice.PrefixInvoice, row)
	return store.Event{
		ID: r.id(invoice.PrefixEvent, row), Seq: int64(row) + 1, Type: invoice.EventCreated, Subject: id, InvoiceID: id, MerchantID: r.merchant(row),
		Body: []byte(eventBody), CreatedAt: r.at(row),
	}
}

// batches returns the merchants with their addresses, and then all other rows.
func (r listRows) batches() iter.Seq2[store.Rows, error] {
	return func(yield func(store.Rows, error) bool) {
		all := store.Rows{Since: r.first}
		for m := range listMerchants {
			for a := range listAddresses {
				all.Addresses = append(all.Addresses, store.SettlementAddress{ChainKey: chain.Local, Address: account(a), MerchantID: fmt.Sprintf("m%d", m)})
			}
		}
		for first := 0; yield(all, nil) && first < r.n; first += seedBatch {
			all = store.Rows{}
			for row := first; row < min(first+seedBatch, r.n); row++ {
				all.Invoices, all.Payments = append(all.Invoices, r.invoice(row)), append(all.Payments, r.payment(row))
				all.Events = append(all.Events, store.LoadedEvent{Event: r.event(row)})
			}
		}
	}
}

// appendRows inserts rows into a database that a server uses.
func appendRows(ctx context.Context, url string, rows iter.Seq2[store.Rows, error]) (err error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for r, err := range rows {
		if err == nil {
			err = s.Append(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
