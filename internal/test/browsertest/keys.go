package browsertest

import "github.com/chromedp/chromedp"

// Keys presses keys, such as kb.Tab, where the focus is, which may be in a frame.
func (p *Page) Keys(keys string) {
	p.t.Helper()
	run(p, chromedp.KeyEvent(keys))
}
