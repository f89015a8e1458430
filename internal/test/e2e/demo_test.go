package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// TestDemo runs the demo with its output in a pipe.
func TestDemo(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	c := launchWith(t, []string{"TMPDIR=" + tmp}, "demo")
	if code := c.exit(t, 60*time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	out := c.stdout.String()
	if strings.ContainsAny(out, "\x1b\r") {
		t.Error("it writes escape codes or progress into a pipe")
	}
	for typ, want := range map[string]int{
		webhook.InvoiceCreated: 6, webhook.InvoicePaid: 5, webhook.InvoiceExpired: 1, webhook.PaymentReceived: 6, webhook.PaymentRefunded: 1,
	} {
		if got := strings.Count(out, typ+" evt_"); got != want {
			t.Errorf("%d steps with %s, want %d", got, typ, want)
		}
	}
	for pattern, want := range map[string]int{
		`(?m)^inv_\w+ .* paid .* 3$`:    3,
		`(?m)^inv_\w+ .* expired .* 2$`: 1,
		`(?m)^inv_\w+ .* paid .* 4$`:    2,
		`19 events`:                     1,
		`\b0x[0-9a-f]{64}\b`:            8 + 3, // six payments, a refund, a sweep, and the commitments that it reads
	} {
		if got := len(regexp.MustCompile(pattern).FindAllString(out, -1)); got < want || pattern[0] == '(' && got != want {
			t.Errorf("%d times %s, want %d", got, pattern, want)
		}
	}
	if c.stderr.String() != "" {
		t.Errorf("it complained: %s", c.stderr.String())
	}
	empty(t, tmp)
}

// TestExtraDemoInterrupted interrupts the demo.
func TestExtraDemoInterrupted(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	c := launchWith(t, []string{"TMPDIR=" + tmp}, "demo")
	expect.OK(t, await(within(t, patience), func() bool { return c.ended() || strings.Contains(c.stdout.String(), "inv_") }))
	if code := c.stop(t, syscall.SIGINT, 12*time.Second); code == 0 {
		t.Error("exit code 0, though not all was observed")
	}
	if got := c.stderr.String(); got == "" || strings.Contains(got, "goroutine") {
		t.Errorf("it said %q", got)
	}
	empty(t, tmp)
}

// empty fails the test unless the folder is empty.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Error(fmt.Errorf("left behind: %v, %w", left, err))
	}
}
