package ledger

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Limits of an InvoiceHistory: anyone can send any number of payments to an invoice.
const (
	// MaxHistoryPayments bounds the payments of a history, its refunds, and its sweeps.
	MaxHistoryPayments = 100
	// MaxHistoryEvents bounds its events.
	MaxHistoryEvents = 300
	// MaxHistoryAttempts bounds its attempts.
	MaxHistoryAttempts = 1000
	// MaxHistoryTxs bounds its commitment transactions.
	MaxHistoryTxs = 100
	// MaxHistoryDecisions bounds its decisions.
	MaxHistoryDecisions = 100
)

// InvoiceHistory is what happened to an invoice: the first payments, sweeps, events,
// attempts and commitment transactions, and the latest refunds.
type InvoiceHistory struct {
	Invoice     invoice.Invoice
	Transitions []InvoiceTransition
	Payments    []SeenPayment
	Refunds     []invoice.RefundRecord
	Decisions   []invoice.Decision // the latest
	Sweeps      []SeenSweep
	Events      []webhooks.Event // without bodies
	Attempts    []EventAttempt
	Txs         []CommitmentTx
	OpenedAt    time.Time // zero if its page was never opened
	Reported    []ReportedTransaction
	Signed      []Authorization // accepted of payers
	Truncated   bool            // there is more than the limits allow
}

// InvoiceTransition is a transition that a request caused: of a draft to open, or of an invoice to void.
type InvoiceTransition struct {
	Status invoice.Status // the new state of the invoice
	At     time.Time
	By     string // empty if it is not known
}

// SeenPayment is a payment with the blocks that confirm it.
type SeenPayment struct {
	PaymentRow
	Confirmations []Confirmation
}

// SeenSweep is a sweep of the invoice's deposit address with the time when it was last
// orphaned, which is zero if it never was.
type SeenSweep struct {
	invoice.Sweep
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
	Cost    TxCost // the invoice's share; zero while unknown, and for a replaced form
}

// InvoiceHistory returns the history of an invoice, or ErrNotFound.
func (q Reader) InvoiceHistory(ctx context.Context, id string) (h InvoiceHistory, err error) {
	if h.Invoice, err = q.Invoice(ctx, id); err != nil {
		return h, err
	}
	for _, read := range []func() error{
		func() error { h.Transitions, err = transitions(ctx, q, id); return err },
		func() error { h.OpenedAt, err = openedAt(ctx, q, id); return err },
		func() error { h.Reported, err = reportedTransactions(ctx, q, id); return err },
		func() error { h.Signed, err = q.AuthorizationsOfInvoice(ctx, id, MaxHistoryPayments+1); return err },
		func() error { h.Payments, err = seenPayments(ctx, q, id); return err },
		func() error {
			h.Refunds, err = q.RefundRecords(ctx, RefundFilter{InvoiceID: id, Limit: MaxHistoryPayments + 1})
			return err
		},
		func() error {
			h.Decisions, err = q.Decisions(ctx, DecisionFilter{ObjectID: id, Limit: MaxHistoryDecisions + 1})
			return err
		},
		func() error { h.Sweeps, err = seenSweeps(ctx, q, id); return err },
		func() error { h.Txs, err = commitmentTxs(ctx, q, id); return err },
		func() error { h.Events, err = eventsOfInvoice(ctx, q, id); return err },
	} {
		if err := read(); err != nil {
			return h, err
		}
	}
	h.Events = truncate(&h, h.Events, MaxHistoryEvents)
	if h.Attempts, err = attemptsOf(ctx, q, h.Events); err != nil {
		return h, err
	}
	h.Signed = truncate(&h, h.Signed, MaxHistoryPayments)
	h.Payments = truncate(&h, h.Payments, MaxHistoryPayments)
	h.Refunds = truncate(&h, h.Refunds, MaxHistoryPayments)
	h.Decisions = truncate(&h, h.Decisions, MaxHistoryDecisions)
	h.Sweeps = truncate(&h, h.Sweeps, MaxHistoryPayments)
	h.Txs = truncate(&h, h.Txs, MaxHistoryTxs)
	h.Attempts = truncate(&h, h.Attempts, MaxHistoryAttempts)
	return h, addConfirmations(ctx, q, h.Invoice.ChainKey, h.Payments)
}

