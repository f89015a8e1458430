package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// sharePeriod is how long the kernel counts a process's CPU time for. A process waits at most that long.
const sharePeriod = 10 * time.Millisecond

// cpuShare is a control group of the kernel with one process, which has a part of one CPU.
type cpuShare string

// newCPUShare leaves a process a part of one CPU, in thousandths, as if it had a machine of its own. It takes
// the right to make control groups, of either version.
func newCPUShare(pid, thousandths int) (cpuShare, error) {
	period := sharePeriod.Microseconds()
	quota := period * int64(thousandths) / 1000
	dir, files := "/sys/fs/cgroup", []string{"cpu.max", fmt.Sprint(quota, " ", period)}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); errors.Is(err, os.ErrNotExist) { // version 1
		dir, files = filepath.Join(dir, "cpu"), []string{"cpu.cfs_period_us", strconv.FormatInt(period, 10), "cpu.cfs_quota_us", strconv.FormatInt(quota, 10)}
	}
	dir = filepath.Join(dir, fmt.Sprint("quittance-bench-", pid))
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the kernel's file system
		return "", fmt.Errorf("make a control group: %w", err)
	}
	files = append(files, "cgroup.procs", strconv.Itoa(pid))
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
	}
	return cpuShare(dir), nil
}

// remove removes the group of a process that has ended.
func (s cpuShare) remove() error { return os.Remove(string(s)) }
