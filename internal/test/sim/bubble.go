package main

import (
	"flag"
	"os"
	"testing"
	"testing/synctest"
)

// bubbles runs functions in bubbles, where time passes only while every goroutine waits. Package testing/synctest
// ties them to a test, so the whole program is one.
type bubbles struct {
	t        *testing.T
	postgres bool // worlds have several replicas on PostgreSQL
}

// run runs f in a bubble. It returns when f and all goroutines that f started have ended.
func (b bubbles) run(f func()) {
	synctest.Test(b.t, func(*testing.T) { f() })
}

// asTest runs the program as a test that is not in a test binary, and exits with its result.
func asTest(program func(bubbles) (code int)) {
	for name, value := range map[string]string{"test.timeout": "0", "test.cpu": "1"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "sim", F: func(t *testing.T) {
			os.Exit(program(bubbles{t: t})) //nolint:revive // the package would print PASS
		},
	}}, nil, nil)
}
