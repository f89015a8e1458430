package browsertest_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/browsertest"
	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("Test.*")
	os.Exit(browsertest.Main(m))
}
