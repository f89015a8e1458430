package testdeps

import (
	"os"
	"syscall"
)

// memoryRoom is how many bytes must be free in memory to put files of tests there. Containers
// are often given no more than 64 MiB.
const memoryRoom = 2 << 30

// MemoryDir returns a folder in memory for files that need not survive a crash of the machine. It
// returns "" if the folder has too little room, or if its files cannot be executed.
func MemoryDir() string {
	const dir, noexec = "/dev/shm", 0x8
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil || stat.Flags&noexec != 0 || stat.Bavail*uint64(stat.Bsize) < memoryRoom {
		return ""
	}
	return dir
}

// TempInMemory puts the temporary folders of the process and its children in memory, if there
// is room: databases and chains then do not wait for a disk. Call it in TestMain.
func TempInMemory() {
	if dir := MemoryDir(); dir != "" {
		if err := os.Setenv("TMPDIR", dir); err != nil {
			panic(err)
		}
	}
}
