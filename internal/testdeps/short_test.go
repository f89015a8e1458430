package testdeps_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestLeftOut", "TestSlow.*")
	testdeps.Parallel(5)
	os.Exit(m.Run())
}

func TestLeftOut(*testing.T)    {}
func TestSlowQuery(*testing.T)  {}
func TestLeftOutNot(*testing.T) {}

// TestServer needs a server and is not on the list of TestMain.
func TestServer(t *testing.T) {
	testdeps.Needs(t, "a server")
	t.Log("the server is used")
}

func TestDatabases(t *testing.T) {
	t.Run("sqlite", func(*testing.T) {})
	t.Run("postgres", func(*testing.T) {})
}

// TestShort runs the tests above in a child process.
func TestShort(t *testing.T) {
	const all = "TestLeftOut,TestSlowQuery,TestLeftOutNot,TestServer,TestDatabases,TestDatabases/sqlite,TestDatabases/postgres"
	for _, test := range []struct{ flags, want string }{
		{"", all},
		{"-test.short", "TestLeftOutNot,TestServer,TestDatabases,TestDatabases/sqlite"},
		{"-test.short -test.skip=Not", "TestServer,TestDatabases,TestDatabases/sqlite"},
	} {
		args := append(strings.Fields(test.flags), "-test.v", "-test.run=LeftOut|Slow|Databases|Server")
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, &complaint)
		}
		var ran []string
		for line := range strings.Lines(string(out)) {
			if name, ok := strings.CutPrefix(line, "=== RUN   "); ok {
				ran = append(ran, strings.TrimSpace(name))
			}
		}
		if got := strings.Join(ran, ","); got != test.want {
			t.Errorf("%q ran %s, want %s", test.flags, got, test.want)
		}
		used, skipped := strings.Contains(string(out), "the server is used"), strings.Contains(string(out), "-short leaves out a server")
		if short := strings.Contains(test.flags, "short"); used == short || skipped != short {
			t.Errorf("%q: the server was used: %t, the test was skipped: %t", test.flags, used, skipped)
		}
		printed := strings.Contains(complaint.String(), "testdeps: -short leaves out PostgreSQL, TestLeftOut, TestSlow.*\n")
		if printed != strings.Contains(test.flags, "short") {
			t.Errorf("%q printed: %s", test.flags, &complaint)
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
