package checkout

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// observeInterval is how often the chains of open pages, and each page, are looked at.
	observeInterval = 500 * time.Millisecond
	// rereadBatch bounds the pages that are read again in each round, not counting pages with news.
	rereadBatch = 1000
	// rereadRetry is how long after a failure only pages with news are read.
	rereadRetry = time.Second
	// rereadTimeout bounds the read of one invoice or chain.
	rereadTimeout = 5 * time.Second
)

// Run keeps open pages up to date until ctx ends, and then ends their streams.
func (c *Checkout) Run(ctx context.Context) {
	if c.open == nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { c.open.Follow(ctx, 0, c.open.markAbout) })
	c.open.keep(ctx)
	c.open.close()
	group.Wait()
}

// markAbout marks the pages of the news as changed: of each event, of each change to an invoice, and all pages of the
// merchant of any other change, since it may be about a payment or a refund. With all set, it marks all pages.
func (p *openPages) markAbout(news webhooks.News, all bool) {
	if all {
		p.markAll()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range news.Events {
		p.markOne(e.InvoiceID)
	}
	for _, change := range news.Changes {
		switch {
		case change.Action.IsOfAccess():
		case strings.HasPrefix(change.Object, invoice.PrefixInvoice):
			p.markOne(change.Object)
		default:
			for _, page := range p.pages {
				if page.status.merchantID == change.MerchantID {
					p.markLater(page)
				}
			}
			clock.Wake(p.wake)
		}
	}
}

// keep reads pages again and sends changes, until ctx ends.
func (p *openPages) keep(ctx context.Context) {
	for clock.Sleep(ctx, p.pause(), p.wake) {
		if time.Since(p.rounds.observed) >= observeInterval {
			p.rounds.observed = time.Now()
			if time.Since(p.rounds.failed) >= rereadRetry {
				p.rounds.rereads = rereadBatch
			}
			p.observe(ctx)
		}
		p.reread(ctx)
	}
}

// pause returns how long keep waits without news.
func (p *openPages) pause() time.Duration {
	if p.Count() == 0 {
		return Heartbeat
	}
	return observeInterval
}
