package main

import (
	"errors"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quittance/quittance/internal/test/testdeps"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"quittance": main})
}

// tests are what runs unless the program runs as quittance.
type tests struct{ *testing.M }

func (m tests) Run() int {
	const parallel = 6 // they wait for blocks
	testdeps.Parallel(parallel)
	testdeps.TempInMemory()
	return m.M.Run()
}

// TestScripts runs the command lines in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits runs a command that must end with an exit code: exits CODE COMMAND …
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
