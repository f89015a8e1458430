// Package litestream_test measures which data is lost with a machine.
package litestream_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	_ "modernc.org/sqlite"
)

var (
	rounds  = flag.Int("rounds", 1, "how often the machine is lost, with each replica")
	creates = flag.Int("creates", 1500, "after how many invoices the machine is lost")
	limit   = flag.Duration("limit", 10*time.Second, "how old a lost invoice may be; the target is 1s on a quiet machine")
)

// machine is a machine with the service and Litestream, with a separate folder.
type machine struct {
	folder, base string
	env          []string
	processes    []*exec.Cmd
}

// TestLoss loses a machine under load: both processes are killed and its disk is gone. Acknowledged
// invoices that are not in the restored database are at most as old as the limit.
func TestLoss(t *testing.T) {
	bin := t.TempDir()
	build(t, "../..", bin+"/quittance", "./cmd/quittance")
	build(t, ".", bin+"/litestream", "github.com/benbjohnson/litestream/cmd/litestream")
	for round := range *rounds {
		t.Run(fmt.Sprint("file/", round), func(t *testing.T) { lose(t, bin, "file://"+t.TempDir()+"/replica") })
		t.Run(fmt.Sprint("s3/", round), func(t *testing.T) {
			backend := s3mem.New()
			if err := backend.CreateBucket("backups"); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(gofakes3.New(backend).Server())
			t.Cleanup(server.Close)
			lose(t, bin, "s3://backups/quittance?forcePathStyle=true&endpoint="+url.QueryEscape(server.URL))
		})
	}
}

func build(t *testing.T, from, to, what string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", to, what)
	cmd.Dir = from
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func lose(t *testing.T, bin, replica string) {
	m := start(t, bin, replica)
	acked := m.createInvoices(t)
	for _, p := range m.processes {
		if err := p.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	killed := time.Now()
	for _, p := range m.processes {
		_ = p.Wait() // it was killed
	}
	if err := os.RemoveAll(m.folder); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored.db")
	run(t, m.env, bin+"/litestream", "restore", "-config", "litestream.yml", "-o", restored, m.folder+"/quittance.db")
	kept := invoicesIn(t, restored)
	lost, oldest := 0, time.Duration(0)
	for id, at := range acked {
		if !kept[id] {
			lost, oldest = lost+1, max(oldest, killed.Sub(at))
		}
	}
	t.Logf("%d invoices acknowledged, %d of them lost, the oldest acknowledged %v before the end", len(acked), lost, oldest.Round(time.Millisecond))
	if oldest > *limit {
		t.Errorf("lost invoices of the last %v, want at most %v", oldest, *limit)
	}
}

// start starts the service and Litestream with the shipped configuration.
func start(t *testing.T, bin, replica string) *machine {
	t.Helper()
	m := &machine{folder: t.TempDir()}
	m.base = "http://" + freeAddress(t)
	m.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + m.folder, "QUITTANCE_DB=" + m.folder + "/quittance.db", "LITESTREAM_REPLICA_URL=" + replica,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1",
	}
	// The service with a development chain: without a node no invoice is created.
	m.run(t, bin+"/quittance", "dev", "--data", m.folder, "--listen", strings.TrimPrefix(m.base, "http://"))
	await(t, func() bool {
		r, err := http.Get(m.base + "/readyz?exclude=chains")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
	m.run(t, bin+"/litestream", "replicate", "-config", "litestream.yml")
	await(t, func() bool { // the first copy is there
		cmd := exec.CommandContext(t.Context(), bin+"/litestream", "restore", "-config", "litestream.yml", "-o", filepath.Join(t.TempDir(), "first.db"), m.folder+"/quittance.db")
		cmd.Env = m.env
		return cmd.Run() == nil
	})
	return m
}

// run starts a process, which ends with the test at the latest.
func (m *machine) run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = m.env
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.processes = append(m.processes, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(name), log.Bytes()[max(0, log.Len()-4000):])
		}
	})
}

// createInvoices creates invoices until enough are acknowledged, and returns when each was.
func (m *machine) createInvoices(t *testing.T) map[string]time.Time {
	t.Helper()
	acked := make(map[string]time.Time)
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for worker := range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id, err := m.create(ctx, fmt.Sprintf("0x%040x", worker*1_000_000+n+1))
				mu.Lock()
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					end()
				}
				if err == nil {
					acked[id] = time.Now()
				}
				if len(acked) >= *creates {
					end()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return acked
}

func (m *machine) create(ctx context.Context, to string) (id string, err error) {
	body := fmt.Sprintf(`{"merchantId": "m", "merchantAddress": %q, "amount": "1000000", "currency": "USDC", "chainKey": "local", "expiresAt": %d}`, to, time.Now().Unix()+3600)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base+"/api/invoices", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var made struct{ ID, Detail string }
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil || response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("%s: %s, %w", response.Status, made.Detail, err)
	}
	return made.ID, nil
}

// invoicesIn returns the ids of the invoices in a database, which must be intact.
func invoicesIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var intact string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&intact); err != nil || intact != "ok" {
		t.Fatalf("the restored database: %s, %v", intact, err)
	}
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM invoices")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := make(map[string]bool)
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		all[id] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func run(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// await waits until ready returns true.
func await(t *testing.T, ready func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for poll := time.NewTicker(50 * time.Millisecond); !ready(); {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatal("not ready within a minute")
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
