package testdeps

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Short leaves tests out of `go test -short` that need a tool or take seconds. Call it in TestMain
// with regular expressions of their names. Subtests named "postgres" are left out too. Without -short
// it has no effect.
//
// The tests are left out as by the flag -skip, so they are not reported as passed. A test
// that calls Needs does not have to be on the list.
func Short(tests ...string) {
	flag.Parse() //nolint:revive // TestMain must parse before it asks for testing.Short
	if !testing.Short() {
		return
	}
	var patterns []string
	for _, name := range tests {
		patterns = append(patterns, "^"+name+"$")
	}
	if given := flag.Lookup("test.skip").Value.String(); given != "" {
		patterns = append(patterns, given)
	}
	// The pattern of subtests comes last: the first pattern that matches a test's name
	// decides, and "/^postgres$" matches every top-level name.
	patterns = append(patterns, "/^postgres$")
	if err := flag.Set("test.skip", strings.Join(patterns, "|")); err != nil {
		panic(err)
	}
	LeaveOut(strings.Join(append([]string{"PostgreSQL"}, tests...), ", "))
}

// Needs ends the test, as skipped, if `go test -short` leaves out what it needs: a server or a
// browser. Helpers that start one call it. Without -short it has no effect.
func Needs(tb testing.TB, what string) {
	tb.Helper()
	if testing.Short() {
		LeaveOut(what)
		tb.Skipf("-short leaves out %s", what)
	}
}

var leaveOut sync.Once

// LeaveOut announces, once in a process, which tests -short leaves out.
func LeaveOut(what string) {
	leaveOut.Do(func() {
		binary := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
		if err := Notify(fmt.Sprintf("%s: -short leaves out %s", binary, what)); err != nil {
			panic(err)
		}
	})
}
