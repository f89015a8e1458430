package api

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// LoggedRequest converts a request of the log.
func LoggedRequest(e access.LoggedRequest) apitypes.LoggedRequest {
	return apitypes.LoggedRequest{
		ID: e.ID, At: e.At.Unix(), MerchantID: e.MerchantID, KeyID: e.KeyID, Method: e.Method, Route: e.Route, Path: e.Path, Status: e.Status,
		Code: e.Code, Detail: e.Detail, DurationMs: e.Duration.Milliseconds(), Client: e.Client, RequestID: e.RequestID, IdempotencyKey: e.Idempotent,
	}
}
