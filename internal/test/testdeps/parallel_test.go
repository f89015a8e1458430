package testdeps_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestParallel reads the flag that TestMain has set, also in a process to which the caller has given it.
func TestParallel(t *testing.T) {
	if want := os.Getenv("WANT_PARALLEL"); want != "" {
		if got := flag.Lookup("test.parallel").Value.String(); got != want {
			t.Errorf("%s tests run at a time, want %s", got, want)
		}
		return
	}
	for _, test := range []struct{ flags, want string }{{"", "5"}, {"-test.parallel=3", "3"}} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append(strings.Fields(test.flags), "-test.run=^TestParallel$")...)
		cmd.Env = append(os.Environ(), "WANT_PARALLEL="+test.want)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", test.flags, err, out)
		}
	}
}
