package browsertest_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/test/browsertest"
)

func TestMain(m *testing.M) {
	os.Exit(browsertest.Main(m))
}
