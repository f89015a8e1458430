//go:build unix

package db

import (
	"os"
	"syscall"
)

// linkCount returns how many names a file has, or 0 if there is no such file.
func linkCount(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0 // who opens the file has a better error
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(stat.Nlink) //nolint:unconvert // it has 16 bits on macOS
}
