package dashboard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// pathLive is the path of the streams of open pages.
const pathLive = "/dashboard/live"

// Limits of the streams of open pages.
const (
	// StreamsOfKey bounds the streams of one person.
	StreamsOfKey = 20
	// MaxStreams bounds the streams of all people. The people of one merchant, and the people of the
	// operator, may have as many streams as are free. So one owner gets half, and two get a third each.
	MaxStreams = 1000
	// maxLiveID bounds the id of a page's invoice, in bytes.
	maxLiveID = 64
	// liveBatch is how long a stream collects news, so that a busy merchant's pages are not read again for
	// each event.
	liveBatch = time.Second
	// liveHeartbeat is the interval of a stream's heartbeats.
	liveHeartbeat = 20 * time.Second
	// retryStreams is the Retry-After beyond a limit of streams.
	retryStreams = time.Minute
)

// Feed returns new events and changes. *webhooks.Feed implements it.
type Feed interface {
	// Head returns a position: everything that commits after the call is behind it.
	Head(ctx context.Context) (webhooks.Position, error)
	// Next waits for news behind a position. The error is webhooks.ErrBehind if the logs have to be read
	// up to news.Through.
	Next(ctx context.Context, after webhooks.Position) (news webhooks.News, err error)
}

// liveStream is the stream of an open page. Its messages are a number that grows with each change.
// They do not contain the change: the page is read again, with the rights that the person has then.
// The number is repeated as a heartbeat.
type liveStream struct {
	*webpage.PushStream
	version  int // guarded by the mutex of liveStreams
	session  access.Session
	person   access.Principal
	merchant string // only its changes count; empty for all merchants
	invoice  string // invoice of the page; empty for all
	ends     time.Time
}

// liveStreams are the streams of open pages. One goroutine follows the feed for all of them.
//
// Invariant: keys has the number of streams and joining requests of each key that has any. total is the
// number of all, and shares has the number of each merchant.
type liveStreams struct {
	feed   Feed
	now    func() time.Time
	opened chan struct{} // the first stream was opened

	mu      sync.Mutex
	streams map[*liveStream]struct{}
	keys    map[string]int
	shares  *limits.Shares[string] // by merchant; "" is the operator
	total   int
	closed  bool
	// followed is closed once the end of every session will be seen, or the feed has stopped.
	followed  chan struct{}
	following bool // followed is closed
}

func newLiveStreams(feed Feed, now func() time.Time) *liveStreams {
	return &liveStreams{feed: feed, now: now, opened: make(chan struct{}, 1), streams: make(map[*liveStream]struct{}), keys: make(map[string]int), shares: limits.NewShares[string]("dashboard_streams", MaxStreams), followed: make(chan struct{})}
}

// ownerOf returns the account on which a person's streams count.
func ownerOf(p access.Principal) limits.Claim[string] {
	return limits.Claim[string]{Client: p.MerchantID, Weight: 1}
}

// join counts a stream of a person. Errors are *limits.ExceededError and limits.ErrBusy.
func (l *liveStreams) join(p access.Principal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return limits.ErrBusy
	}
	exceeded := &limits.ExceededError{Limit: l.shares.Name(), RetryAfter: strconv.Itoa(int(retryStreams.Seconds()))}
	if l.keys[p.KeyID] >= StreamsOfKey {
		return exceeded
	}
	switch err := l.shares.Take(1, ownerOf(p)); {
	case errors.Is(err, limits.ErrBusy):
		return err
	case err != nil:
		return exceeded
	}
	l.keys[p.KeyID]++
	if l.total++; l.total == 1 {
		clock.Wake(l.opened)
	}
	return nil
}

// leave undoes a join. stream may be nil.
func (l *liveStreams) leave(p access.Principal, stream *liveStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, stream)
	l.shares.Give(1, ownerOf(p))
	if l.keys[p.KeyID]--; l.keys[p.KeyID] == 0 {
		delete(l.keys, p.KeyID)
	}
	l.total--
}

// add adds a joined stream, and returns a channel that is closed when the end of its session will be
// seen.
func (l *liveStreams) add(stream *liveStream) (followed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		stream.End()
	} else {
		l.streams[stream] = struct{}{}
	}
	return l.followed
}

// run sends news to the streams until ctx ends, and then ends them.
func (l *liveStreams) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() {
		for clock.Sleep(ctx, liveHeartbeat, nil) {
			l.beat()
		}
	})
	for ctx.Err() == nil {
		select {
		case <-l.opened:
			l.follow(ctx)
		case <-ctx.Done():
		}
	}
	group.Wait()
	l.close()
}

