package apiconv

import (
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// Key converts a key, with its state at a time.
func Key(r access.Record, now time.Time) apitypes.Key {
	return apitypes.Key{
		ID: r.ID, Name: r.Name, Hint: r.Hint, MerchantID: r.MerchantID, Scopes: r.Scopes.Names(), State: string(r.State(now)),
		CreatedAt: r.CreatedAt.Unix(), ExpiresAt: optionalTime(r.ExpiresAt), RevokedAt: optionalTime(r.RevokedAt),
		LastUsedAt: optionalTime(r.LastUsedAt), ReplacedBy: r.ReplacedBy, PersonID: r.PersonID, Version: string(r.Version),
	}
}

// optionalTime returns t in Unix seconds, or 0 for the zero time, which is left out.
func optionalTime(t time.Time) apitypes.Time {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
