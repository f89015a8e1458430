package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// HeaderChange is a header that an endpoint should have. Without a Value it keeps its present value. That is allowed
// only while the URL's scheme, host and port stay the same: a person who sets the URL could read the values at another
// host.
type HeaderChange struct {
	Name  string
	Value *string
}

// headers returns the headers of an endpoint.
func (d *Directory) headers(r SecretRow) ([]access.WebhookHeader, error) {
	if len(r.Sealed) == 0 {
		return nil, nil
	}
	if d.conf.Keyring == nil {
		return nil, ErrNoMasterKey
	}
	text, err := d.conf.Keyring.Open(r.MerchantID, HeadersVersion, access.Sealed{KeyID: r.KeyID, Data: r.Sealed})
	if err != nil {
		return nil, fmt.Errorf("headers of the webhook endpoint of %s: %w", r.MerchantID, err)
	}
	var all []access.WebhookHeader
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("headers of the webhook endpoint of %s: %w", r.MerchantID, err)
	}
	return all, nil
}

// putHeaders changes the headers of an endpoint with a locked row and the new URL. kept is set if the URL's origin has
// not changed; nil then leaves the headers as they are. The stored headers are read under the lock: if another request
// created the endpoint in between, the stored headers belong to that request, and kept is false.
func (d *Directory) putHeaders(ctx context.Context, tx *db.Tx, merchantID string, changes []HeaderChange, kept bool) error {
	rows, err := endpoints(ctx, tx, []string{merchantID})
	if err != nil {
		return err
	}
	stored := rows[merchantID].Headers
	switch {
	case changes != nil:
	case kept || len(stored.Sealed) == 0:
		return nil
	default:
		return &invoice.FieldError{Field: "headers", Detail: "is required: the endpoint has headers, and the URL has another scheme, host or port; give their values again, or [] to remove them"}
	}
	after, err := d.changedHeaders(merchantID, stored, changes, kept)
	if err != nil {
		return err
	}
	return putHeaders(ctx, tx, after)
}

// changedHeaders returns the encrypted headers of an endpoint after changes to its stored headers. Stored values are
// kept only if kept is set. The error is a *invoice.FieldError for headers that an endpoint cannot have.
func (d *Directory) changedHeaders(merchantID string, stored SecretRow, changes []HeaderChange, kept bool) (SecretRow, error) {
	var before []access.WebhookHeader
	if slices.ContainsFunc(changes, func(c HeaderChange) bool { return c.Value == nil }) {
		var err error
		if before, err = d.headers(stored); err != nil {
			return SecretRow{}, err
		}
	}
	after := make([]access.WebhookHeader, len(changes))
	for i, c := range changes {
		after[i].Name = c.Name
		if c.Value != nil {
			after[i].Value = *c.Value
			continue
		}
		same := slices.IndexFunc(before, func(h access.WebhookHeader) bool { return strings.EqualFold(h.Name, c.Name) })
		if same < 0 {
			return SecretRow{}, &invoice.FieldError{Field: fmt.Sprintf("headers[%d].value", i), Detail: fmt.Sprintf("is required: no value of %.80q is stored", c.Name)}
		}
		if !kept {
			return SecretRow{}, &invoice.FieldError{Field: fmt.Sprintf("headers[%d].value", i), Detail: fmt.Sprintf("is required: the URL has another scheme, host or port; give the value of %.80q again", c.Name)}
		}
		after[i].Value = before[same].Value
	}
	if wrong := (*HeaderError)(nil); errors.As(CheckHeaders(after), &wrong) {
		field := "headers"
		if wrong.Index >= 0 {
			field = fmt.Sprintf("headers[%d]", wrong.Index)
		}
		return SecretRow{}, &invoice.FieldError{Field: field, Detail: wrong.Detail}
	}
	row := SecretRow{MerchantID: merchantID}
	if len(after) == 0 {
		return row, nil
	}
	text, err := json.Marshal(after)
	if err != nil {
		return row, err
	}
	sealed := d.conf.Keyring.Seal(merchantID, HeadersVersion, string(text))
	row.Sealed, row.KeyID = sealed.Data, sealed.KeyID
	return row, nil
}

// namesOf returns the names of headers.
func namesOf(headers []access.WebhookHeader) []string {
	names := db.Each(headers, func(h access.WebhookHeader) string { return h.Name })
	return names
}
