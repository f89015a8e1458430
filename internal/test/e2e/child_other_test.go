//go:build !linux

package e2e

import "syscall"

// dieWithParent has no effect on this system. Tests end their children themselves.
func dieWithParent() *syscall.SysProcAttr { return nil }
