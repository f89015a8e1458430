package browsertest_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestMain(m *testing.M) {
	os.Exit(browsertest.Main(m))
}

// advance moves the world's clock on.
func advance(t *testing.T, w *browsertest.World, seconds int) {
	t.Helper()
	r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.Info.BaseURL+"/dev/clock/advance", strings.NewReader(fmt.Sprintf(`{"seconds": %d}`, seconds))))
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	expect.OK(t, err)
	defer answer.Body.Close() //nolint:errcheck // it is not read
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("advance the clock: status %d", answer.StatusCode)
	}
}
