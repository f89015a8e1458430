package checkout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/eventfeed"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// observeInterval is how often the chains of open pages are looked at.
	observeInterval = time.Second
	// rereadTimeout bounds the read of one invoice or chain.
	rereadTimeout = 5 * time.Second
	// idleFeed is how long the feed is followed without news before it is checked whether
	// pages are still open.
	idleFeed = 10 * time.Second
)

// Run keeps open pages up to date until ctx ends, and then ends their streams.
func (c *Checkout) Run(ctx context.Context) {
	if c.open == nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { c.open.followFeed(ctx) })
	c.open.keep(ctx)
	c.open.close()
	group.Wait()
}

// followFeed marks the pages that news are about, while pages are open.
func (p *openPages) followFeed(ctx context.Context) {
	for {
		select {
		case <-p.opened:
		case <-ctx.Done():
			return
		}
		after, err := p.feed.Head(ctx)
		p.markAll() // they may have been read before that position
		for err == nil && p.count() > 0 {
			after, err = p.awaitNews(ctx, after)
		}
	}
}

// awaitNews waits after a position for news, at most for idleFeed, marks the pages that they
// are about, and returns the position reached.
func (p *openPages) awaitNews(ctx context.Context, after eventfeed.Position) (eventfeed.Position, error) {
	bounded, cancel := context.WithTimeout(ctx, idleFeed)
	defer cancel()
	news, err := p.feed.Next(bounded, after)
	switch {
	case errors.Is(err, eventfeed.ErrBehind):
		p.markAll()
	case bounded.Err() != nil:
		return after, ctx.Err()
	case err != nil:
		return after, err
	default:
		p.markAbout(news)
	}
	return news.Through, nil
}

// markAbout marks the pages that news are about as changed. An attribution by hand is in the
// audit log under the payment's id, so it marks all pages of its merchant.
func (p *openPages) markAbout(news eventfeed.News) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range news.Events {
		p.markOne(e.InvoiceID)
	}
	for _, change := range news.Changes {
		switch change.Action {
		case access.ActionInvoiceVoid, access.ActionInvoiceDelete:
			p.markOne(change.Object)
		case access.ActionAttributionAssign:
			for id, page := range p.pages {
				if page.status.merchantID == change.MerchantID {
					p.markOne(id)
				}
			}
		default:
		}
	}
}

// markAll marks all pages as changed.
func (p *openPages) markAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.pages {
		p.markOne(id)
	}
}

// markOne marks the page of an invoice as changed if it is open, and wakes keep. The caller
// holds mu.
func (p *openPages) markOne(id string) {
	if page := p.pages[id]; page != nil {
		page.changed = true
		wait.Wake(p.wake)
	}
}

// keep reads and sends what has changed, until ctx ends.
func (p *openPages) keep(ctx context.Context) {
	for wait.Sleep(ctx, observeInterval, p.wake) {
		if time.Since(p.observed) >= observeInterval {
			p.observe(p.followChains(ctx))
			p.observed = time.Now()
		}
		p.reread(ctx)
	}
}

// followChains reads how far the chains of open pages are read. It leaves out those that
// cannot be read from the database.
func (p *openPages) followChains(ctx context.Context) map[string]following {
	chains := make(map[string]following)
	p.mu.Lock()
	for _, page := range p.pages {
		if page.read > 0 {
			chains[page.status.chainKey] = following{}
		}
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, rereadTimeout)
	defer cancel()
	for key := range chains {
		now, err := p.checkout.follow(ctx, key)
		if err != nil {
			p.logFailure(ctx, "chain", key, err)
			delete(chains, key)
			continue
		}
		chains[key] = now
	}
	return chains
}

// observe marks the pages that a chain or the clock has changed, and sends new numbers of
// confirmations and statuses that are to be repeated.
func (p *openPages) observe(chains map[string]following) {
	now, beat := p.checkout.now(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, page := range p.pages {
		f, ok := chains[page.status.chainKey]
		switch {
		case page.read == 0 || page.changed:
		case page.status.isOver(now), ok && page.status.isOutdated(f, now):
			p.markOne(id)
		case ok && page.status.confirm(p.checkout.chains[page.status.chainKey].Finality, f), !page.beat.IsZero() && !beat.Before(page.beat):
			p.send(page)
		}
	}
}

// reread reads the pages that have changed. After an error it leaves the others until later.
func (p *openPages) reread(ctx context.Context) {
	for _, id := range p.changedPages() {
		if err := p.rereadOne(ctx, id); err != nil {
			p.logFailure(ctx, "invoice", id, err)
			return
		}
	}
}

// changedPages returns the invoices whose pages have changed.
func (p *openPages) changedPages() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, page := range p.pages {
		if page.changed {
			ids = append(ids, id)
		}
	}
	return ids
}

// rereadOne reads the page of an invoice. If the invoice was deleted, it ends the streams.
func (p *openPages) rereadOne(ctx context.Context, id string) error {
	p.mu.Lock()
	page := p.pages[id]
	if page == nil { // everybody has left
		p.mu.Unlock()
		return nil
	}
	page.changed = false
	p.reads++
	read := p.reads
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, rereadTimeout)
	defer cancel()
	status, err := p.checkout.currentStatus(ctx, id)
	if err == nil {
		p.adopt(id, read, status)
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, store.ErrNotFound) {
		page.end()
		return nil
	}
	page.changed = true
	return err
}

// logFailure logs that a chain or an invoice could not be read, unless the service stops.
func (p *openPages) logFailure(ctx context.Context, what, which string, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		p.checkout.logger.WarnContext(ctx, "read for open pages failed, will retry", what, which, "err", err)
	}
}
