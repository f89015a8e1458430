package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// buildAndRun builds the binary once for all tests.
func buildAndRun(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "quittance-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if removed := os.RemoveAll(dir); removed != nil {
			code, err = 1, removed
		}
	}()
	program = filepath.Join(dir, "quittance")
	build := exec.Command("go", "build", "-o", program, "../../cmd/quittance")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return m.Run(), nil
}
