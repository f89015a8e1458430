package api

import (
	"encoding/json"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/webhooks"
)

// EventRecord returns an entry of the event log, without its attempts.
func EventRecord(r webhooks.EventRow) apitypes.EventRecord {
	w := apitypes.EventRecord{Event: json.RawMessage(r.Body), MerchantID: r.MerchantID, InvoiceID: r.InvoiceID}
	switch r.Status {
	case webhooks.None:
	case webhooks.Pending:
		w.Delivery = &apitypes.Delivery{
			ID: r.DeliveryID, Status: apitypes.DeliveryPending, Attempts: r.Attempts,
			NextAttemptAt: r.Due.Unix(), Deadline: r.Deadline.Unix(),
		}
		if r.NoEndpoint {
			w.Delivery.WaitingFor, w.Delivery.NextAttemptAt = apitypes.DeliveryWaitEndpoint, 0
		}
	case webhooks.Delivered, webhooks.Failed:
		w.Delivery = &apitypes.Delivery{
			ID: r.DeliveryID, Status: apitypes.DeliveryStatus(r.Status), Attempts: r.Attempts, FinishedAt: r.Finished.Unix(),
		}
	}
	return w
}

// Attempt returns a delivery attempt.
func Attempt(a webhooks.Attempt) apitypes.Attempt {
	return apitypes.Attempt{
		Number: a.Number, StartedAt: a.Started.Unix(), DurationMs: a.Duration.Milliseconds(),
		LookupMs: a.Lookup.Milliseconds(), ConnectMs: a.Connect.Milliseconds(),
		HandshakeMs: a.Handshake.Milliseconds(), AnswerMs: a.Answer.Milliseconds(),
		StatusCode: a.StatusCode, Error: a.Error, Excerpt: a.Excerpt,
	}
}
