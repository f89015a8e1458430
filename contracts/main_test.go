package contracts_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the number of rapid's cases, since each call of TestExtraInvariants is a block. The command-line flag
// takes precedence.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
