package api_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestPagesEndAtMaxPageBytes", "TestExports", "TestBrokenExports")
	os.Exit(m.Run())
}
