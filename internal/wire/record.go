package wire

import (
	"encoding/json"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/store"
)

// FromEventRow returns an event as the log of events has it, without its
// attempts.
func FromEventRow(r store.EventRow) EventRecord {
	w := EventRecord{Event: json.RawMessage(r.Body), MerchantID: r.MerchantID, InvoiceID: r.InvoiceID}
	switch r.Status {
	case delivery.None:
	case delivery.Pending:
		w.Delivery = &Delivery{
			ID: r.DeliveryID, Status: DeliveryPending, Attempts: r.Attempts,
			NextAttemptAt: unix(r.DueMS), Deadline: unix(r.DeadlineMS),
		}
		if r.NoEndpoint {
			w.Delivery.WaitingFor, w.Delivery.NextAttemptAt = DeliveryWaitEndpoint, 0
		}
	case delivery.Delivered, delivery.Failed:
		w.Delivery = &Delivery{
			ID: r.DeliveryID, Status: DeliveryStatus(r.Status), Attempts: r.Attempts, FinishedAt: unix(r.FinishedMS),
		}
	}
	return w
}

// FromAttempt returns an attempt to deliver an event.
func FromAttempt(a delivery.Attempt) Attempt {
	return Attempt{
		Number: a.Number, StartedAt: unix(a.StartedMS), DurationMs: a.DurationMS,
		LookupMs: a.LookupMS, ConnectMs: a.ConnectMS, HandshakeMs: a.HandshakeMS, AnswerMs: a.AnswerMS,
		StatusCode: a.StatusCode, Error: a.Error, Excerpt: a.Excerpt,
	}
}

// unix returns Unix seconds of milliseconds.
func unix(ms int64) Time { return time.UnixMilli(ms).Unix() }
