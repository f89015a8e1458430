package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// record is one run of the bench, as written to a file.
type record struct {
	Began, Ended time.Time
	Commit       string // the measured commit, with "+changes" if files differed from it
	Machine      struct{ CPU, Memory, System, Go, PostgreSQL string }
	// LoadBefore and LoadAfter are /proc/loadavg. The first begins with 0 on a machine without other work.
	LoadBefore, LoadAfter string
	Options               options
	Figures               []figure
}

// newRecord begins the record of a run.
func newRecord(ctx context.Context, b *bench) (r *record, err error) {
	r = &record{Began: time.Now().UTC().Truncate(time.Second), LoadBefore: loadAverages(), Options: b.options}
	r.Machine.CPU = fmt.Sprintf("%d × %s", runtime.NumCPU(), lineOf("/proc/cpuinfo", "model name\t:"))
	r.Machine.Memory, r.Machine.System = lineOf("/proc/meminfo", "MemTotal:"), lineOf("/proc/version", "")
	r.Machine.Go = runtime.Version()
	if b.cluster != nil {
		r.Machine.PostgreSQL, err = query[string](ctx, b.cluster.DSN("postgres"), "SHOW server_version")
		if err != nil {
			return nil, err
		}
	}
	git := exec.CommandContext(ctx, "git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+changes")
	commit, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("find the commit with %s: %w", git, err)
	}
	r.Commit = strings.TrimSpace(string(commit))
	return r, nil
}

// write adds the record to the file of its day and commit, and prints its path.
func (r *record) write(out io.Writer, folder string, figures []figure) error {
	r.Ended, r.LoadAfter, r.Figures = time.Now().UTC().Truncate(time.Second), loadAverages(), figures
	path := filepath.Join(folder, clock.Format(r.Began, time.UTC, time.DateOnly)+"-"+r.Commit+".json")
	var all []*record
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &all)
	} else if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(folder, 0o755) //nolint:gosec // the folder is committed
	}
	if err != nil {
		return fmt.Errorf("add to %s: %w", path, err)
	}
	if text, err = json.MarshalIndent(append(all, r), "", " "); err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // the file is committed
		return err
	}
	fmt.Fprintln(out, "written to", path)
	return nil
}

// lineOf returns the rest of the first line of a file that begins with a text, or "" if there is no such line.
func lineOf(file, beginning string) string {
	text, _ := os.ReadFile(file) // without the file there is no line
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, beginning); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

func loadAverages() string { return lineOf("/proc/loadavg", "") }
