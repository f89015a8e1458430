package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// HeaderChange is a header that an endpoint is to have. Without a Value, it keeps the one that it
// has.
type HeaderChange struct {
	Name  string
	Value *string
}

// headers returns the headers of an endpoint.
func (d *Directory) headers(r store.SecretRow) ([]delivery.Header, error) {
	if len(r.Sealed) == 0 {
		return nil, nil
	}
	if d.conf.Keyring == nil {
		return nil, ErrNoMasterKey
	}
	text, err := d.conf.Keyring.Open(r.MerchantID, store.HeadersVersion, keyring.Sealed{KeyID: r.KeyID, Data: r.Sealed})
	if err != nil {
		return nil, fmt.Errorf("headers of the webhook endpoint of %s: %w", r.MerchantID, err)
	}
	var all []delivery.Header
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("headers of the webhook endpoint of %s: %w", r.MerchantID, err)
	}
	return all, nil
}

// changedHeaders returns the encrypted headers of an endpoint after changes to its stored ones. The
// error is a *invoice.FieldError for headers that an endpoint cannot have.
func (d *Directory) changedHeaders(merchantID string, stored store.SecretRow, changes []HeaderChange) (store.SecretRow, error) {
	var before []delivery.Header
	if slices.ContainsFunc(changes, func(c HeaderChange) bool { return c.Value == nil }) {
		var err error
		if before, err = d.headers(stored); err != nil {
			return store.SecretRow{}, err
		}
	}
	after := make([]delivery.Header, len(changes))
	for i, c := range changes {
		after[i].Name = c.Name
		if c.Value != nil {
			after[i].Value = *c.Value
			continue
		}
		same := slices.IndexFunc(before, func(h delivery.Header) bool { return strings.EqualFold(h.Name, c.Name) })
		if same < 0 {
			return store.SecretRow{}, &invoice.FieldError{Field: fmt.Sprintf("headers[%d].value", i), Detail: fmt.Sprintf("is required: no value of %.80q is stored", c.Name)}
		}
		after[i].Value = before[same].Value
	}
	if wrong := (*delivery.HeaderError)(nil); errors.As(delivery.CheckHeaders(after), &wrong) {
		field := "headers"
		if wrong.Index >= 0 {
			field = fmt.Sprintf("headers[%d]", wrong.Index)
		}
		return store.SecretRow{}, &invoice.FieldError{Field: field, Detail: wrong.Detail}
	}
	row := store.SecretRow{MerchantID: merchantID}
	if len(after) == 0 {
		return row, nil
	}
	text, err := json.Marshal(after)
	if err != nil {
		return row, err
	}
	sealed := d.conf.Keyring.Seal(merchantID, store.HeadersVersion, string(text))
	row.Sealed, row.KeyID = sealed.Data, sealed.KeyID
	return row, nil
}

// namesOf returns the names of headers.
func namesOf(headers []delivery.Header) []string {
	names := make([]string, len(headers))
	for i, h := range headers {
		names[i] = h.Name
	}
	return names
}
