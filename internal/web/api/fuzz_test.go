package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

// For any input, the parser returns a draft or an error for the client. A draft that is
// encoded and parsed again is equal.
func FuzzParseDraft(f *testing.F) {
	f.Add([]byte(request()))
	f.Add([]byte(request("lineItems", "")))
	f.Add([]byte(request("lineItems", "[]", "amount", `"0"`)))
	f.Add([]byte(request("merchantAddress", `"`+strings.ToUpper(address)+`"`)))
	f.Add([]byte(`{"a":[{"b":null}],"a":1}`))
	f.Add([]byte(`{"expiresAt":1e400}`))
	f.Add([]byte(`{"merchantId":"\ud800"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := api.ParseDraft(body)
		if err != nil {
			var field *invoice.FieldError
			if !errors.As(err, &field) && !strings.HasPrefix(err.Error(), "invalid_json") {
				t.Fatalf("%q: %v (%T)", body, err, err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON", body)
		}
		again, err := api.ParseDraft(encode(t, d))
		if err != nil {
			t.Fatalf("%q: read again: %v", body, err)
		}
		if len(d.LineItems) == 0 {
			d.LineItems, again.LineItems = nil, nil
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v", d), fmt.Sprintf("%+v", again)); diff != "" {
			t.Fatalf("%q (-first +second):\n%s", body, diff)
		}
	})
}

// encode returns the request of a draft.
func encode(t *testing.T, d invoice.Draft) []byte {
	t.Helper()
	r := apitypes.CreateInvoiceRequest{
		MerchantID: d.MerchantID, MerchantAddress: chain.Checksum(d.Merchant), Amount: d.Amount.String(),
		Currency: d.Currency, ChainKey: d.ChainKey, ExpiresAt: d.ExpiresAt.Unix(),
	}
	for _, item := range d.LineItems {
		r.LineItems = append(r.LineItems, apitypes.LineItem{Label: item.Label, Amount: item.Amount.String()})
	}
	text := expect.Must(json.Marshal(r))
	return text
}

// FuzzPosition reads a key and a cursor of events. Accepted cursors are written back unchanged.
func FuzzPosition(f *testing.F) {
	for _, key := range []string{
		"7", "7.3", "tml_1:7", "7.3~9", "tml_2/tml_1.5:7.3~9", "7~7", "07", "tml_2/tml_1.5:", "tml_2/tml_1.05:7", ":7", "/:7", "tml_2/:7", "tml_2/tml_1:7", "tml_2/tml_1.:7", "7~9", "-1",
		"9223372036854775808", "tml_2/tml_1.5:7:8", "+7",
	} {
		f.Add(key, api.FormatCursor("s", key))
	}
	f.Fuzz(func(t *testing.T, key, cursor string) {
		for _, c := range []string{cursor, api.FormatCursor("s", key)} {
			if written, same, ok := api.PositionKey("s", c); ok && (same != c || c != cursor && written != key) {
				t.Errorf("%q with the key %q is accepted, and written %q", c, written, same)
			}
		}
	})
}
