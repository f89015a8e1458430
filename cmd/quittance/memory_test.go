package main

import (
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

// groupsOf returns a file system with files of control groups.
func groupsOf(files map[string]string) fstest.MapFS {
	system := make(fstest.MapFS)
	for name, text := range files {
		system[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return system
}

// TestContainerMemory reads limits as Linux shows them.
func TestContainerMemory(t *testing.T) {
	t.Parallel()
	const none, v1None = math.MaxInt64, "9223372036854771712\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups":      {nil, none},
		"container":              {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"no limit":               {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.high": "max\n"}, none},
		"throttled before":       {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.high": "536870912\n"}, 1 << 29},
		"group of the host":      {map[string]string{"proc/self/cgroup": "0::/system.slice/docker-1.scope\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"systemd":                {map[string]string{"proc/self/cgroup": "0::/a.slice/b.service\n", "sys/fs/cgroup/a.slice/memory.max": "1073741824\n", "sys/fs/cgroup/a.slice/b.service/memory.max": "max\n"}, 1 << 30},
		"version 1":              {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "536870912\n"}, 1 << 29},
		"version 1 without":      {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": v1None}, none},
		"path that leads upward": {map[string]string{"proc/self/cgroup": "0::/../..\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
	} {
		got, err := containerMemory(groupsOf(test.files))
		if err != nil || got != test.want {
			t.Errorf("%s: %d, %v; want %d", name, got, err, test.want)
		}
	}
	if _, err := containerMemory(groupsOf(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1G\n"})); err == nil || !strings.Contains(err.Error(), `memory.max has "1G"`) {
		t.Errorf("a limit that is no number: %v", err)
	}
}

// TestLimitMemory sets the limit of this process, so no test runs in parallel with it.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	container := func(limit string) fstest.MapFS {
		return groupsOf(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": limit})
	}
	const mib = 1 << 20
	for name, test := range map[string]struct {
		limit, variable string
		want            int64
		logged, not     string
	}{
		"of a container":          {"1073741824", "", (1024 - 32) * mib / 10 * 9, "memory limit", "WARN"},
		"of a small container":    {"134217728", "", (128 - 32) * mib / 10 * 9, "little memory", "WARN  "},
		"of a tiny container":     {"16777216", "", 8 * mib / 10 * 9, "little memory", "not read"},
		"none":                    {"max", "", 77 * mib, "", "memory"},
		"of the variable":         {"1073741824", "100MiB", 77 * mib, "gomemlimit=100MiB", "go_bytes"},
		"switched off":            {"1073741824", "off", 77 * mib, "gomemlimit=off", "go_bytes"},
		"of a file that is wrong": {"lots", "", 77 * mib, "not read", "go_bytes"},
	} {
		debug.SetMemoryLimit(77 * mib)
		var log strings.Builder
		limitMemory(container(test.limit), test.variable, slog.New(slog.NewTextHandler(&log, nil)))
		if got := debug.SetMemoryLimit(-1); got != test.want {
			t.Errorf("%s: %d bytes; want %d", name, got, test.want)
		}
		if !strings.Contains(log.String(), test.logged) || strings.Contains(log.String(), test.not) {
			t.Errorf("%s: logged %q; want %q and not %q", name, &log, test.logged, test.not)
		}
	}
}
