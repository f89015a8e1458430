package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// share is how many seeds a process runs.
const share = 10

// workers runs seeds in several processes.
type workers struct {
	options
	last  uint64
	out   io.Writer
	began time.Time

	mu     sync.Mutex
	next   uint64 // the first seed that no process has
	ok     int
	failed []string
}

// runWorkers divides seeds among processes, and prints their failures and a summary.
func runWorkers(o options, first, last uint64, out io.Writer) error {
	w := &workers{options: o, next: first, last: last, out: out, began: time.Now()}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for range o.workers {
		group.Go(func() {
			for a, b, more := w.take(); more; a, b, more = w.take() {
				flags := []string{"-child", "-seeds", fmt.Sprintf("%d..%d", a, b), fmt.Sprintf("-shrink=%v", o.shrink), fmt.Sprintf("-postgres=%v", o.pg)}
				lines, err := exec.CommandContext(context.Background(), self, flags...).CombinedOutput() // bounded by its seeds
				w.report(a, b, string(lines), err)
			}
		})
	}
	group.Wait()
	fmt.Fprintf(out, "%d seeds ok and %d failed in %s %s\n", w.ok, len(w.failed), time.Since(w.began).Truncate(time.Second), strings.Join(w.failed, " "))
	if len(w.failed) > 0 {
		return fmt.Errorf("%d seeds failed", len(w.failed))
	}
	return nil
}

// take returns the next seeds, the first and the last.
func (w *workers) take() (a, b uint64, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next > w.last || w.forTime > 0 && time.Since(w.began) > w.forTime {
		return 0, 0, false
	}
	a, b = w.next, min(w.last, w.next+share-1)
	w.next = b + 1
	return a, b, true
}

// report prints what a process printed, except about seeds without a failure. A process that did not end in order
// failed at its first seed without a verdict.
func (w *workers) report(a, b uint64, lines string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(lines) {
		var seed uint64
		var verdict string
		_, _ = fmt.Sscanf(line, "seed %d %s", &seed, &verdict)
		switch verdict {
		case "ok:":
			w.ok++
			a = seed + 1
			continue
		case "FAILED:":
			w.failed = append(w.failed, fmt.Sprint(seed))
			a = seed + 1
		}
		fmt.Fprint(w.out, line)
	}
	if a <= b {
		w.failed = append(w.failed, fmt.Sprint(a))
		fmt.Fprintf(w.out, "seed %d did not end: %v\n", a, err)
	}
}
