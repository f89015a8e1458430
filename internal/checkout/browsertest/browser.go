package browsertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/quittance/quittance/internal/testdeps"
)

// maxPages bounds the pages that are open at a time.
const maxPages = 2

// browser is the chromium of the process.
var browser struct {
	start sync.Once
	ctx   func() context.Context
	err   error
	stop  func()
}

// slots holds a token for each open page.
var slots = make(chan struct{}, maxPages)

// Main runs the tests of a package, stops chromium, and returns the exit code.
func Main(m *testing.M) int {
	defer func() {
		if browser.stop != nil {
			browser.stop()
		}
	}()
	return m.Run()
}

// chromium returns the context of the running chromium, which it starts at the first call.
func chromium(t testing.TB) context.Context {
	t.Helper()
	browser.start.Do(func() {
		var program string
		if program, browser.err = testdeps.Program(t.Context(), "browsertest", "chromium"); browser.err != nil {
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(program), chromedp.Flag("disable-gpu", true), chromedp.Flag("force-color-profile", "srgb"))
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
