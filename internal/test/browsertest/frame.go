package browsertest

import (
	"slices"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// Frame waits until the page has a frame of another site with a URL that begins with the given one,
// and returns it as a page, which ends with the test. Chromium runs such a frame in a separate
// process: the page cannot see whether the frame gets keys yet.
func (p *Page) Frame(url string) *Page {
	p.t.Helper()
	own := chromedp.FromContext(p.ctx).Target.TargetID
	var err error
	var frame *target.Info
	found := p.poll(Patience, func() bool {
		targets, failed := chromedp.Targets(p.ctx)
		err = failed
		i := slices.IndexFunc(targets, func(info *target.Info) bool {
			return info.ParentFrameID == cdp.FrameID(own) && info.Type == "iframe" && strings.HasPrefix(info.URL, url)
		})
		if i < 0 {
			return false
		}
		frame = targets[i]
		return true
	})
	if !found {
		p.t.Fatalf("browsertest: the page has no frame of %s (%v)", url, err)
	}
	ctx, leave := chromedp.NewContext(p.ctx, chromedp.WithTargetID(frame.TargetID), chromedp.WithDetachOnCancel())
	p.t.Cleanup(leave)
	return &Page{t: p.t, ctx: ctx}
}
