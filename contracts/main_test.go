package contracts_test

import (
	"flag"
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

// TestMain reduces the cases of rapid, since each call of TestInvariants is a block; the flag
// given to the test wins.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
	testdeps.Short("TestDepositInvariants", "TestInvariants")
	os.Exit(m.Run())
}
