package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// parallel is how many tests run at a time: most of their time they wait for blocks and pages.
const parallel = 4

// browser is the chromium of the process.
var browser struct {
	start sync.Once
	ctx   func() context.Context
	err   error
	stop  func()
}

// Main runs the tests of a package, stops chromium, and returns the exit code.
func Main(m *testing.M) int {
	testdeps.Parallel(parallel)
	testdeps.TempInMemory()
	defer func() {
		if browser.stop != nil {
			browser.stop()
		}
	}()
	return m.Run()
}

// chromium returns the context of the running chromium, which it starts at the first call. The headless shell is
// chromium without its user interface, at half the CPU time; if it is not available, chromium is used.
func chromium(t testing.TB) context.Context {
	t.Helper()
	testdeps.Extra(t, "chromium")
	browser.start.Do(func() {
		program, err := testdeps.Program(t.Context(), "browsertest", "chromium-headless-shell")
		if err != nil {
			if program, browser.err = exec.LookPath("chromium"); browser.err != nil {
				browser.err = err
				return
			}
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(program), chromedp.Flag("disable-gpu", true), chromedp.Flag("force-color-profile", "srgb"),
			chromedp.Flag("site-per-process", true)) // a frame of another site has its own process, as in payers' browsers
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // chromium's sandbox refuses root
		}
		allocator, stopProgram := chromedp.NewExecAllocator(context.Background(), options...)
		tab, stopTab := chromedp.NewContext(allocator)
		browser.ctx = func() context.Context { return tab }
		browser.stop = func() { stopTab(); stopProgram() }
		if err := chromedp.Do(tab); err != nil {
			browser.err = fmt.Errorf("start %s: %w", program, err)
		}
	})
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	return browser.ctx()
}
