package store

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
)

// claimHashLength is the length of the column claim_token where it holds a hash. Tokens, which a
// release before this one stored, are shorter.
const claimHashLength = 64

// claim is the stored form of the token of a refund's page.
type claim struct {
	token string // empty unless it is stored as it is
	hash  invoice.Hash
}

func parseClaim(column string) (c claim, err error) {
	if len(column) != claimHashLength {
		return claim{column, invoice.HashClaimToken(column)}, nil
	}
	n, err := hex.Decode(c.hash[:], []byte(column))
	if err == nil && n != len(c.hash) {
		err = fmt.Errorf("has %d bytes", n)
	}
	return c, err
}

// claimHash returns the hash to store of a token, or "" for an empty token.
func claimHash(token string) string {
	if token == "" {
		return ""
	}
	hash := invoice.HashClaimToken(token)
	return hex.EncodeToString(hash[:])
}

// RefundByClaimToken returns the prepared refund for the token of its page, or ErrNotFound.
func (q *queries) RefundByClaimToken(ctx context.Context, token string) (invoice.RefundRecord, error) {
	hash, former := claimHash(token), token // as a release before this one stored it
	if len(token) == claimHashLength {
		former = hash // the hash does not open the page
	}
	return queryRow(ctx, q, scanRecord, selectRecords+"WHERE refund_records.claim_token IN ($1, $2)", hash, former)
}

// HashClaimTokens replaces up to limit tokens that a release before this one stored by their hashes,
// and returns how many there were.
func (s *Store) HashClaimTokens(ctx context.Context, limit int) (n int, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		tokens, err := queryAll(ctx, &tx.queries, scanID,
			"SELECT claim_token FROM refund_records WHERE claim_token IS NOT NULL AND length(claim_token) <> $1 LIMIT $2", claimHashLength, limit)
		if err != nil {
			return err
		}
		for _, token := range tokens {
			if _, err := tx.exec(ctx, "UPDATE refund_records SET claim_token = $2 WHERE claim_token = $1", token, claimHash(token)); err != nil {
				return err
			}
		}
		n = len(tokens)
		return nil
	})
	return n, err
}
