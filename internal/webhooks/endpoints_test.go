package webhooks_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// sealed returns a sealed secret and the id of its key.
func sealed(int64) ([]byte, string, error) { return []byte{0, 255, 1}, "key1", nil }

// TestReplaceSealed expects a conflict if the secret was sealed again since it was read.
func TestReplaceSealed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		_, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: "m", URL: "https://shop.example/", ChangedAt: invoice.Unix(9)}, sealed)
		rowtest.Must(t, err)
		old := webhooks.SecretRow{MerchantID: "m", Version: 1, Sealed: []byte{0, 255, 1}, KeyID: "key1", State: webhooks.SecretActive, CreatedAt: invoice.Unix(9)}
		other, again := old, old
		other.Sealed = []byte("other")
		again.Sealed, again.KeyID = []byte("again"), "key9"
		if err := webhooks.ReplaceSealedOnce(t.Context(), s, again, other); !errors.Is(err, db.ErrConflict) {
			t.Errorf("replaced another than the stored one: %v, want ErrConflict", err)
		}
		rowtest.Must(t, webhooks.ReplaceSealedOnce(t.Context(), s, again, old))
		got, err := webhooks.Secrets(t.Context(), s, []string{"m"})
		if diff := cmp.Diff([]webhooks.SecretRow{again}, got["m"]); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
