//go:build !unix

package limits

import "syscall"

func isShortage(syscall.Errno) bool { return false }

// SaysShortage reports false: without such a limit, no error reports that it was reached.
func SaysShortage(string) bool { return false }

// DescriptorLimit returns more descriptors than all parts can use: this system has no limit.
func DescriptorLimit() (int, error) { return 65_536, nil }
