package e2e

import "syscall"

// dieWithParent makes the kernel kill a child whose parent has died, so that
// none survives a test process that was killed itself.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
