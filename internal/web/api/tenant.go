package api

import (
	"context"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// otherMerchant is the detail of a request for another merchant than the key's.
const otherMerchant = "The key belongs to one merchant, and the request names another as merchantId; leave it out."

// ownMerchant returns the merchant that a request is about: the one that it names or, if it names no
// merchant, the principal's. It refuses a merchant other than the principal's, whether or not it
// exists.
func ownMerchant(ctx context.Context, named string) (string, error) {
	p := access.FromContext(ctx)
	if named == "" {
		named = p.MerchantID
	}
	if !p.Sees(named) {
		return "", problemf(apitypes.CodeForbidden, otherMerchant)
	}
	return named, nil
}

// idempotencyScope returns the scope of the idempotency keys of a principal, so that keys of two
// owners never collide. For the operator it does not depend on the merchant: a key that is reused for
// another merchant is a mismatch.
func idempotencyScope(p access.Principal) string {
	if p.MerchantID == "" {
		return ""
	}
	return "merchant " + p.MerchantID
}
