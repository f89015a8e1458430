package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a bench program in one of its roles. It ends when its standard input ends.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader // of its output
}

// startProcess starts a program in a role and returns its first line of output.
func startProcess(ctx context.Context, program, role string, config any) (*process, string, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, program, role, string(text))
	cmd.Stderr = os.Stderr
	// The garbage collector uses its defaults.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	p := &process{cmd, stdin, bufio.NewReader(stdout)}
	line, err := p.lines.ReadString('\n')
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("the %s did not start: %w", role, err), p.stop())
	}
	return p, strings.TrimSpace(line), nil
}

func (p *process) stop() error { return errors.Join(p.stdin.Close(), p.cmd.Wait()) }

// clockTick is the unit of CPU time in /proc: a hundredth of a second on every Linux (USER_HZ).
const clockTick = 10 * time.Millisecond

// cpu returns the CPU time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	line := lineOf(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid), "")
	// The fields after the name, which ends in ")": state is the first, utime the 12th and stime the 13th (proc(5)).
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d has ended", p.cmd.Process.Pid)
	}
	user, err := strconv.Atoi(fields[11])
	system, other := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick, errors.Join(err, other)
}

// cpuFor returns the process's CPU time since a moment for each of n items, in microseconds.
func (p *process) cpuFor(n int64, since time.Duration) (float64, error) {
	now, err := p.cpu()
	return float64((now - since).Microseconds()) / float64(max(1, n)), err
}

// memory returns the resident memory of the process in MB, and its peak.
func (p *process) memory() (now, peak float64, err error) {
	for name, into := range map[string]*float64{"VmRSS:": &now, "VmHWM:": &peak} {
		kb := strings.TrimSuffix(lineOf(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid), name), " kB")
		if *into, err = strconv.ParseFloat(kb, 64); err != nil {
			return 0, 0, fmt.Errorf("read %s: %w", name, err)
		}
		*into /= 1024
	}
	return now, peak, nil
}
