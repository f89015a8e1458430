package apiconv

import (
	"time"

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

// ParseAuditEntry is the inverse of AuditEntry.
func ParseAuditEntry(e apitypes.AuditEntry) (access.Entry, error) {
	prev, err := access.ParseEntryHash(e.PrevHash)
	if err != nil {
		return access.Entry{}, err
	}
	hash, err := access.ParseEntryHash(e.Hash)
	if err != nil {
		return access.Entry{}, err
	}
	return access.Entry{
		Seq: e.Seq, At: time.Unix(e.At, 0).UTC(), Origin: access.Origin{Actor: e.Actor, Client: e.Client, RequestID: e.RequestID}, MerchantID: e.MerchantID,
		Action: access.Action(e.Action), Object: e.Object, Before: e.Before, After: e.After, Prev: prev, Hash: hash,
	}, nil
}
