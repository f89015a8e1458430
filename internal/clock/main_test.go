package clock_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestReplicas")
	os.Exit(m.Run())
}
