package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// parallel is how many tests run at a time: most of their time they wait for blocks and timeouts.
const parallel = 6

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	testdeps.Parallel(parallel)
	testdeps.TempInMemory()
	if testing.Short() {
		os.Exit(0) // -short leaves out the tests of the whole program
	}
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
	// Worlds prefer one port for JSON-RPC. While that is taken, each picks its own port, and keeps it after a restart.
	if taken, err := net.Listen("tcp", "127.0.0.1:8545"); err == nil {
		defer taken.Close() //nolint:errcheck // the process is about to end
	}
	program = filepath.Join(dir, "quittance")
	build := exec.Command("go", "build", "-o", program, testdeps.Repo("cmd/quittance"))
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return m.Run(), nil
}
