package e2e

import "syscall"

// dieWithParent makes the kernel kill a child when its parent dies, so that no child survives a test
// process that was killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
