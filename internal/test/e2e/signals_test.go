package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// idleConfig configures a service on a chain with a node that is down.
const idleConfig = `
listen: 127.0.0.1:0
database: sqlite:%s
http: {stopDelay: %s}
merchants: [{id: acme}]
chains: [{chainKey: base, rpc: ["http://127.0.0.1:1"]}]
`

// launchIdle runs a service on a SQLite file.
func launchIdle(t *testing.T, database, stopDelay string) (c *child, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "quittance.yaml")
	expect.OK(t, os.WriteFile(file, fmt.Appendf(nil, idleConfig, database, stopDelay), 0o600))
	c = launch(t, "serve", "--config", file)
	ready := regexp.MustCompile(`msg=ready url=(http://127\.0\.0\.1:\d+)`)
	if err := await(within(t, patience), func() bool {
		if found := ready.FindStringSubmatch(c.stderr.String()); found != nil {
			url = found[1]
		}
		return url != "" || c.ended()
	}); err != nil {
		t.Fatal("it is not ready")
	}
	return c, url
}

// TestExtraSecondSignal sends a second SIGTERM to a service that waits before it stops. It must end at once.
func TestExtraSecondSignal(t *testing.T) {
	t.Parallel()
	c, _ := launchIdle(t, filepath.Join(t.TempDir(), "q.db"), "5m")
	expect.OK(t, c.cmd.Process.Signal(syscall.SIGTERM))
	if err := await(within(t, patience), func() bool { return strings.Contains(c.stderr.String(), "msg=stopping") }); err != nil {
		t.Fatal("it does not stop")
	}
	if code := c.stop(t, syscall.SIGTERM, patience); code == 0 {
		t.Errorf("exit code %d of a process that was killed", code)
	}
}

// TestExtraHangup checks that SIGHUP is logged and ignored.
func TestExtraHangup(t *testing.T) {
	t.Parallel()
	c, url := launchIdle(t, filepath.Join(t.TempDir(), "q.db"), "0s")
	expect.OK(t, c.cmd.Process.Signal(syscall.SIGHUP))
	if err := await(within(t, patience), func() bool { return strings.Contains(c.stderr.String(), "SIGHUP changes nothing") || c.ended() }); err != nil || c.ended() {
		t.Fatal("a SIGHUP is not logged, or ends it")
	}
	response, err := http.Get(url + "/healthz")
	expect.OK(t, err)
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("/healthz answers %s, %v", response.Status, err)
	}
	if code := c.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTwoServicesOnOneFile starts two services on one SQLite file. The second fails.
func TestTwoServicesOnOneFile(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "q.db")
	first, _ := launchIdle(t, database, "0s")
	second, _ := launchIdle(t, database, "0s")
	if code := second.exit(t, patience); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{database, fmt.Sprint("process ", first.cmd.Process.Pid)} {
		if !strings.Contains(second.stderr.String(), want) {
			t.Errorf("it says %q; want %q in it", second.stderr.String(), want)
		}
	}
	first.kill() // releases the lock of the file
	third, url := launchIdle(t, database, "0s")
	if url == "" {
		t.Errorf("after a kill it does not start: %s", third.stderr.String())
	}
}
