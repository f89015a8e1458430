package ledger

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// parseClaimHash parses the column claim_token, which holds the hash of a token.
func parseClaimHash(column string) (hash invoice.Hash, err error) {
	text, err := hex.DecodeString(column)
	if err == nil && copy(hash[:], text) != len(hash) {
		err = fmt.Errorf("has %d bytes", len(text))
	}
	return hash, err
}

// claimHash returns the hash to store of a token, or "" for an empty token.
func claimHash(token string) string {
	if token == "" {
		return ""
	}
	return claimHashText(invoice.HashClaimToken(token))
}

func claimHashText(hash invoice.Hash) string { return hex.EncodeToString(hash[:]) }

// RefundByClaimToken returns the prepared refund for the token of its page, or ErrNotFound.
func RefundByClaimToken(ctx context.Context, q db.Querier, token string) (invoice.RefundRecord, error) {
	return recordWhere(ctx, q, "WHERE refund_records.claim_token = $1", claimHash(token))
}
