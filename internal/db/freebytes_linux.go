package db

import "golang.org/x/sys/unix"

// FreeBytes returns how many bytes a process that is not root may still write to the disk of a file.
func FreeBytes(path string) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(path, &disk); err != nil {
		return 0, err
	}
	return int64(disk.Bavail) * disk.Bsize, nil // no disk has 2^63 bytes
}