// truncate returns the first rows, up to a limit.
func truncate[T any](h *InvoiceHistory, rows []T, limit int) []T {
	if len(rows) <= limit {
		return rows
	}
	h.Truncated = true
	return rows[:limit]
}

// InsertInvoiceTransition records a transition that a request caused.
func InsertInvoiceTransition(ctx context.Context, tx *db.Tx, invoiceID string, t InvoiceTransition) error {
	return tx.Do(ctx, "INSERT INTO invoice_transitions (invoice_id, status, at, changed_by) VALUES ($1, $2, $3, NULLIF(CAST($4 AS TEXT), ''))",
		invoiceID, string(t.Status), invoice.UnixSeconds(t.At), t.By)
}

func transitions(ctx context.Context, q db.Querier, invoiceID string) ([]InvoiceTransition, error) {
	return db.QueryAll(ctx, q, db.Fields(func(t *InvoiceTransition) []any {
		return []any{&t.Status, db.Seconds(&t.At), db.Null(db.Text(&t.By))}
	}), "SELECT status, at, changed_by FROM invoice_transitions WHERE invoice_id = $1", invoiceID)
}

func seenPayments(ctx context.Context, q db.Querier, invoiceID string) ([]SeenPayment, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (p SeenPayment, err error) {
		p.PaymentRow, err = scanOrphaned(row)
		return p, err
	}, "SELECT orphaned_at, "+paymentTable.List()+" FROM payments "+q.IndexedBy("payments_of_invoice")+"WHERE invoice_id = $1 ORDER BY seen_id LIMIT $2", invoiceID, MaxHistoryPayments+1)
}

func seenSweeps(ctx context.Context, q db.Querier, invoiceID string) ([]SeenSweep, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (s SeenSweep, err error) {
		s.Sweep, err = sweepTable.ScanAfter(row, db.Seconds(&s.OrphanedAt))
		return s, err
	}, "SELECT orphaned_at, "+sweepTable.List()+" FROM sweeps WHERE invoice_id = $1 ORDER BY block_number, log_index LIMIT $2", invoiceID, MaxHistoryPayments+1)
}

func eventsOfInvoice(ctx context.Context, q db.Querier, invoiceID string) ([]webhooks.Event, error) {
	return db.QueryAll(ctx, q, db.Fields(func(e *webhooks.Event) []any {
		return []any{&e.ID, &e.Seq, &e.Type, db.Seconds(&e.CreatedAt)}
	}), "SELECT id, seq, type, created_at FROM events WHERE invoice_id = $1 ORDER BY seq LIMIT $2", invoiceID, MaxHistoryEvents+1)
}

// attemptsOf returns the attempts to deliver the events, ordered by event.
func attemptsOf(ctx context.Context, q db.Querier, events []webhooks.Event) ([]EventAttempt, error) {
	ids, seqs := make(map[int64]string), make([]int64, len(events))
	for i, e := range events {
		ids[e.Seq], seqs[i] = e.ID, e.Seq
	}
	return db.QueryIn(seqs, func(chunk []any) ([]EventAttempt, error) {
		return db.QueryAll(ctx, q, func(row db.Scanner) (a EventAttempt, err error) {
			var seq, code int64
			err = row.Scan(&seq, &a.Number, db.Milliseconds(&a.Started), db.Int(&code), &a.Error)
			a.EventID, a.StatusCode = ids[seq], int(code)
			return a, err
		}, "SELECT seq, number, started_ms, status_code, error FROM attempts WHERE seq IN "+db.ParameterList(0, len(chunk))+
			" ORDER BY seq, number LIMIT "+db.Parameter(len(chunk)+1), append(chunk, MaxHistoryAttempts+1)...)
	})
}

