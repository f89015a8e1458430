package devtest

import (
	"os/exec"
	"syscall"
)

// ownGroup has a program run in a process group of its own, which ends with this process, and
// returns what kills the group: some programs, such as npm's of deno, are launchers of others.
func ownGroup(cmd *exec.Cmd) (kill func() error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
