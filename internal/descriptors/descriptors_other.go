//go:build !unix

package descriptors

import "syscall"

func isShortage(syscall.Errno) bool { return false }

// SaysShortage reports false: where there is no such limit, nothing says that
// it was reached.
func SaysShortage(string) bool { return false }

// Limit returns as many descriptors as any part can use: this system counts
// none.
func Limit() (int, error) { return 65_536, nil }