// commitmentTxs returns the signed forms of an invoice's commitment transactions. The last form
// of each has its cost, shared among all commitments that the transaction carries.
func commitmentTxs(ctx context.Context, q db.Querier, invoiceID string) ([]CommitmentTx, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (c CommitmentTx, err error) {
		var number, last, gwei, carried int64
		var at time.Time
		err = row.Scan(&c.Kind, db.Hash(&c.Hash), db.Milliseconds(&c.Created), &number, &last, db.Int(&gwei), db.Milliseconds(&at), &carried)
		if number == last && !at.IsZero() {
			c.Cost = TxCost{Gwei: gwei / max(carried, 1), At: at}
		}
		return c, err
	}, `SELECT intents.kind, chain_tx_attempts.tx_hash, chain_tx_attempts.created_ms, chain_tx_attempts.number,
		(SELECT max(number) FROM chain_tx_attempts AS forms WHERE forms.tx_id = intents.tx_id), chain_txs.spent_gwei, chain_txs.spent_ms,
		(SELECT count(*) FROM intents AS carried WHERE carried.tx_id = intents.tx_id)
		FROM intents CROSS JOIN chain_tx_attempts CROSS JOIN chain_txs
		WHERE chain_tx_attempts.tx_id = intents.tx_id AND chain_txs.id = intents.tx_id AND intents.invoice_id = $1
		ORDER BY chain_tx_attempts.created_ms LIMIT $2`, invoiceID, MaxHistoryTxs+1)
}

// TxCost is the cost of a mined transaction.
type TxCost struct {
	Gwei int64     // billionths of the chain's native coin
	At   time.Time // when it became known
	// Scheduled is At by the schedule's clock.
	Scheduled time.Time
}

// Opening is when the page of an invoice was first opened.
type Opening struct {
	InvoiceID string
	At        time.Time
}

// RecordOpenings stores openings, except of invoices that have one.
func RecordOpenings(ctx context.Context, s *db.DB, openings []Opening) error {
	rows := db.Each(openings, func(o Opening) []any { return []any{o.InvoiceID, o.At.Unix()} })
	return s.Update(ctx, func(tx *db.Tx) error {
		return tx.Insert(ctx, db.Insertion{Table: "invoice_openings", Columns: []string{"invoice_id", "opened_at"}, Conflict: "ON CONFLICT (invoice_id) DO NOTHING"}, rows)
	})
}

// openedAt returns when the page of an invoice was first opened, or zero.
func openedAt(ctx context.Context, q db.Querier, invoiceID string) (time.Time, error) {
	at, err := db.QueryRow(ctx, q, db.ScanTime, "SELECT opened_at FROM invoice_openings WHERE invoice_id = $1", invoiceID)
	return at, db.IgnoreNotFound(err)
}

// MaxReportedTransactions is how many transactions are kept of an invoice.
const MaxReportedTransactions = 20

// ReportedTransaction is a transaction that a wallet gave to the page of an invoice.
type ReportedTransaction struct {
	Hash invoice.Hash
	At   time.Time
}

// ReportTransaction keeps a transaction that a wallet gave to the page of an invoice, unless it is
// known or the invoice has MaxReportedTransactions.
func (s Tables) ReportTransaction(ctx context.Context, invoiceID string, t ReportedTransaction) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		return tx.Do(ctx, `INSERT INTO reported_transactions (invoice_id, tx_hash, reported_at)
			SELECT $1, $2, CAST($3 AS BIGINT) WHERE (SELECT count(*) FROM reported_transactions WHERE invoice_id = $1) < $4 ON CONFLICT DO NOTHING`,
			invoiceID, t.Hash.String(), invoice.UnixSeconds(t.At), MaxReportedTransactions)
	})
}

func reportedTransactions(ctx context.Context, q db.Querier, invoiceID string) ([]ReportedTransaction, error) {
	return db.QueryAll(ctx, q, db.Fields(func(t *ReportedTransaction) []any {
		return []any{db.Hash(&t.Hash), db.Seconds(&t.At)}
	}), "SELECT tx_hash, reported_at FROM reported_transactions WHERE invoice_id = $1", invoiceID)
}
