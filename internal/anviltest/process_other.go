//go:build !linux

package anviltest

import "syscall"

// dieWithParent can promise nothing here; tests end their nodes anyway.
func dieWithParent() *syscall.SysProcAttr { return nil }
