package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// configure writes a configuration of serve with the database in a folder, and returns its path.
func configure(t *testing.T, listen, folder string) string {
	t.Helper()
	t.Setenv("SECRET", "whsec_of_the_shop")
	file := filepath.Join(t.TempDir(), "quittance.yaml")
	expect.OK(t, os.WriteFile(file, fmt.Appendf(nil, `{"listen": %q, "database": "sqlite:%s/quittance.db",
		"merchants": [{"id": "a", "webhookUrl": "http://a.example", "webhookSecretEnv": "SECRET"}],
		"chains": [{"chainKey": "base", "rpc": ["http://127.0.0.1:1"]}]}`, listen, folder), 0o600))
	return file
}

// TestPortTaken expects that a program that cannot listen creates no files.
func TestPortTaken(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.OK(t, err)
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
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
