//go:build !linux

package anviltest

import "syscall"

// dieWithParent does nothing on this platform.
func dieWithParent() *syscall.SysProcAttr { return nil }
