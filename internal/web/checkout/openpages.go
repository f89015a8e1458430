package checkout

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of the streams of open pages.
const (
	// StreamsOfInvoice bounds the streams of one invoice.
	StreamsOfInvoice = 20
	// StreamsOfClient bounds the streams of one client network. An IPv6 site may have SiteWeight times as many.
	StreamsOfClient = 50
	// MaxStreams bounds the streams of all clients. A merchant and a client network have a share.
	MaxStreams = 20_000
	// Heartbeat is how often a stream repeats the status while it does not change.
	Heartbeat = 20 * time.Second
)

// openPages sends the status of invoices to the pages that are open. All pages of an invoice share one
// read of it, and all pages of a chain share one look at it; a page without news costs its heartbeat.
type openPages struct {
	*webpage.Streams

	checkout *Checkout
	wake     chan struct{} // a page has to be read, or a page was opened
	rounds   rounds        // belongs to the goroutine of keep

	mu      sync.Mutex
	pages   map[string]*openPage // by invoice
	changed changedPages
	reads   uint64 // how many were begun
}

// openPage is an invoice with an open page.
//
// Invariant: read is the number of the read that returned status, 0 before the first, and changed is
// set if an event was recorded since that read began.
type openPage struct {
	id      string
	streams []*webpage.PushStream
	joined  int // streams, and requests that will be
	status  pageStatus
	read    uint64
	changed bool
	beat    time.Time // when the status is repeated
}

// streamsFrom returns the claims of the networks of a request's client.
func streamsFrom(r *http.Request) []webpage.StreamClaim {
	from := limits.Networks(r.Context())
	for i := range from {
		from[i].Most = StreamsOfClient * from[i].Weight
	}
	return from
}

// streamOf returns the claim of an invoice.
func streamOf(id string) webpage.StreamClaim {
	return webpage.StreamClaim{Client: limits.Party{Object: id}, Weight: 1, Most: StreamsOfInvoice}
}

func newOpenPages(c *Checkout) *openPages {
	return &openPages{
		Streams:  webpage.NewStreams(c.conf.Feed, int64(cmp.Or(c.conf.MaxStreams, MaxStreams)), c.conf.Refused),
		checkout: c, wake: make(chan struct{}, 1), pages: make(map[string]*openPage), rounds: rounds{revisions: make(map[string]int64)},
	}
}

// OpenStreams returns the number of streams of open pages.
func (c *Checkout) OpenStreams() int {
	if c.open == nil {
		return 0
	}
	return c.open.Count()
}

// join counts a stream for an invoice. It returns the errors of Join, and the number of the read that
// the caller begins, or 0 if the status is known.
func (p *openPages) join(id string, claims []webpage.StreamClaim) (read uint64, err error) {
	if err := p.Join(claims...); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.pages[id]
	if page == nil {
		page = &openPage{id: id}
		p.pages[id] = page
	}
	page.joined++
	clock.Wake(p.wake)
	if page.read > 0 && !page.changed {
		return 0, nil
	}
	p.reads++
	return p.reads, nil
}

// leave undoes a join with all its claims. stream may be nil.
func (p *openPages) leave(id string, claims []webpage.StreamClaim, stream *webpage.PushStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.pages[id]
	if i := slices.Index(page.streams, stream); i >= 0 {
		page.streams = slices.Delete(page.streams, i, i+1)
	}
	if page.joined--; page.joined == 0 {
		delete(p.pages, id)
	}
	p.Leave(claims...)
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
	if p.IsClosed() {
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
	p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
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

// events answers with a stream of an invoice's statuses: the current one, each that differs from the
// previous one, and the last one again after Heartbeat.
func (c *Checkout) events(w http.ResponseWriter, r *http.Request) error {
	id, networks := r.PathValue("id"), streamsFrom(r)
	if !isInvoiceID(id) {
		return errNotFound
	}
	claims := append(slices.Clone(networks), streamOf(id))
	read, err := c.open.join(id, claims)
	if err != nil {
		return err
	}
	var stream *webpage.PushStream
	left := func() { c.open.leave(id, claims, stream) }
	now, err := c.open.status(r.Context(), id, read)
	if err == nil {
		at := limits.AtMerchant(now.merchantID, networks)
		if err = c.open.Charge(at...); err == nil {
			claims = append(claims, at...)
		}
	}
	if err != nil {
		left()
		return err
	}
	if r.Method == http.MethodHead {
		left()
		w.Header().Set("Content-Type", webpage.MediaType)
		return nil
	}
	stream, err = webpage.AcceptStream(w, webpage.EventMessage("status", now.json(c.conf.Now())))
	if err != nil { // the client has disconnected
		left()
		c.Sent(r, err)
		return nil
	}
	c.open.add(id, stream, now)
	ctx, cancel := webpage.RequestContext(context.Background(), r)
	defer cancel()
	stream.Serve(ctx, left)
	return nil
}
