//go:build !unix

package db

// linkCount returns 0: how many names a file has is not known here.
func linkCount(string) uint64 { return 0 }
