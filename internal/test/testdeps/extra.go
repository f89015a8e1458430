package testdeps

import (
	"strings"
	"testing"
)

// Extra fails a test with another name than those that `make check` runs and `make test` leaves out. Helpers that start what
// only `make check` may need, such as a browser, call it.
func Extra(tb testing.TB, what string) {
	tb.Helper()
	if !strings.HasPrefix(tb.Name(), "TestExtra") {
		tb.Fatalf("only tests of make check use %s: let the test's name begin with TestExtra", what)
	}
}
