package apiconv

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// AuditEntry converts an entry of the audit log.
func AuditEntry(e access.Entry) apitypes.AuditEntry {
	return apitypes.AuditEntry{
		Seq: e.Seq, At: e.At.Unix(), Actor: e.Actor, Client: e.Client, RequestID: e.RequestID, MerchantID: e.MerchantID,
		Action: string(e.Action), Object: e.Object, Before: e.Before, After: e.After,
		PrevHash: e.Prev.String(), Hash: e.Hash.String(),
	}
}
