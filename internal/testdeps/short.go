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

// Short is called by TestMain, before the tests run, with the names of the
// tests that `go test -short` leaves out of the package, regular expressions:
// they need a server or a tool, or take seconds. It also leaves out the subtests
// called "postgres". Without -short it does nothing.
//
// The tests are left out as by the flag -skip, so they are neither run nor
// reported as passed.
func Short(tests ...string) {
	flag.Parse() //nolint:revive // as TestMain must before it asks for testing.Short
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
	// Patterns of subtests come last: of several, the first that matches a
	// test's beginning decides, and one of subtests matches any test's.
	patterns = append(patterns, "/^postgres$")
	if err := flag.Set("test.skip", strings.Join(patterns, "|")); err != nil {
		panic(err)
	}
	LeaveOut(strings.Join(append([]string{"PostgreSQL"}, tests...), ", "))
}

var leaveOut sync.Once

// LeaveOut announces, once in a process, what -short leaves out.
func LeaveOut(what string) {
	leaveOut.Do(func() {
		binary := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
		if err := Announce(fmt.Sprintf("%s: -short leaves out %s", binary, what)); err != nil {
			panic(err)
		}
	})
}
