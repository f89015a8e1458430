package webhooks

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/db"
)

// HeadersVersion is the version under which the headers of an endpoint are encrypted. Versions of secrets begin with 1.
const HeadersVersion = 0

// headersTable has the headers of endpoints, as secrets.
var headersTable = db.NewTable("endpoint_headers", func(r *SecretRow) []db.Column {
	return []db.Column{
		db.Col("merchant_id", db.Text(&r.MerchantID)),
		db.Col("sealed", db.Base64(&r.Sealed)),
		db.Col("key_id", db.Text(&r.KeyID)),
	}
})

// headers returns the encrypted headers of the merchants' endpoints that have headers.
func headers(ctx context.Context, q db.Querier, merchantIDs []string) (map[string]SecretRow, error) {
	found := make(map[string]SecretRow)
	return found, db.InBatches(merchantIDs, "", func(part []string) error {
		rows, err := db.QueryAll(ctx, q, headersTable.Scan, headersTable.Select()+" WHERE merchant_id IN "+db.ParameterList(0, len(part)), db.ToAny(part)...)
		for _, r := range rows {
			found[r.MerchantID] = r
		}
		return err
	})
}

// putHeaders replaces the encrypted headers of a merchant's endpoint. Without r.Sealed, it removes them.
func putHeaders(ctx context.Context, tx *db.Tx, r SecretRow) error {
	var err error
	if len(r.Sealed) > 0 {
		err = headersTable.Insert(ctx, tx, "ON CONFLICT (merchant_id) DO UPDATE SET "+headersTable.Without("merchant_id").Excluded(), r)
	} else {
		_, err = tx.Exec(ctx, "DELETE FROM endpoint_headers WHERE merchant_id = $1", r.MerchantID)
	}
	if err != nil {
		return fmt.Errorf("set the headers of the endpoint of %s: %w", r.MerchantID, err)
	}
	return nil
}
