//go:build !linux

package db

import "syscall"

// setUserTimeout has no effect: the system has no such limit. Keep-alives and the limits of statements
// remain.
func setUserTimeout(_, _ string, _ syscall.RawConn) error { return nil }
