package browsertest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/checkout/browsertest"
)

// unmarshalParam decodes the first parameter of a request to a wallet.
func unmarshalParam(c browsertest.Call, into any) error { return json.Unmarshal(c.Params[0], into) }

// advance moves the world's clock on.
func advance(t *testing.T, w *browsertest.World, seconds int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.Info.BaseURL+"/dev/clock/advance", strings.NewReader(fmt.Sprintf(`{"seconds": %d}`, seconds)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is not read
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("advance the clock: status %d", answer.StatusCode)
	}
}
