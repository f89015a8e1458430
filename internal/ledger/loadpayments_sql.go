package ledger

import (
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
	refunded := make(map[string]RefundedSum)
	var payments, unattributed, refunds, records [][]any
	for _, refund := range r.Refunds {
		refunded[refund.PaymentID] = refunded[refund.PaymentID].plus(refund)
		refunds, records = append(refunds, refundTable.Values(refund)), append(records, unpreparedTable.Values(refund))
	}
	for _, p := range r.Payments {
		kind, _ := invoice.ItemOfPayment(p.Payment, refunded[p.ID].All, 0) // there are no claims or decisions
		item := db.OrNull(string(kind))
		p.Use = useOf(useFacts(p, refunded[p.ID]))
		payments = append(payments, paymentTable.Values(p, refunded[p.ID].All.String(), refunded[p.ID].Final.String(), item))
		if holder := holders[p.To]; !p.Attributed() && holder != "" {
			unattributed = append(unattributed, []any{p.SeenID, holder, p.ChainKey, item})
		}
	}
	return []db.TableRows{
		{Insertion: paymentTable.Insertion("", "amount_refunded", "refunded_final", "item"), Rows: payments},
		{Insertion: db.Insertion{Table: "unattributed", Columns: []string{"seen_id", "merchant_id", "chain_key", "item"}}, Rows: unattributed},
		{Insertion: refundTable.Insertion(""), Rows: refunds},
		{Insertion: unpreparedTable.Insertion(""), Rows: records},
	}
}

// eventTables returns the rows of events, their deliveries and attempts.
func (r Rows) eventTables() []db.TableRows {
	var events, pending, finished, attempts [][]any
	for _, e := range r.Events {
		events = append(events, webhooks.EventTable.Values(e.Event))
		switch e.Status {
		case "":
		case webhooks.Pending:
			pending = append(pending, []any{e.Seq, e.MerchantID, e.Tried, e.Due.UnixMilli(), e.CreatedAt.Add(webhooks.RetryWindow).UnixMilli()})
		default:
			finished = append(finished, webhooks.FinishedTable.Values(webhooks.FinishedDelivery{
				Seq: e.Seq, MerchantID: e.MerchantID, Status: e.Status, Attempts: e.Tried, Finished: e.Finished,
			}))
		}
		for _, a := range e.Attempts {
			attempts = append(attempts, webhooks.AttemptTable.Values(a, e.Seq))
		}
	}
	return []db.TableRows{
		{Insertion: webhooks.EventTable.Insertion(""), Rows: events},
		{Insertion: db.Insertion{Table: "deliveries", Columns: []string{"seq", "merchant_id", "attempts", "due_ms", "deadline_ms"}}, Rows: pending},
		{Insertion: webhooks.FinishedTable.Insertion(""), Rows: finished},
		{Insertion: webhooks.AttemptTable.Insertion("", "seq BIGINT"), Rows: attempts},
	}
}
