package checkout

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// rounds looks at all pages.
type rounds struct {
	observed  time.Time        // when the last round was
	rereads   int              // pages that may be read again in this round, not counting pages with news
	failed    time.Time        // when a page could not be read
	chains    map[string]look  // of this round
	revisions map[string]int64 // of each chain, when it was looked at last
	reorged   bool             // a chain of this round
}

// look is how far a chain is read.
type look struct {
	following
	reorged      bool              // since the look before, as far as is known
	unattributed []invoice.Payment // that were read last, at most maxUnmatched
}

// changedPages are the pages that have to be read, in the order in which they changed. A page may be
// in both lists; one that was read since is no longer marked.
type changedPages struct {
	news   []*openPage // that news are about
	others []*openPage
}

// markOne marks the page of an invoice with news, if it is open, and wakes keep. The caller holds mu.
func (p *openPages) markOne(id string) {
	if page := p.pages[id]; page != nil {
		page.changed = true
		p.changed.news = append(p.changed.news, page)
		clock.Wake(p.wake)
	}
}

// markLater marks a page that can be read later. The caller holds mu.
func (p *openPages) markLater(page *openPage) {
	if !page.changed {
		page.changed = true
		p.changed.others = append(p.changed.others, page)
	}
}

// markAll marks all pages as changed.
func (p *openPages) markAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range p.pages {
		p.markLater(page)
	}
	clock.Wake(p.wake)
}

// takeChanged returns a page that has to be read, pages with news first, and marks it as read. It
// returns nil without one, and when the round's reads are used up.
func (p *openPages) takeChanged() *openPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		from := &p.changed.news
		if len(*from) == 0 {
			from = &p.changed.others
			if len(*from) == 0 || p.rounds.rereads == 0 {
				return nil
			}
		}
		page := (*from)[0]
		(*from)[0] = nil
		*from = (*from)[1:]
		if !page.changed || p.pages[page.id] != page { // it was read, or everybody has left
			continue
		}
		if from == &p.changed.others {
			p.rounds.rereads--
		}
		page.changed = false
		return page
	}
}

// observe looks at the chains and at all pages. It marks the pages that a chain or the clock has changed, and sends new
// numbers of confirmations and statuses that are to be repeated. A repeated status that depends on payments is read
// again, since the end of a refund and a new transfer amount write neither an event nor a change.
func (p *openPages) observe(ctx context.Context) {
	p.followChains(ctx)
	now, beat := p.checkout.conf.Now(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range p.pages {
		seen, ok := p.rounds.chains[page.status.chainKey]
		switch {
		case page.changed:
		case page.read == 0: // of an unknown chain; its first read may have been before the reorg
			if p.rounds.reorged {
				p.markLater(page)
			}
		case page.status.isOver(now), ok && page.status.isOutdated(seen, now):
			p.markLater(page)
		case !page.beat.IsZero() && !beat.Before(page.beat):
			p.send(page)
			if page.status.hasPayments {
				p.markLater(page)
			}
		case ok && page.status.confirm(p.checkout.chains[page.status.chainKey].Finality, seen.following):
			p.send(page)
		}
	}
}

// followChains reads how far the chains of open pages are read. It leaves out those that
// cannot be read from the database.
func (p *openPages) followChains(ctx context.Context) {
	before := p.rounds.chains
	p.rounds.chains, p.rounds.reorged = make(map[string]look), false
	p.mu.Lock()
	for _, page := range p.pages {
		if page.read > 0 {
			p.rounds.chains[page.status.chainKey] = look{}
		}
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, rereadTimeout)
	defer cancel()
	for key := range maps.Clone(p.rounds.chains) {
		now, err := p.look(ctx, key, before[key])
		if err != nil {
			p.logFailure(ctx, "chain", key, err)
			delete(p.rounds.chains, key)
			continue
		}
		revision, known := p.rounds.revisions[key]
		now.reorged = !known || revision != now.revision
		p.rounds.chains[key] = now
		p.rounds.revisions[key] = now.revision
		p.rounds.reorged = p.rounds.reorged || now.reorged
	}
}

// look looks at a chain. It does not read the payments of before if no block was read since.
func (p *openPages) look(ctx context.Context, key string, before look) (look, error) {
	now, err := p.checkout.follow(ctx, key)
	if err != nil || now.indexed.Number == before.indexed.Number && now.revision == before.revision {
		return look{following: now, unattributed: before.unattributed}, err
	}
	rows, err := p.checkout.conf.Reader.NewestUnattributed(ctx, key, maxUnmatched)
	return look{following: now, unattributed: payments(rows)}, err
}

// reread reads the changed pages that this round can read. After an error it leaves the others for later.
func (p *openPages) reread(ctx context.Context) {
	for page := p.takeChanged(); page != nil; page = p.takeChanged() {
		if err := p.rereadOne(ctx, page); err != nil {
			p.logFailure(ctx, "invoice", page.id, err)
			p.rounds.failed, p.rounds.rereads = time.Now(), 0
			return
		}
	}
}

// rereadOne reads the page of an invoice. If the invoice was deleted, it ends the streams.
func (p *openPages) rereadOne(ctx context.Context, page *openPage) error {
	p.mu.Lock()
	p.reads++
	read := p.reads
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, rereadTimeout)
	defer cancel()
	status, err := p.checkout.currentStatus(ctx, page.id)
	if err == nil {
		p.adopt(page.id, read, status)
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, db.ErrNotFound) {
		page.end()
		return nil
	}
	p.markLater(page)
	return err
}

// logFailure logs that a chain or an invoice could not be read, unless the service stops.
func (p *openPages) logFailure(ctx context.Context, what, which string, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		p.checkout.conf.Logger.WarnContext(ctx, "read for open pages failed, will retry", what, which, "err", err)
	}
}

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
