package dev

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/server"
)

// Limits of the world's clock.
const (
	MinAdvance = time.Second
	MaxAdvance = 30 * 24 * time.Hour // for one advance
	MaxAhead   = 10 * 365 * 24 * time.Hour
)

// worldClock is the clock of a world: real time plus the sum of its advances, which is stored in the world's folder.
type worldClock struct {
	real  func() time.Time
	began time.Time // the world's time when the process started
	wake  chan struct{}

	mu    sync.Mutex // guards ahead
	ahead time.Duration

	advancing sync.Mutex // held while an advance is stored
	dir       string
	kept      state // as stored; guarded by advancing
}

func newWorldClock(dir string, kept state, wall func() time.Time) *worldClock {
	c := &worldClock{real: wall, wake: make(chan struct{}, 1), ahead: time.Duration(kept.ClockAhead) * time.Second, dir: dir, kept: kept}
	c.began = c.now()
	return c
}

// now returns the world's time.
func (c *worldClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real().Add(c.ahead)
}

// forServer returns the clock for the service's configuration.
func (c *worldClock) forServer() *server.TestClock {
	return &server.TestClock{
		Elapsed:  func() time.Duration { return c.now().Sub(c.began) },
		MaxGap:   MaxAhead, // there may be several advances between two readings
		Advanced: c.wake, Real: c.real,
	}
}

// keep stores the port of the chain's JSON-RPC and the key of the merchant, and returns the state.
func (c *worldClock) keep(port int, key string) (state, error) {
	c.advancing.Lock()
	defer c.advancing.Unlock()
	if port == c.kept.RPCPort && key == c.kept.MerchantKey {
		return c.kept, nil
	}
	c.kept.RPCPort, c.kept.MerchantKey = port, key
	return c.kept, c.kept.save(c.dir)
}

// advance stores and makes an advance.
func (c *worldClock) advance(d time.Duration) error {
	c.advancing.Lock()
	defer c.advancing.Unlock()
	kept := c.kept
	kept.ClockAhead += int64(d / time.Second)
	ahead := time.Duration(kept.ClockAhead) * time.Second
	if ahead > MaxAhead {
		return invalidField("seconds", "the clock would be more than 10 years ahead; start over in another folder")
	}
	if err := kept.save(c.dir); err != nil {
		return err
	}
	c.kept = kept
	c.mu.Lock()
	c.ahead = ahead
	c.mu.Unlock()
	clock.Wake(c.wake)
	return nil
}

// ClockInfo is a world's clock. Now is in Unix seconds, and AheadSeconds is how far it is ahead of real time.
type ClockInfo struct {
	Now          int64 `json:"now"`
	AheadSeconds int64 `json:"aheadSeconds"`
}

// String returns the world's time in UTC.
func (c ClockInfo) String() string { return clock.Format(time.Unix(c.Now, 0), time.UTC, time.RFC3339) }

// Ahead returns how far the clock is ahead of real time.
func (c ClockInfo) Ahead() time.Duration { return time.Duration(c.AheadSeconds) * time.Second }

func (c *worldClock) info() ClockInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ClockInfo{c.real().Add(c.ahead).Unix(), int64(c.ahead / time.Second)}
}

// advanceRequest is the body of POST /dev/clock/advance.
type advanceRequest struct {
	Seconds int64 `json:"seconds"`
}

// advanceWorld advances the clock and seals blocks with the new time: enough to make the first of them final, so that
// invoices past their expiry expire now. It returns when the service has read them, or after syncTimeout.
func (c *control) advanceWorld(ctx context.Context, r advanceRequest) (ClockInfo, error) {
	if least, most := int64(MinAdvance/time.Second), int64(MaxAdvance/time.Second); r.Seconds < least || r.Seconds > most {
		return ClockInfo{}, invalidField("seconds", fmt.Sprintf("it is %d; want %d to %d", r.Seconds, least, most))
	}
	if err := c.clock.advance(time.Duration(r.Seconds) * time.Second); err != nil {
		return ClockInfo{}, err
	}
	for range devchain.FinalityDepth + 2 { // the first may have the last valid second of an invoice
		if err := c.node.Seal(ctx); err != nil {
			return ClockInfo{}, err
		}
	}
	c.awaitSync(ctx)
	return c.clock.info(), nil
}
