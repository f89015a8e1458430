package browsertest

import (
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// Frame waits until the page has a frame of another site whose URL begins with the given one,
// and returns it as a page, which ends with the test. Chromium runs such a frame in a process
// of its own: what the page sees of it says nothing of whether it gets keys yet.
func (p *Page) Frame(url string) *Page {
	p.t.Helper()
	frame := &Page{t: p.t}
	own := chromedp.FromContext(p.ctx).Target.TargetID
	var err error
	found := p.poll(func() bool {
		targets, failed := chromedp.Targets(p.ctx)
		err = failed
		for _, target := range targets {
			if target.ParentFrameID == cdp.FrameID(own) && target.Type == "iframe" && strings.HasPrefix(target.URL, url) {
				ctx, leave := chromedp.NewContext(p.ctx, chromedp.WithTargetID(target.TargetID), chromedp.WithDetachOnCancel())
				p.t.Cleanup(leave)
				frame.ctx = ctx
				return true
			}
		}
		return false
	})
	if !found {
		p.t.Fatalf("browsertest: the page has no frame of %s (%v)", url, err)
	}
	return frame
}
