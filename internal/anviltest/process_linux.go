package anviltest

import "syscall"

// dieWithParent has the kernel kill a node whose test process has died.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
