//go:build unix

package limits

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
)

// shortages are the errors of system calls that only the local machine can cause.
var shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

func isShortage(errno syscall.Errno) bool { return slices.Contains(shortages, errno) }

// SaysShortage reports whether a text quotes such an error: package net keeps only the text of a lookup's error.
func SaysShortage(text string) bool {
	return slices.ContainsFunc(shortages, func(e syscall.Errno) bool { return strings.Contains(text, e.Error()) })
}

// DescriptorLimit returns how many descriptors the system grants this process.
func DescriptorLimit() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return int(min(limit.Cur, math.MaxInt32)), nil
}
