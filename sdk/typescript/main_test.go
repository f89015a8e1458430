package typescript_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestPackage", "TestStandardWebhooksForNode")
	os.Exit(m.Run())
}
