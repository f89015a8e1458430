package api

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

// AuthorizationStatus returns the outcome of an authorization, as far as it is known.
func AuthorizationStatus(a ledger.Authorization) apitypes.AuthorizationStatus {
	switch {
	case a.Paid():
		return apitypes.AuthorizationPaid
	case a.Status == ledger.AuthorizationRefused:
		return apitypes.AuthorizationRefused
	}
	return apitypes.AuthorizationUnknown
}

// Authorization returns an authorization with its outcome.
func Authorization(a ledger.Authorization) apitypes.Authorization {
	w := apitypes.Authorization{
		ID: a.ID, InvoiceID: a.InvoiceID, ChainKey: a.ChainKey, From: chain.Checksum(a.From), To: chain.Checksum(a.To),
		Value: a.Value.String(), ValidBefore: a.ValidBefore.Unix(), Nonce: a.Nonce.String(), Status: AuthorizationStatus(a),
		CreatedAt: a.CreatedAt.Unix(),
	}
	switch w.Status {
	case apitypes.AuthorizationPaid:
		w.PaymentID, w.TxHash, w.PaymentStatus = a.Payment.ID, a.Payment.TxHash.String(), apitypes.PaymentStatus(a.Payment.Status.Shown())
	case apitypes.AuthorizationRefused:
		w.Reason, w.Detail = string(a.Reason), a.Reason.Detail()
	case apitypes.AuthorizationUnknown:
		w.Detail = "Do not sign again: this authorization may still be carried out. The outcome is certain soon after validBefore at the latest."
	}
	return w
}
