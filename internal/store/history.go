package store

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// Limits of an InvoiceHistory, whose invoice anyone can send any number of payments.
const (
	historyPayments = 100
	historyEvents   = 300
	historyAttempts = 1000
)

// InvoiceHistory is what happened to an invoice: the first payments, events, attempts and
// commitment transactions.
type InvoiceHistory struct {
	Invoice  invoice.Invoice
	Payments []SeenPayment
	Refunds  []invoice.RefundRecord
	Events   []Event // without bodies
	Attempts []EventAttempt
	Txs      []CommitmentTx
	More     bool // there is more than the limits allow
}

// SeenPayment is a payment with the time when it was last orphaned, which is zero if it
// never was.
type SeenPayment struct {
	PaymentRow
	OrphanedAt time.Time
}

// EventAttempt is an attempt to deliver an event.
type EventAttempt struct {
	EventID    string
	Number     int
	Started    time.Time
	StatusCode int    // 0 without a response
	Error      string // empty for a success
}

// CommitmentTx is a signed transaction that opens or closes the commitment of an invoice.
type CommitmentTx struct {
	Kind    invoice.IntentKind
	Hash    invoice.Hash
	Created time.Time
}

// InvoiceHistory returns the history of an invoice, or ErrNotFound.
func (q *queries) InvoiceHistory(ctx context.Context, id string) (h InvoiceHistory, err error) {
	if h.Invoice, err = q.Invoice(ctx, id); err != nil {
		return h, err
	}
	for _, read := range []func(context.Context, string) error{
		func(ctx context.Context, id string) (err error) {
			h.Payments, err = q.seenPayments(ctx, id)
			return err
		},
		func(ctx context.Context, id string) (err error) {
			h.Events, err = q.eventsOfInvoice(ctx, id)
			return err
		},
		func(ctx context.Context, id string) (err error) { h.Txs, err = q.commitmentTxs(ctx, id); return err },
		func(ctx context.Context, id string) (err error) {
			h.Refunds, err = q.RefundRecords(ctx, RefundFilter{InvoiceID: id, Limit: historyPayments})
			return err
		},
	} {
		if err := read(ctx, id); err != nil {
			return h, err
		}
	}
	if h.Attempts, err = q.attemptsOf(ctx, h.Events); err != nil {
		return h, err
	}
	h.More = len(h.Payments) == historyPayments || len(h.Refunds) == historyPayments || len(h.Events) == historyEvents || len(h.Attempts) >= historyAttempts
	return h, nil
}

func (q *queries) seenPayments(ctx context.Context, invoiceID string) ([]SeenPayment, error) {
	return queryAll(ctx, q, func(row scanner) (p SeenPayment, err error) {
		p.PaymentRow, err = scanPayment(suffixedRow{row, []any{seconds{&p.OrphanedAt}}})
		return p, err
	}, "SELECT "+paymentColumns+", orphaned_at FROM payments "+q.indexedBy("payments_of_invoice")+"WHERE invoice_id = $1 ORDER BY seen_id LIMIT $2", invoiceID, historyPayments)
}

func (q *queries) eventsOfInvoice(ctx context.Context, invoiceID string) ([]Event, error) {
	return queryAll(ctx, q, func(row scanner) (e Event, err error) {
		err = row.Scan(&e.ID, &e.Seq, &e.Type, seconds{&e.CreatedAt})
		return e, err
	}, "SELECT id, seq, type, created_at FROM events WHERE invoice_id = $1 ORDER BY seq LIMIT $2", invoiceID, historyEvents)
}

// attemptsOf returns the attempts to deliver the events, the first events' first.
func (q *queries) attemptsOf(ctx context.Context, events []Event) ([]EventAttempt, error) {
	ids, seqs := make(map[int64]string), make([]int64, len(events))
	for i, e := range events {
		ids[e.Seq], seqs[i] = e.ID, e.Seq
	}
	return queryIn(seqs, func(chunk []any) ([]EventAttempt, error) {
		return queryAll(ctx, q, func(row scanner) (a EventAttempt, err error) {
			var seq, code int64
			err = row.Scan(&seq, &a.Number, milliseconds{&a.Started}, nullInt{&code}, &a.Error)
			a.EventID, a.StatusCode = ids[seq], int(code)
			return a, err
		}, "SELECT seq, number, started_ms, status_code, error FROM attempts WHERE seq IN "+parameterList(0, len(chunk))+
			" ORDER BY seq, number LIMIT "+parameter(len(chunk)+1), append(chunk, historyAttempts)...)
	})
}

func (q *queries) commitmentTxs(ctx context.Context, invoiceID string) ([]CommitmentTx, error) {
	return queryAll(ctx, q, func(row scanner) (c CommitmentTx, err error) {
		err = row.Scan(&c.Kind, hashCol(&c.Hash), milliseconds{&c.Created})
		return c, err
	}, `SELECT intents.kind, chain_tx_attempts.tx_hash, chain_tx_attempts.created_ms FROM intents CROSS JOIN chain_tx_attempts
		WHERE chain_tx_attempts.tx_id = intents.tx_id AND intents.invoice_id = $1`, invoiceID)
}
