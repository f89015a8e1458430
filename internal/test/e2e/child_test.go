package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/logtest"
)

// patience is the default limit of each wait. It ends a test of a program that is stuck. It does not limit speed.
const patience = 2 * time.Minute

// poll is the interval at which a test reads a state that has no signal.
const poll = 10 * time.Millisecond

// child is a run of the program.
type child struct {
	cmd            *exec.Cmd
	stdout, stderr logtest.Buffer
	done           chan struct{} // closed when it has ended
}

// launch starts the program until the test ends. Its output is logged if the test fails.
func launch(tb testing.TB, args ...string) *child {
	tb.Helper()
	return launchWith(tb, nil, args...)
}

// launchWith is launch with more variables in the environment.
func launchWith(tb testing.TB, env []string, args ...string) *child {
	tb.Helper()
	return launchProgram(tb, program, env, args...)
}

// launchProgram is launchWith for another version of the program.
func launchProgram(tb testing.TB, path string, env []string, args ...string) *child {
	tb.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(append(os.Environ(), keyEnv+"="+operatorKey), env...)
	return startChild(tb, cmd)
}

// startChild starts a command. Like launch, it ends with the test.
func startChild(tb testing.TB, cmd *exec.Cmd) *child {
	tb.Helper()
	c := &child{cmd: cmd, done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	c.cmd.SysProcAttr = dieWithParent()
	if err := c.cmd.Start(); err != nil {
		tb.Fatalf("start the program: %v", err)
	}
	go func() {
		defer close(c.done)
		var exit *exec.ExitError
		if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
			tb.Logf("wait for the program: %v", err)
		}
	}()
	tb.Cleanup(func() {
		c.kill()
		if tb.Failed() {
			tb.Logf("%q wrote:\n%s%s", cmd.Args, c.stdout.String(), c.stderr.String())
		}
	})
	return c
}

// kill kills the child with SIGKILL and waits until it has ended.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}

// ended reports whether the child has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stop sends the signal and returns the exit code.
func (c *child) stop(tb testing.TB, signal os.Signal, within time.Duration) int {
	tb.Helper()
	if err := c.cmd.Process.Signal(signal); err != nil {
		tb.Fatalf("send %s: %v", signal, err)
	}
	return c.exit(tb, within)
}

// exit waits for the child's end and returns its exit code.
func (c *child) exit(tb testing.TB, within time.Duration) int {
	tb.Helper()
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-c.done:
		return c.cmd.ProcessState.ExitCode()
	case <-limit.C:
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // its stack traces show where it hangs
		tb.Fatalf("the program did not end within %s", within)
		return -1
	}
}

// readyLine matches what serve logs when it accepts requests.
var readyLine = regexp.MustCompile(`msg=ready url=(\S+)`)

// awaitURL waits until serve accepts requests, and returns its URL.
func (c *child) awaitURL(tb testing.TB) string {
	tb.Helper()
	var found []string
	if err := await(within(tb, patience), func() bool {
		found = readyLine.FindStringSubmatch(c.stderr.String())
		return found != nil || c.ended()
	}); err != nil || found == nil {
		tb.Fatalf("the service is not ready: %v", err)
	}
	return found[1]
}

// await polls until ok returns true.
func await(ctx context.Context, ok func() bool) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
