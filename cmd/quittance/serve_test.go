package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// configure writes a configuration of serve with the database in a folder, and returns its path.
func configure(t *testing.T, listen, folder string) string {
	t.Helper()
	t.Setenv("SECRET", "whsec_of_the_shop")
	file := filepath.Join(t.TempDir(), "quittance.yaml")
	expect.OK(t, os.WriteFile(file, fmt.Appendf(nil, `{"listen": %q, "database": "sqlite:%s/quittance.db",
		"merchants": [{"id": "a", "webhookUrl": "https://a.example", "webhookSecretEnv": "SECRET"}],
		"chains": [{"chainKey": "base", "rpc": ["http://127.0.0.1:1"]}]}`, listen, folder), 0o600))
	return file
}

// TestPortTaken expects that a program that cannot listen creates no files.
func TestPortTaken(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.OK(t, err)
	defer func() { expect.NoError(t, taken.Close()) }()
	addr, dir := taken.Addr().String(), t.TempDir()
	file := configure(t, addr, dir+"/sub")
	for _, args := range [][]string{{"dev", "--data", dir + "/sub", "--listen", addr}, {"serve", "--config", file}} {
		var stderr bytes.Buffer
		code := run(t.Context(), environment{stdout: io.Discard, stderr: &stderr}, args)
		if code != 1 || !strings.Contains(stderr.String(), "listen on "+addr) {
			t.Errorf("%s: exit code %d: %s", args[0], code, &stderr)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("%s left %v behind, %v", args[0], made, err)
		}
	}
}

// TestServeStops reads the log of a service from its start to its end.
func TestServeStops(t *testing.T) {
	file := configure(t, "127.0.0.1:0", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said, log := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, environment{stdout: io.Discard, stderr: log}, []string{"serve", "--config", file})
		_ = log.Close() // a pipe's never fails
		ended <- code
	}()
	next, marks := 0, []string{"msg=ready", "msg=stopping", "msg=stopped"}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if next < len(marks) && strings.Contains(lines.Text(), marks[next]) {
			if next++; next == 1 {
				stop()
			}
		}
	}
	if code := <-ended; code != 0 || next < len(marks) {
		t.Errorf("exit code %d, and its log went no further than %q", code, marks[:next])
	}
}

func TestServiceLogger(t *testing.T) {
	var stderr bytes.Buffer
	env := environment{stderr: &stderr}
	env.serviceLogger(config.Log{Format: config.LogJSON, Level: slog.LevelWarn}).Warn("m", "took", 1500*time.Millisecond, "err", errors.New("e"))
	var line map[string]any
	if err := json.Unmarshal(stderr.Bytes(), &line); err != nil || line["took"] != 1.5 || line["err"] != "e" || line["msg"] != "m" || line["level"] != "WARN" {
		t.Errorf("logged %s, %v", &stderr, err)
	}
	stderr.Reset()
	logger := env.serviceLogger(config.Log{Format: config.LogText, Level: slog.LevelWarn})
	logger.Info("left out")
	logger.Warn("m", "took", 1500*time.Millisecond)
	if got := stderr.String(); !strings.HasSuffix(got, " level=WARN msg=m took=1.5s\n") || strings.Contains(got, "left out") {
		t.Errorf("logged %s", got)
	}
}

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

// TestClock advances the clock of a world. A command about invoices uses the world's time.
func TestClock(t *testing.T) {
	t.Parallel()
	url := baseURL(t, startDev(t, "--data", t.TempDir(), "--block-time", "50ms"))
	quittance := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs}, append([]string{args[0], args[1], "--url", url}, args[2:]...)); code != want {
			t.Errorf("%q: exit code %d, want %d\n%s%s", args, code, want, &out, &errs)
		}
		return out.String(), errs.String()
	}
	quittance(0, "clock", "advance", "1h")
	out, _ := quittance(0, "clock", "advance", "30d")
	if !strings.Contains(out, "721h0m0s ahead of real time") {
		t.Errorf("it printed %s", out)
	}
	out, _ = quittance(0, "clock", "show", "--json")
	var c dev.ClockInfo
	if err := json.Unmarshal([]byte(out), &c); err != nil || c.AheadSeconds != 721*3600 {
		t.Errorf("clock show --json printed %s: %v", out, err)
	}
	quittance(0, "trigger", "invoice.paid")
	for _, bad := range []string{"1", "0s", "31d", "1500ms", "-1h"} {
		if _, errs := quittance(2, "clock", "advance", "--", bad); !strings.Contains(errs, "1s to 30d") {
			t.Errorf("clock advance %s: %s", bad, errs)
		}
	}
}

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"quittance": main})
}

// tests are what runs unless the program runs as quittance.
type tests struct{ *testing.M }

func (m tests) Run() int {
	const parallel = 6 // they wait for blocks
	testdeps.Parallel(parallel)
	testdeps.TempInMemory()
	return m.M.Run()
}

// TestScripts runs the command lines in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits runs a command that must end with an exit code: exits CODE COMMAND …
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