// follow sends news while there are streams.
func (l *liveStreams) follow(ctx context.Context) {
	after, err := l.feed.Head(ctx)
	l.send(func(*liveStream) bool { return true }) // pages may have been read before that position
	l.follows()
	for err == nil && !l.idle() {
		bounded, cancel := context.WithTimeout(ctx, liveHeartbeat)
		var news webhooks.News
		news, err = l.feed.Next(bounded, after)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // check whether there are streams
			err = nil
			continue
		case errors.Is(err, webhooks.ErrBehind):
			err = nil
			l.send(func(*liveStream) bool { return true })
		case err == nil:
			l.end(news.Changes)
			l.send(func(s *liveStream) bool { return s.concerns(news) })
		}
		after = news.Through
		clock.Sleep(ctx, liveBatch, nil)
	}
}

// concerns reports whether news may change the page of a stream.
func (s *liveStream) concerns(news webhooks.News) bool {
	for _, e := range news.Events {
		if (s.merchant == "" || e.MerchantID == s.merchant) && (s.invoice == "" || e.InvoiceID == s.invoice) {
			return true
		}
	}
	for _, c := range news.Changes {
		if c.Action.IsOfAccess() {
			continue
		}
		if (s.merchant == "" || c.MerchantID == s.merchant) && (s.invoice == "" || c.Object == s.invoice || !strings.HasPrefix(c.Object, invoice.PrefixInvoice)) {
			return true
		}
	}
	return false
}

// message returns the version as a message.
func (s *liveStream) message() []byte {
	return webpage.EventMessage("version", strconv.AppendInt(nil, int64(s.version), 10))
}

// idle reports whether there are no streams, and no requests that will become streams. Then the feed
// is no longer followed.
func (l *liveStreams) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total == 0 && l.following {
		l.followed, l.following = make(chan struct{}), false
	}
	return l.total == 0
}

// follows makes requests check again whether their session has ended.
func (l *liveStreams) follows() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.following {
		l.following = true
		close(l.followed)
	}
}

// send sends a new number to the streams that a function chooses.
func (l *liveStreams) send(to func(*liveStream) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.streams {
		if to(s) {
			s.version++
			s.Send(s.message())
		}
	}
}

// end ends the streams of the sessions and keys that were changed. Their pages ask for another
// stream, which is refused if the session has ended.
func (l *liveStreams) end(changes []access.ChangeRow) {
	var about []string
	for _, c := range changes {
		if slices.Contains([]access.Action{access.ActionSessionEnd, access.ActionKeyRotate, access.ActionKeyRevoke}, c.Action) {
			about = append(about, c.Object)
		}
	}
	if len(about) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.streams {
		if slices.ContainsFunc(about, func(id string) bool { return id == s.session.ID || id == s.session.KeyID || s.person.IsLetInBy(id) }) {
			s.End()
		}
	}
}

// beat sends a heartbeat to all streams, and ends the streams of expired sessions.
func (l *liveStreams) beat() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.streams {
		if now.Before(s.ends) {
			s.Send(s.message())
		} else {
			s.End()
		}
	}
}

// close ends all streams, and refuses further ones.
func (l *liveStreams) close() {
	l.follows()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for s := range l.streams {
		s.End()
	}
}

// Run sends changes to open pages until ctx ends.
func (d *Dashboard) Run(ctx context.Context) {
	if d.live != nil {
		d.live.run(ctx)
	}
}

// changes answers with a stream that sends a message when the open page may have changed.
func (d *Dashboard) changes(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	about := r.URL.Query().Get("invoice")
	if d.live == nil || len(about) > maxLiveID {
		return errNotFound
	}
	if err := d.live.join(v.principal); err != nil {
		return err
	}
	ends := v.session.ExpiresAt
	if idle := d.cfg.Now().Add(access.SessionIdle); idle.Before(ends) {
		ends = idle
	}
	s := &liveStream{session: v.session, person: v.principal, merchant: v.merchant, invoice: about, ends: v.principal.CapExpiry(ends)}
	left := func() { d.live.leave(v.principal, s) }
	var err error
	if s.PushStream, err = webpage.AcceptStream(w, s.message()); err != nil { // the client has disconnected
		left()
		d.cfg.Logger.DebugContext(r.Context(), "begin a stream", "err", err)
		return nil
	}
	ctx, cancel := webpage.RequestContext(context.Background(), r)
	defer cancel()
	select {
	case <-d.live.add(s):
	case <-ctx.Done():
	}
	if errors.Is(d.recheck(r), access.ErrRevoked) { // it ended before
		s.End()
	}
	s.Serve(ctx, left)
	return nil
}
