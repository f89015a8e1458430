package devtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// Block returns the first block of code in a language in a document.
func Block(t testing.TB, document, language string) string {
	t.Helper()
	text := expect.Must(os.ReadFile(document))
	_, block, found := strings.Cut(string(text), "\n```"+language+"\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !found || !closed {
		t.Fatalf("devtest: %s has no block of %s", document, language)
	}
	return block + "\n"
}

// Lines returns the number of lines that are not blank.
func Lines(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// FreeAddress returns an address on which nothing listens. Its port is below those that the
// system gives to connections: one of these could take it before the caller's program listens,
// such as that of a client which connects to the program until it is up.
func FreeAddress(t testing.TB) string {
	t.Helper()
	const first, ports, tries = 20_000, 10_000, 100
	var err error
	for range tries {
		var l net.Listener
		l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(ports))) //nolint:gosec // a free port is no secret
		if err != nil {
			continue // it is in use
		}
		expect.OK(t, l.Close())
		return l.Addr().String()
	}
	t.Fatal(err)
	return ""
}

// maxOutput is the number of lines of a program that Await can find.
const maxOutput = 1000

// Program is a running program.
type Program struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines chan string // closed when the program has ended
}

// Run starts a program, which is killed when the test ends, with all that it has started.
func Run(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	cmd.WaitDelay = time.Second
	kill := ownGroup(cmd)
	cmd.Cancel = kill
	expect.OK(t, cmd.Start())
	p := &Program{t, cmd, make(chan string, maxOutput)}
	var text strings.Builder
	var running sync.WaitGroup
	running.Go(func() {
		defer close(p.lines)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			text.WriteString(lines.Text() + "\n")
			select {
			case p.lines <- lines.Text():
			default:
			}
		}
	})
	running.Go(func() {
		_ = cmd.Wait() // it is killed
		_ = writer.Close()
	})
	t.Cleanup(func() {
		_ = kill() // it may have ended
		running.Wait()
		if t.Failed() {
			t.Logf("%s printed\n%s", cmd.Args, &text)
		}
	})
	return p
}

// Await waits until the program prints a line that the pattern matches, and returns the first submatch.
func (p *Program) Await(pattern string) string {
	p.t.Helper()
	expression := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("devtest: %s ended without a line like %s", p.cmd.Args, pattern)
			}
			if match := expression.FindStringSubmatch(line); match != nil {
				return match[1]
			}
		case <-ctx.Done():
			p.t.Fatalf("devtest: %s printed no line like %s", p.cmd.Args, pattern)
		}
	}
}

// pollEvery is how often a world is asked for its state.
const pollEvery = 50 * time.Millisecond

// poll waits until a world is in a state.
func poll(t testing.TB, missing string, isIn func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !isIn(ctx) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("devtest: %s", missing)
		}
	}
}

// AwaitDelivery waits until an event about an invoice was delivered.
func (w *World) AwaitDelivery(t testing.TB, invoiceID string, typ apitypes.EventType) {
	t.Helper()
	poll(t, fmt.Sprintf("%s of %s was not delivered", typ, invoiceID), func(ctx context.Context) bool {
		for event, err := range w.Operator.Events(ctx, client.EventFilter{InvoiceID: invoiceID, Type: typ, Delivery: apitypes.WithDelivered}) {
			expect.OK(t, err)
			if event.Delivery != nil {
				return true
			}
		}
		return false
	})
}
