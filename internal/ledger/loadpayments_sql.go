package ledger

import (
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// paymentTables returns the rows of payments and refunds.
func (r Rows) paymentTables() []db.TableRows {
	holders := make(map[invoice.Address]string)
	for _, inv := range r.Invoices {
		holders[inv.Merchant] = inv.MerchantID
	}
	paidBack, refunded := make(map[string]invoice.Amount), make(map[string]invoice.Amount) // the latter by confirmed refunds
	var payments, unattributed, refunds, records [][]any
	for _, refund := range r.Refunds {
		paidBack[refund.PaymentID] = paidBack[refund.PaymentID].Plus(refund.Amount)
		if refund.Status == invoice.Confirmed {
			refunded[refund.PaymentID] = refunded[refund.PaymentID].Plus(refund.Amount)
		}
		refunds, records = append(refunds, refundValues(refund)), append(records, unpreparedValues(refund))
	}
	for _, p := range r.Payments {
		kind, _ := invoice.ItemOfPayment(p.Payment, paidBack[p.ID], 0) // there are no claims or decisions
		item := db.OrNull(string(kind))
		facts := firstUse(p)
		facts.Refunded, facts.Pending = refunded[p.ID], paidBack[p.ID].Minus(refunded[p.ID])
		values := paymentValues(p)
		values[len(values)-1] = useValue(facts) // the last column is use
		payments = append(payments, append(values, paidBack[p.ID].String(), item))
		if holder := holders[p.To]; !p.Attributed() && holder != "" {
			unattributed = append(unattributed, []any{p.SeenID, holder, p.ChainKey, item})
		}
	}
	return []db.TableRows{
		{Insertion: db.Insertion{Table: "payments", Columns: append(strings.Split(paymentColumns, ", "), "amount_refunded", "item")}, Rows: payments},
		{Insertion: db.Insertion{Table: "unattributed", Columns: []string{"seen_id", "merchant_id", "chain_key", "item"}}, Rows: unattributed},
		{Insertion: db.Insertion{Table: "refunds", Columns: strings.Split(refundColumns, ", ")}, Rows: refunds},
		{Insertion: db.Insertion{Table: "refund_records", Columns: unpreparedColumns}, Rows: records},
	}
}

// eventTables returns the rows of events, their deliveries and attempts.
func (r Rows) eventTables() []db.TableRows {
	var events, pending, finished, attempts [][]any
	for _, e := range r.Events {
		events = append(events, webhooks.EventValues(e.Event, e.Seq))
		switch e.Status {
		case "":
		case webhooks.Pending:
			pending = append(pending, []any{e.Seq, e.MerchantID, e.Tried, e.Due.UnixMilli(), e.CreatedAt.Add(webhooks.RetryWindow).UnixMilli()})
		default:
			finished = append(finished, []any{e.Seq, e.MerchantID, string(e.Status), e.Tried, e.Finished.UnixMilli()})
		}
		for _, a := range e.Attempts {
			attempts = append(attempts, webhooks.AttemptValues(e.Seq, a))
		}
	}
	return []db.TableRows{
		{Insertion: db.Insertion{Table: "events", Columns: webhooks.EventColumns}, Rows: events},
		{Insertion: db.Insertion{Table: "deliveries", Columns: []string{"seq", "merchant_id", "attempts", "due_ms", "deadline_ms"}}, Rows: pending},
		{Insertion: db.Insertion{Table: "finished_deliveries", Columns: webhooks.FinishedColumns}, Rows: finished},
		{Insertion: db.Insertion{Table: "attempts", Columns: webhooks.InsertedAttempt}, Rows: attempts},
	}
}
