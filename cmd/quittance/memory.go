package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// outsideGo is the memory that Go's limit does not count: SQLite's pages and statements,
	// the stacks of threads and the kernel's buffers.
	outsideGo = 32 << 20
	// leastMemory is the smallest limit of a container at which no warning is logged.
	leastMemory = 256 << 20
)

// limitMemory limits Go's memory in a container, so that the garbage collector runs more often before
// the kernel kills the process. variable is the value of the environment variable GOMEMLIMIT. If it
// sets a limit, limitMemory keeps it. system is the root of the file system.
func limitMemory(system fs.FS, variable string, logger *slog.Logger) {
	if variable != "" { // the runtime has read it
		logger.Info("memory limit", "gomemlimit", variable)
		return
	}
	allowed, err := containerMemory(system)
	switch {
	case err != nil:
		logger.Warn("memory limit of the container not read", "err", err)
		return
	case allowed == math.MaxInt64:
		return
	}
	limit := goMemory(allowed)
	debug.SetMemoryLimit(limit)
	logger.Info("memory limit", "container_bytes", allowed, "go_bytes", limit)
	if allowed < leastMemory {
		logger.Warn("little memory: requests are slow under load", "container_bytes", allowed, "recommended_bytes", leastMemory)
	}
}

// goMemory returns the limit of Go's memory in a container with a limit.
func goMemory(allowed int64) int64 { return max(allowed-outsideGo, allowed/2) / 10 * 9 }

// containerMemory returns the lowest memory limit of the process's control group and its ancestors, or
// math.MaxInt64 without one.
func containerMemory(system fs.FS) (int64, error) {
	groups, err := fs.ReadFile(system, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) { // not on Linux
		return math.MaxInt64, nil
	}
	lowest := int64(math.MaxInt64)
	for _, file := range limitFiles(string(groups)) {
		limit, err := readLimit(system, file)
		if err != nil {
			return 0, err
		}
		lowest = min(lowest, limit)
	}
	return lowest, err
}

// limitFiles returns the files that may hold memory limits of control groups. The groups are listed as
// in /proc/self/cgroup: a line is number:controllers:path, and version 2 has one line without
// controllers (cgroups(7)).
func limitFiles(groups string) (files []string) {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] != "" && fields[1] != "memory" {
			continue
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			if fields[1] == "" {
				files = append(files, path.Join("sys/fs/cgroup", group, "memory.max"), path.Join("sys/fs/cgroup", group, "memory.high"))
			} else {
				files = append(files, path.Join("sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
			}
			if group == "/" {
				break
			}
		}
	}
	return files
}

// readLimit reads a limit of a control group. It is math.MaxInt64 if the file does not exist, as in
// the root group, and in a container for groups outside it.
func readLimit(system fs.FS, name string) (int64, error) {
	text, err := fs.ReadFile(system, name)
	if errors.Is(err, fs.ErrNotExist) {
		return math.MaxInt64, nil
	}
	value := strings.TrimSpace(string(text))
	if err != nil || value == "max" {
		return math.MaxInt64, err
	}
	limit, err := strconv.ParseInt(value, 10, 64)
	if err != nil || limit <= 0 {
		return math.MaxInt64, fmt.Errorf("%s has %q; want a number of bytes, or max", name, value)
	}
	if limit > math.MaxInt64>>1 { // version 1 has no value for "unlimited"
		return math.MaxInt64, nil
	}
	return limit, nil
}
