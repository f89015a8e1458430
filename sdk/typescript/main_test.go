package typescript_test

import (
	"fmt"
	"os"
	"testing"
)

// temporary is a folder for the tests of the package.
var temporary string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if temporary, err = os.MkdirTemp("", "quittance-sdk-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := os.RemoveAll(temporary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
