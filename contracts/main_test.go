package contracts_test

import (
	"flag"
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

// TestMain reduces the number of rapid's cases, since each call of TestInvariants is a block. The command-line flag
// takes precedence.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
	testdeps.Short("TestDepositInvariants", "TestInvariants")
	os.Exit(m.Run())
}
