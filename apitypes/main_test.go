package apitypes_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestTypesAreFresh")
	os.Exit(m.Run())
}
