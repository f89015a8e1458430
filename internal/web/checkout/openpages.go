package checkout

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// Limits of the streams of open pages.
const (
	// StreamsOfInvoice bounds the streams of one invoice.
	StreamsOfInvoice = 20
	// StreamsOfClient bounds the streams of one client network. An IPv6 site may have SiteWeight times
	// as many.
	StreamsOfClient = 50
	// MaxStreams bounds the streams of all clients. A merchant and a client network have a share.
	MaxStreams = 20_000
	// Heartbeat is how often a stream repeats the status while it does not change.
	Heartbeat = 20 * time.Second
	// RetryStreams is the Retry-After beyond a limit of streams.
	RetryStreams = time.Minute
)

// Feed returns new events and changes. *webhooks.Feed implements it.
type Feed interface {
	// Head returns a position: everything that commits after the call is behind it.
	Head(ctx context.Context) (webhooks.Position, error)
	// Next waits for news behind a position. The error is webhooks.ErrBehind if the logs have to be read
	// up to news.Through.
	Next(ctx context.Context, after webhooks.Position) (news webhooks.News, err error)
}

// openPages sends the status of invoices to the pages that are open. All pages of an invoice share one
// read of it, and all pages of a chain share one look at it; a page without news costs its heartbeat.
// Changes that the clock and the chains cause are spread over the slots of a round, so that all pages
// do not change at the same moment.
//
// Invariant: total is the number of streams and joining requests, which is taken from shares.
type openPages struct {
	checkout *Checkout
	shares   *limits.Shares[limits.Party]
	wake     chan struct{} // a page has to be read, or the first page was opened
	opened   chan struct{} // the first page was opened
	rounds   rounds        // belongs to the goroutine of keep

	mu      sync.Mutex
	pages   map[string]*openPage // by invoice
	slots   [slotsOfRound][]*openPage
	added   int // pages ever
	changed changedPages
	total   int
	reads   uint64 // how many were begun
	closed  bool
}

// openPage is an invoice with an open page.
//
// Invariant: read is the number of the read that returned status, 0 before the first, and changed is
// set if an event was recorded since that read began. The page is at index in its slot.
type openPage struct {
	id          string
	slot, index int
	streams     []*webpage.PushStream
	joined      int // streams, and requests that will be
	status      pageStatus
	read        uint64
	changed     bool
	beat        time.Time // when the status is repeated
}

// streamClaim is an account on which a stream counts.
type streamClaim = limits.Claim[limits.Party]

// streamsFrom returns the claims of the networks of a request's client.
func streamsFrom(r *http.Request) []streamClaim {
	from := limits.Networks(r.Context())
	for i := range from {
		from[i].Most = StreamsOfClient * from[i].Weight
	}
	return from
}

func newOpenPages(c *Checkout) *openPages {
	return &openPages{
		checkout: c, shares: limits.NewShares[limits.Party]("streams", int64(cmp.Or(c.conf.MaxStreams, MaxStreams))),
		wake: make(chan struct{}, 1), opened: make(chan struct{}, 1),
		pages: make(map[string]*openPage), rounds: rounds{revisions: make(map[string]int64)},
	}
}

// OpenStreams returns the number of streams of open pages.
func (c *Checkout) OpenStreams() int {
	if c.open == nil {
		return 0
	}
	return c.open.count()
}

// count returns the number of streams, and of requests that will be.
func (p *openPages) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// join counts a stream of a client, in its networks, for an invoice. Errors are
// *limits.ExceededError and limits.ErrBusy. It returns the number of the read that
// the caller begins, or 0 if the status is known.
func (p *openPages) join(id string, from []streamClaim) (read uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.pages[id]
	switch {
	case page != nil && page.joined >= StreamsOfInvoice:
		return 0, p.refuse()
	case p.closed:
		err = limits.ErrBusy
	default:
		err = p.shares.Take(1, from...)
	}
	if errors.Is(err, limits.ErrBusy) {
		p.checkout.conf.Refused("all_streams")
		return 0, err
	}
	if err != nil {
		return 0, p.refuse()
	}
	if page == nil {
		page = p.newPage(id)
	}
	page.joined++
	if p.total++; p.total == 1 {
		clock.Wake(p.opened)
		clock.Wake(p.wake)
	}
	if page.read > 0 && !page.changed {
		return 0, nil
	}
	p.reads++
	return p.reads, nil
}

