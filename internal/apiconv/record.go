package apiconv

import (
	"encoding/json"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/store"
)

// EventRecord returns an entry of the event log, without its attempts.
func EventRecord(r store.EventRow) apitypes.EventRecord {
	w := apitypes.EventRecord{Event: json.RawMessage(r.Body), MerchantID: r.MerchantID, InvoiceID: r.InvoiceID}
	switch r.Status {
	case delivery.None:
	case delivery.Pending:
		w.Delivery = &apitypes.Delivery{
			ID: r.DeliveryID, Status: apitypes.DeliveryPending, Attempts: r.Attempts,
			NextAttemptAt: unix(r.DueMS), Deadline: unix(r.DeadlineMS),
		}
		if r.NoEndpoint {
			w.Delivery.WaitingFor, w.Delivery.NextAttemptAt = apitypes.DeliveryWaitEndpoint, 0
		}
	case delivery.Delivered, delivery.Failed:
		w.Delivery = &apitypes.Delivery{
			ID: r.DeliveryID, Status: apitypes.DeliveryStatus(r.Status), Attempts: r.Attempts, FinishedAt: unix(r.FinishedMS),
		}
	}
	return w
}

// Attempt returns a delivery attempt.
func Attempt(a delivery.Attempt) apitypes.Attempt {
	return apitypes.Attempt{
		Number: a.Number, StartedAt: unix(a.StartedMS), DurationMs: a.DurationMS,
		LookupMs: a.LookupMS, ConnectMs: a.ConnectMS, HandshakeMs: a.HandshakeMS, AnswerMs: a.AnswerMS,
		StatusCode: a.StatusCode, Error: a.Error, Excerpt: a.Excerpt,
	}
}

// unix converts Unix milliseconds to seconds.
func unix(ms int64) apitypes.Time { return time.UnixMilli(ms).Unix() }
