package webpage

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// RetryStreams is the Retry-After beyond a limit of streams.
	RetryStreams = time.Minute
	// idleFeed is how long the feed is followed without news before it is checked whether there are streams.
	idleFeed = 10 * time.Second
)

// Feed returns new events and changes. *webhooks.Feed implements it.
type Feed interface {
	// Head returns a position: everything that commits after the call is behind it.
	Head(ctx context.Context) (webhooks.Position, error)
	// Next waits for news behind a position. The error is webhooks.ErrBehind if the logs have to be read
	// up to news.Through.
	Next(ctx context.Context, after webhooks.Position) (news webhooks.News, err error)
}

// StreamClaim is an account on which a stream counts.
type StreamClaim = limits.Claim[limits.Party]

// Streams bounds the streams of open pages, and follows the feed while there are any. It is safe for concurrent use.
//
// Invariant: total is the number of streams and joining requests, which is taken from shares. followed is closed while
// the feed is followed.
type Streams struct {
	feed    Feed
	shares  *limits.Shares[limits.Party]
	refused func(limit string) // counts refusals
	opened  chan struct{}      // the first stream was opened

	mu        sync.Mutex
	total     int
	closed    bool
	followed  chan struct{}
	following bool // followed is closed
}

// NewStreams returns no streams, of which there may be most at a time.
func NewStreams(feed Feed, most int64, refused func(limit string)) *Streams {
	return &Streams{
		feed: feed, shares: limits.NewShares[limits.Party]("streams", most), refused: refused,
		opened: make(chan struct{}, 1), followed: make(chan struct{}),
	}
}

// Join counts a stream. Errors are *limits.ExceededError and limits.ErrBusy.
func (s *Streams) Join(claims ...StreamClaim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := limits.ErrBusy
	if !s.closed {
		err = s.shares.Take(1, claims...)
	}
	if err != nil {
		return s.refuse(err)
	}
	if s.total++; s.total == 1 {
		clock.Wake(s.opened)
	}
	return nil
}

// Charge counts a joined stream for more accounts. The error is a *limits.ExceededError.
func (s *Streams) Charge(claims ...StreamClaim) error { return s.refuse(s.shares.Charge(1, claims...)) }

// refuse counts a refusal, and returns its error.
func (s *Streams) refuse(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, limits.ErrBusy):
		s.refused("all_streams")
	default:
		s.refused("streams")
		err = &limits.ExceededError{Limit: s.shares.Name(), RetryAfter: strconv.Itoa(int(RetryStreams.Seconds()))}
	}
	return err
}

// Leave undoes Join and Charge. It takes the claims of both.
func (s *Streams) Leave(claims ...StreamClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares.Give(1, claims...)
	s.total--
}

// Count returns the number of streams, and of requests that will be.
func (s *Streams) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Close refuses further streams.
func (s *Streams) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// IsClosed reports whether Close was called.
func (s *Streams) IsClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Followed returns a channel that is closed when what commits from then on will be passed to the function of Follow, or
// when Follow has ended. The caller has joined.
func (s *Streams) Followed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed
}

// Follow passes news to a function until ctx ends, while there are streams, with a pause after each time. If all is
// set, news may be missing: each page may have changed.
func (s *Streams) Follow(ctx context.Context, pause time.Duration, take func(news webhooks.News, all bool)) {
	for ctx.Err() == nil {
		select {
		case <-s.opened:
		case <-ctx.Done():
			continue
		}
		after, err := s.feed.Head(ctx)
		take(webhooks.News{}, true) // pages may have been read before that position
		s.follows()
		for err == nil && !s.isIdle() {
			after, err = s.next(ctx, after, take)
			clock.Sleep(ctx, pause, nil)
		}
	}
	s.follows()
}

// next passes the next news to a function, or waits for idleFeed. It returns the position reached.
func (s *Streams) next(ctx context.Context, after webhooks.Position, take func(news webhooks.News, all bool)) (webhooks.Position, error) {
	bounded, cancel := context.WithTimeout(ctx, idleFeed)
	defer cancel()
	news, err := s.feed.Next(bounded, after)
	switch {
	case errors.Is(err, webhooks.ErrBehind):
	case bounded.Err() != nil:
		return after, ctx.Err()
	case err != nil:
		return after, err
	}
	take(news, err != nil)
	return news.Through, nil
}

// follows closes followed.
func (s *Streams) follows() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.following {
		s.following = true
		close(s.followed)
	}
}

// isIdle reports whether there are no streams, and no requests that will be. Then the feed is no longer followed.
func (s *Streams) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total == 0 {
		s.followed, s.following = make(chan struct{}), false
	}
	return s.total == 0
}
