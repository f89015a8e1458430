package webhooks

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/quittance/quittance/internal/db"
)

// HeadersVersion is the version under which the headers of an endpoint are encrypted. Versions of
// secrets begin with 1.
const HeadersVersion = 0

// selectHeaders reads the headers of endpoints as secrets.
const selectHeaders = "SELECT merchant_id, 0, sealed, key_id, '', NULL, NULL, NULL FROM endpoint_headers "

// headers returns the encrypted headers of the merchants' endpoints that have headers.
func headers(ctx context.Context, q db.Querier, merchantIDs []string) (map[string]SecretRow, error) {
	found := make(map[string]SecretRow)
	return found, db.InBatches(merchantIDs, "", func(part []string) error {
		rows, err := db.QueryAll(ctx, q, scanSecret, selectHeaders+"WHERE merchant_id IN "+db.ParameterList(0, len(part)), db.ToAny(part)...)
		for _, r := range rows {
			found[r.MerchantID] = r
		}
		return err
	})
}

// putHeaders replaces the encrypted headers of a merchant's endpoint. Without r.Sealed, it removes
// them.
func putHeaders(ctx context.Context, tx *db.Tx, r SecretRow) error {
	text, args := "DELETE FROM endpoint_headers WHERE merchant_id = $1", []any{r.MerchantID}
	if len(r.Sealed) > 0 {
		text = `INSERT INTO endpoint_headers (merchant_id, sealed, key_id) VALUES ($1, $2, $3)
			ON CONFLICT (merchant_id) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id`
		args = append(args, base64.StdEncoding.EncodeToString(r.Sealed), r.KeyID)
	}
	if _, err := tx.Exec(ctx, text, args...); err != nil {
		return fmt.Errorf("set the headers of the endpoint of %s: %w", r.MerchantID, err)
	}
	return nil
}
