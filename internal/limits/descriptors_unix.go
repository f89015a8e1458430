//go:build unix

package limits

import (
	"fmt"
	"math"
	"slices"
	"syscall"
)

// shortages are the errors of system calls that only the local machine can cause.
var shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

func isShortage(errno syscall.Errno) bool { return slices.Contains(shortages, errno) }

// DescriptorLimit returns how many descriptors the system grants this process.
func DescriptorLimit() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return int(min(limit.Cur, math.MaxInt32)), nil
}
