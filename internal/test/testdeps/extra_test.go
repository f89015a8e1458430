package testdeps_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/test/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Parallel(5)
	os.Exit(m.Run())
}

// named is a test with a name, which records whether it failed.
type named struct {
	testing.TB
	name   string
	failed bool
}

func (n *named) Name() string          { return n.name }
func (n *named) Fatalf(string, ...any) { n.failed = true }

func TestOnlyExtraTestsUseTools(t *testing.T) {
	for name, fails := range map[string]bool{"TestLooks": true, "TestExtraLooks": false, "TestExtraLooks/phone": false, "FuzzExtra": true} {
		n := &named{TB: t, name: name}
		if testdeps.Extra(n, "chromium"); n.failed != fails {
			t.Errorf("%s failed: %t, want %t", name, n.failed, fails)
		}
	}
}

func TestMayInstall(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv("QUITTANCE_TEST_INSTALL", value)
		if err := testdeps.MayInstall(); (err == nil) != want {
			t.Errorf("with QUITTANCE_TEST_INSTALL=%q: %v", value, err)
		}
	}
}
