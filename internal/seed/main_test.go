package seed_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestInterruptedLoad", "TestLoadDoesNotWaitForServices")
	os.Exit(m.Run())
}