// newPage adds a page to the slot after the one used last. The caller holds mu.
func (p *openPages) newPage(id string) *openPage {
	page := &openPage{id: id, slot: p.added % slotsOfRound}
	p.added++
	page.index = len(p.slots[page.slot])
	p.slots[page.slot] = append(p.slots[page.slot], page)
	p.pages[id] = page
	return page
}

// drop removes a page. The caller holds mu.
func (p *openPages) drop(page *openPage) {
	slot := p.slots[page.slot]
	last := len(slot) - 1
	slot[page.index] = slot[last]
	slot[page.index].index = page.index
	slot[last] = nil
	p.slots[page.slot] = slot[:last]
	delete(p.pages, page.id)
}

// charge counts a joined stream for the invoice's merchant as well, and returns the claims of both.
// The error is a *limits.ExceededError.
func (p *openPages) charge(merchantID string, from []streamClaim) ([]streamClaim, error) {
	at := limits.AtMerchant(merchantID, from)
	if err := p.shares.Charge(1, at...); err != nil {
		return from, p.refuse()
	}
	return append(at, from...), nil
}

// refuse counts a stream beyond a share or the number of an invoice, and returns its error.
func (p *openPages) refuse() error {
	p.checkout.conf.Refused("streams")
	return &limits.ExceededError{Limit: "streams", RetryAfter: strconv.FormatInt(seconds(RetryStreams), 10)}
}

// leave undoes a join. from has all claims of it, and stream may be nil.
func (p *openPages) leave(id string, from []streamClaim, stream *webpage.PushStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.pages[id]
	if i := slices.Index(page.streams, stream); i >= 0 {
		page.streams = slices.Delete(page.streams, i, i+1)
	}
	if page.joined--; page.joined == 0 {
		p.drop(page)
	}
	p.shares.Give(1, from...)
	p.total--
}

// adopt stores the result of a read, and sends it if it differs from the last status. It ignores a
// read that began before the newest one adopted. It returns the newest status.
func (p *openPages) adopt(id string, read uint64, status pageStatus) pageStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.pages[id]
	if page == nil { // everybody has left
		return status
	}
	if read > page.read {
		was := page.status
		page.read, page.status = read, status
		if !was.same(status) {
			p.send(page)
		}
	}
	return page.status
}

// status returns the status of a joined page. It reads the page if join returned the number of a read.
func (p *openPages) status(ctx context.Context, id string, read uint64) (pageStatus, error) {
	if read == 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.pages[id].status, nil
	}
	status, err := p.checkout.currentStatus(ctx, id)
	if err != nil {
		return pageStatus{}, err
	}
	return p.adopt(id, read, status), nil
}

// add adds a stream to which a status was sent.
func (p *openPages) add(id string, stream *webpage.PushStream, sent pageStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		stream.End()
		return
	}
	page := p.pages[id]
	page.streams = append(page.streams, stream)
	if page.beat.IsZero() {
		page.beat = p.nextBeat()
	}
	if !page.status.same(sent) {
		stream.Send(p.message(page))
	}
}

// message returns a page's status as an event. The caller holds mu.
func (p *openPages) message(page *openPage) []byte {
	return webpage.EventMessage("status", page.status.json(p.checkout.conf.Now()))
}

// send sends a page's status to its streams. The caller holds mu.
func (p *openPages) send(page *openPage) {
	message := p.message(page)
	for _, stream := range page.streams {
		stream.Send(message)
	}
	page.beat = p.nextBeat()
}

// nextBeat returns when a status that was sent now is repeated.
func (p *openPages) nextBeat() time.Time {
	return time.Now().Add(clock.Jitter(Heartbeat, rand.Float64())) //nolint:gosec // jitter is no secret
}

// close ends all streams.
func (p *openPages) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, page := range p.pages {
		page.end()
	}
}

// end ends the streams of a page. The caller holds mu.
func (p *openPage) end() {
	for _, stream := range p.streams {
		stream.End()
	}
}
