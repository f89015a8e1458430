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
	// liveBatch is how long a stream collects news, so that a busy merchant's pages are not read again for each event.
	liveBatch = time.Second
	// liveHeartbeat is the interval of a stream's heartbeats.
	liveHeartbeat = 20 * time.Second
)

// liveStream is the stream of an open page. Its messages are a number that grows with each change. They do not contain
// the change: the page is read again, with the rights that the person has then. The number is repeated as a heartbeat.
type liveStream struct {
	*webpage.PushStream
	version  int // guarded by the mutex of the streams
	session  access.Session
	person   access.Principal
	merchant string // only its changes count; empty for all merchants
	invoice  string // invoice of the page; empty for all
	ends     time.Time
}

// claims returns the accounts on which the stream counts: the merchant's, or the operator's, and the person's.
func (s *liveStream) claims() []webpage.StreamClaim {
	return []webpage.StreamClaim{
		{Client: limits.PartyOf(s.person.MerchantID), Weight: 1},
		{Client: limits.Party{Object: s.person.KeyID}, Weight: 1, Most: StreamsOfKey},
	}
}

// liveStreams are the streams of open pages.
type liveStreams struct {
	*webpage.Streams

	now     func() time.Time
	mu      sync.Mutex
	streams map[*liveStream]struct{}
}

func newLiveStreams(feed webpage.Feed, now func() time.Time) *liveStreams {
	return &liveStreams{Streams: webpage.NewStreams(feed, MaxStreams, func(string) {}), now: now, streams: make(map[*liveStream]struct{})}
}

// each calls a function with each stream.
func (l *liveStreams) each(do func(*liveStream)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.streams {
		do(s)
	}
}

// add adds a joined stream.
func (l *liveStreams) add(s *liveStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[s] = struct{}{}; l.IsClosed() {
		s.End()
	}
}

// leave undoes a join, and removes the stream if it was added.
func (l *liveStreams) leave(s *liveStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, s)
	l.Leave(s.claims()...)
}

// run sends news to the streams until ctx ends, and then ends them.
func (l *liveStreams) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() {
		for clock.Sleep(ctx, liveHeartbeat, nil) {
			l.beat()
		}
	})
	l.Follow(ctx, liveBatch, l.take)
	group.Wait()
	l.Close()
	l.each(func(s *liveStream) { s.End() })
}

// take sends a new number to the streams that news concern, or to all.
func (l *liveStreams) take(news webhooks.News, all bool) {
	l.end(news.Changes)
	l.each(func(s *liveStream) {
		if all || s.concerns(news) {
			s.version++
			s.Send(s.message())
		}
	})
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

// end ends the streams of the sessions and keys that were changed. Their pages ask for another
// stream, which is refused if the session has ended.
func (l *liveStreams) end(changes []access.ChangeRow) {
	var about []string
	for _, c := range changes {
		if slices.Contains([]access.Action{access.ActionSessionEnd, access.ActionKeyRotate, access.ActionKeyRevoke}, c.Action) {
			about = append(about, c.Object)
		}
	}
	l.each(func(s *liveStream) {
		if slices.ContainsFunc(about, func(id string) bool { return id == s.session.ID || id == s.session.KeyID || s.person.IsLetInBy(id) }) {
			s.End()
		}
	})
}

// beat sends a heartbeat to all streams, and ends the streams of expired sessions.
func (l *liveStreams) beat() {
	now := l.now()
	l.each(func(s *liveStream) {
		if now.Before(s.ends) {
			s.Send(s.message())
		} else {
			s.End()
		}
	})
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
	ends := v.session.ExpiresAt
	if idle := d.cfg.Now().Add(access.SessionIdle); idle.Before(ends) {
		ends = idle
	}
	s := &liveStream{session: v.session, person: v.principal, merchant: v.merchant, invoice: about, ends: v.principal.CapExpiry(ends)}
	err := d.live.Join(s.claims()...)
	if err != nil {
		return err
	}
	left := func() { d.live.leave(s) }
	if s.PushStream, err = webpage.AcceptStream(w, s.message()); err != nil { // the client has disconnected
		left()
		d.Sent(r, err)
		return nil
	}
	d.live.add(s)
	ctx, cancel := webpage.RequestContext(context.Background(), r)
	defer cancel()
	select {
	case <-d.live.Followed():
	case <-ctx.Done():
	}
	if errors.Is(d.recheck(r), access.ErrRevoked) { // it ended before
		s.End()
	}
	s.Serve(ctx, left)
	return nil
}
