package store

import (
	"strings"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
)

// paymentTables returns the rows of payments and refunds.
func (r Rows) paymentTables() []tableRows {
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
		item := orNull(string(kind))
		facts := firstUse(p)
		facts.Refunded, facts.Pending = refunded[p.ID], paidBack[p.ID].Minus(refunded[p.ID])
		values := paymentValues(p)
		values[len(values)-1] = useValue(facts) // the last column is use
		payments = append(payments, append(values, paidBack[p.ID].String(), item))
		if holder := holders[p.To]; !p.Attributed() && holder != "" {
			unattributed = append(unattributed, []any{p.SeenID, holder, p.ChainKey, item})
		}
	}
	return []tableRows{
		{insertion{table: "payments", columns: append(strings.Split(paymentColumns, ", "), "amount_refunded", "item")}, payments},
		{insertion{table: "unattributed", columns: []string{"seen_id", "merchant_id", "chain_key", "item"}}, unattributed},
		{insertion{table: "refunds", columns: strings.Split(refundColumns, ", ")}, refunds},
		{insertion{table: "refund_records", columns: unpreparedColumns}, records},
	}
}

// eventTables returns the rows of events, their deliveries and attempts.
func (r Rows) eventTables() []tableRows {
	var events, pending, finished, attempts [][]any
	for _, e := range r.Events {
		events = append(events, eventValues(e.Event, e.Seq))
		switch e.Status {
		case "":
		case delivery.Pending:
			pending = append(pending, []any{e.Seq, e.MerchantID, e.Tried, e.Due.UnixMilli(), e.CreatedAt.Add(delivery.RetryWindow).UnixMilli()})
		default:
			finished = append(finished, []any{e.Seq, e.MerchantID, string(e.Status), e.Tried, e.Finished.UnixMilli()})
		}
		for _, a := range e.Attempts {
			attempts = append(attempts, attemptValues(e.Seq, a))
		}
	}
	return []tableRows{
		{insertion{table: "events", columns: eventColumns}, events},
		{insertion{table: "deliveries", columns: []string{"seq", "merchant_id", "attempts", "due_ms", "deadline_ms"}}, pending},
		{insertion{table: "finished_deliveries", columns: finishedColumns}, finished},
		{insertion{table: "attempts", columns: insertedAttempt}, attempts},
	}
}
