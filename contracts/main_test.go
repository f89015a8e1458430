package contracts_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain reduces the number of rapid's cases, since each call of the invariants is a block, and make forge checks
// the same contracts with thousands of calls. The command-line flag takes precedence: make properties plays more.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
