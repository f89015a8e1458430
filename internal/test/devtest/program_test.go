//go:build linux

package devtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// TestRunEndsGrandchildren runs a program that launches another one, which does not end by itself.
func TestRunEndsGrandchildren(t *testing.T) {
	var pid int
	t.Run("running", func(t *testing.T) {
		p := Run(t, exec.CommandContext(t.Context(), "sh", "-c", "sleep 600 & echo child $!; wait"))
		var err error
		if pid, err = strconv.Atoi(p.Await(`child (\d+)`)); err != nil {
			t.Fatal(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !ended(pid) {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("process %d runs after the test", pid)
		}
	}
}

// ended reports whether a process has ended, also if nobody has waited for it yet.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}
