//go:build !linux

package e2e

import "syscall"

// dieWithParent can promise nothing here; tests end their children anyway.
func dieWithParent() *syscall.SysProcAttr { return nil }
