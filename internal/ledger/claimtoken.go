package ledger

import (
	"fmt"
	"io"

	"github.com/quittance/quittance/internal/invoice"
)

// claimTokenSize is the size of the token of the page on which a payer names an address, in bytes.
const claimTokenSize = 20

// ClaimToken returns the token of a refund's page, or "" if it is not known. Only its hash is stored.
// With a master key the token can be computed again; without one it is known only when it is made.
func (s *Service) ClaimToken(r invoice.RefundRecord) string {
	if r.ClaimToken != "" || r.ClaimHash.IsZero() {
		return r.ClaimToken
	}
	for _, token := range s.claimTokens(r.ID) {
		if invoice.HashClaimToken(token) == r.ClaimHash {
			return token
		}
	}
	return ""
}

// claimTokens returns the tokens that the master keys derive for a refund, beginning with the newest key.
func (s *Service) claimTokens(refundID string) (tokens []string) {
	if s.conf.Keyring == nil {
		return nil
	}
	for _, secret := range s.conf.Keyring.Tokens("refund " + refundID) {
		tokens = append(tokens, invoice.Text(secret[:claimTokenSize]))
	}
	return tokens
}

// newClaimToken returns 160 bits as text: derived from the master key, or random.
func (s *Service) newClaimToken(refundID string) (string, error) {
	if tokens := s.claimTokens(refundID); len(tokens) > 0 {
		return tokens[0], nil
	}
	var random [claimTokenSize]byte
	if _, err := io.ReadFull(s.conf.Rand, random[:]); err != nil {
		return "", fmt.Errorf("claim token: %w", err)
	}
	return invoice.Text(random[:]), nil
}
