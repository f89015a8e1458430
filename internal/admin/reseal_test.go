package admin_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/access/keyringtest"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestReseal seals the secret of an endpoint under a new key.
func TestReseal(t *testing.T) {
	old, newer := keyringtest.Key(t), keyringtest.Key(t)
	both := access.NewKeyring(newer, old)
	missing := dbtest.SQLite(t)
	if _, err := admin.Reseal(t.Context(), missing, both); err == nil || !strings.Contains(err.Error(), "there is no database yet") {
		t.Errorf("without a database: %v", err)
	}
	if _, err := os.Stat(strings.TrimPrefix(missing, "sqlite:")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made a database: %v", err)
	}
	for _, fresh := range dbtest.MigratedDatabases() {
		url := fresh(t)
		store := dbtest.Open(t, url)
		seal := func(version int64) ([]byte, string, error) {
			s := access.NewKeyring(old).Seal("cafe", version, "whsec_cafe")
			return s.Data, s.KeyID, nil
		}
		expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
			_, err := webhooks.PutEndpoint(t.Context(), tx, webhooks.EndpointRow{MerchantID: "cafe", URL: "https://cafe.example/", ChangedAt: invoice.Unix(1)}, seal)
			return err
		}))
		for want := 1; want >= 0; want-- {
			if n, err := admin.Reseal(t.Context(), url, both); err != nil || n != want {
				t.Errorf("%d sealed anew, %v; want %d", n, err, want)
			}
		}
		secrets, err := webhooks.Secrets(t.Context(), store, []string{"cafe"})
		expect.OK(t, err)
		r := secrets["cafe"][0]
		if got, err := access.NewKeyring(newer).Open("cafe", r.Version, access.Sealed{KeyID: r.KeyID, Data: r.Sealed}); got != "whsec_cafe" || err != nil || r.State != webhooks.SecretActive {
			t.Errorf("under the new key it is %q, %v", got, err)
		}
	}
}
